// %arg0: axis 0 is rows
// result 0: axis 0 is 2*rows+1
// result 1: axis 0 is rows
// result 2: axis 0 is rows
// result 3: axis 1 is rows
// result 4: axis 0 is rows
// result 5: axis 0 is rows
module @open_pieces_gathers {
  func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<?x5xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<2x?xf32>, tensor<?x3xf32>, tensor<?x1xf32>) {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<i64>
    %2 = stablehlo.reshape %1 : (tensor<i64>) -> tensor<1xi64>
    %3 = stablehlo.constant dense<3> : tensor<1xi64>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %5 = stablehlo.constant dense<2> : tensor<i64>
    %6 = stablehlo.multiply %1, %5 : tensor<i64>
    %7 = stablehlo.constant dense<1> : tensor<i64>
    %8 = stablehlo.add %6, %7 : tensor<i64>
    %9 = stablehlo.reshape %8 : (tensor<i64>) -> tensor<1xi64>
    %10 = stablehlo.constant dense<2> : tensor<1xi64>
    %11 = stablehlo.concatenate %9, %10, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %12 = stablehlo.constant dense<"0x01000000000000000000000000000000"> : tensor<2xi64>
    %13 = stablehlo.add %1, %7 : tensor<i64>
    %14 = stablehlo.reshape %13 : (tensor<i64>) -> tensor<1xi64>
    %15 = stablehlo.concatenate %14, %10, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %16 = stablehlo.constant dense<1> : tensor<2xi64>
    %17 = stablehlo.constant dense<0> : tensor<2xi64>
    %18 = stablehlo.multiply %1, %5 : tensor<i64>
    %19 = stablehlo.constant dense<-1> : tensor<i64>
    %20 = stablehlo.add %18, %19 : tensor<i64>
    %21 = stablehlo.reshape %20 : (tensor<i64>) -> tensor<1xi64>
    %22 = stablehlo.concatenate %21, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %23 = stablehlo.constant dense<"0x02000000000000000100000000000000"> : tensor<2xi64>
    %24 = stablehlo.concatenate %10, %2, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %25 = stablehlo.constant dense<1> : tensor<1xi64>
    %26 = stablehlo.concatenate %10, %2, %25, dim = 0 : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
    %27 = stablehlo.concatenate %2, %25, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %28 = stablehlo.concatenate %2, %25, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
    %29 = stablehlo.constant dense<"0x0200000000000000FFFFFFFFFFFFFFFF"> : tensor<2xi64>
    %30 = stablehlo.constant dense<"0x0000803F0000004000004040"> : tensor<3x1xf32>
    %31 = stablehlo.constant dense<3.0> : tensor<f32>
    %32 = stablehlo.dynamic_broadcast_in_dim %31, %4, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x3xf32>
    %33 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<f32>) -> tensor<1x3xf32>
    %34 = stablehlo.concatenate %32, %arg0, %33, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
    %35 = stablehlo.dynamic_broadcast_in_dim %31, %11, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %36 = stablehlo.concatenate %34, %35, dim = 1 : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>
    %37 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %38 = stablehlo.constant dense<0.0> : tensor<f32>
    %39 = stablehlo.real_dynamic_slice %37, %12, %15, %16 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x2xf32>
    %40 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %41 = stablehlo.real_dynamic_slice %40, %17, %22, %23 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32>
    %42 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
    %43 = stablehlo.constant dense<0> : tensor<2xi64>
    %44 = stablehlo.compare LT, %29, %43, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %45 = stablehlo.constant dense<3> : tensor<2xi64>
    %46 = stablehlo.add %29, %45 : tensor<2xi64>
    %47 = stablehlo.select %44, %46, %29 : tensor<2xi1>, tensor<2xi64>
    %48 = stablehlo.dynamic_broadcast_in_dim %47, %24, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x?xi64>
    %49 = stablehlo.dynamic_iota %24, dim = 1 : (tensor<2xi64>) -> tensor<2x?xi64>
    %50 = stablehlo.dynamic_broadcast_in_dim %47, %26, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xi64>, tensor<3xi64>) -> tensor<2x?x1xi64>
    %51 = stablehlo.dynamic_broadcast_in_dim %49, %26, dims = [0, 1] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<2x?xi64>, tensor<3xi64>) -> tensor<2x?x1xi64>
    %52 = stablehlo.concatenate %50, %51, dim = 2 : (tensor<2x?x1xi64>, tensor<2x?x1xi64>) -> tensor<2x?x2xi64>
    %53 = "stablehlo.gather"(%42, %52) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<3x?xf32>, tensor<2x?x2xi64>) -> tensor<2x?xf32>
    %54 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %55 = stablehlo.convert %54 : (tensor<?xi64>) -> tensor<?xf64>
    %56 = stablehlo.constant dense<0.5> : tensor<f64>
    %57 = stablehlo.dynamic_broadcast_in_dim %56, %2, dims = [] : (tensor<f64>, tensor<1xi64>) -> tensor<?xf64>
    %58 = stablehlo.add %55, %57 : tensor<?xf64>
    %59 = stablehlo.convert %58 : (tensor<?xf64>) -> tensor<?xf32>
    %60 = stablehlo.dynamic_broadcast_in_dim %59, %27, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x1xf32>
    %61 = stablehlo.reverse %arg0, dims = [0] : tensor<?x3xf32>
    %62 = stablehlo.dynamic_broadcast_in_dim %59, %4, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x3xf32>
    %63 = stablehlo.multiply %61, %62 : tensor<?x3xf32>
    %64 = stablehlo.transpose %30, dims = [1, 0] : (tensor<3x1xf32>) -> tensor<1x3xf32>
    %65 = stablehlo.dynamic_broadcast_in_dim %arg0, %28, dims = [0, 2] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<?x3xf32>, tensor<3xi64>) -> tensor<?x1x3xf32>
    %66 = stablehlo.dynamic_broadcast_in_dim %64, %28, dims = [1, 2] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<1x3xf32>, tensor<3xi64>) -> tensor<?x1x3xf32>
    %67 = stablehlo.multiply %65, %66 : tensor<?x1x3xf32>
    %68 = stablehlo.reduce(%67 init: %38) applies stablehlo.add across dimensions = [2] : (tensor<?x1x3xf32>, tensor<f32>) -> tensor<?x1xf32>
    return %36, %39, %41, %53, %63, %68 : tensor<?x5xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<2x?xf32>, tensor<?x3xf32>, tensor<?x1xf32>
  }
}
