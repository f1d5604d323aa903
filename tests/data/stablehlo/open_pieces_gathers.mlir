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
    %3 = stablehlo.constant dense<1> : tensor<1xi64>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %5 = stablehlo.constant dense<3> : tensor<1xi64>
    %6 = stablehlo.concatenate %2, %5, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %7 = stablehlo.constant dense<2> : tensor<i64>
    %8 = stablehlo.multiply %1, %7 : tensor<i64>
    %9 = stablehlo.constant dense<1> : tensor<i64>
    %10 = stablehlo.add %8, %9 : tensor<i64>
    %11 = stablehlo.reshape %10 : (tensor<i64>) -> tensor<1xi64>
    %12 = stablehlo.constant dense<2> : tensor<1xi64>
    %13 = stablehlo.concatenate %11, %12, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %14 = stablehlo.constant dense<"0x01000000000000000000000000000000"> : tensor<2xi64>
    %15 = stablehlo.add %1, %9 : tensor<i64>
    %16 = stablehlo.reshape %15 : (tensor<i64>) -> tensor<1xi64>
    %17 = stablehlo.concatenate %16, %12, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %18 = stablehlo.constant dense<1> : tensor<2xi64>
    %19 = stablehlo.constant dense<0> : tensor<2xi64>
    %20 = stablehlo.multiply %1, %7 : tensor<i64>
    %21 = stablehlo.constant dense<-1> : tensor<i64>
    %22 = stablehlo.add %20, %21 : tensor<i64>
    %23 = stablehlo.reshape %22 : (tensor<i64>) -> tensor<1xi64>
    %24 = stablehlo.concatenate %23, %5, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %25 = stablehlo.constant dense<"0x02000000000000000100000000000000"> : tensor<2xi64>
    %26 = stablehlo.concatenate %12, %2, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %27 = stablehlo.concatenate %12, %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
    %28 = stablehlo.concatenate %2, %3, %5, dim = 0 : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
    %29 = stablehlo.constant dense<"0x0200000000000000FFFFFFFFFFFFFFFF"> : tensor<2xi64>
    %30 = stablehlo.constant dense<"0x0000803F0000004000004040"> : tensor<3x1xf32>
    %31 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %32 = stablehlo.convert %31 : (tensor<?xi64>) -> tensor<?xf64>
    %33 = stablehlo.constant dense<0.5> : tensor<f64>
    %34 = stablehlo.dynamic_broadcast_in_dim %33, %2, dims = [] : (tensor<f64>, tensor<1xi64>) -> tensor<?xf64>
    %35 = stablehlo.add %32, %34 : tensor<?xf64>
    %36 = stablehlo.convert %35 : (tensor<?xf64>) -> tensor<?xf32>
    %37 = stablehlo.dynamic_broadcast_in_dim %36, %4, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x1xf32>
    %38 = stablehlo.constant dense<3.0> : tensor<f32>
    %39 = stablehlo.dynamic_broadcast_in_dim %38, %6, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x3xf32>
    %40 = stablehlo.broadcast_in_dim %38, dims = [] : (tensor<f32>) -> tensor<1x3xf32>
    %41 = stablehlo.concatenate %39, %arg0, %40, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
    %42 = stablehlo.dynamic_broadcast_in_dim %38, %13, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %43 = stablehlo.concatenate %41, %42, dim = 1 : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>
    %44 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %45 = stablehlo.constant dense<0.0> : tensor<f32>
    %46 = stablehlo.real_dynamic_slice %44, %14, %17, %18 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x2xf32>
    %47 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %48 = stablehlo.real_dynamic_slice %47, %19, %24, %25 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32>
    %49 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
    %50 = stablehlo.constant dense<0> : tensor<2xi64>
    %51 = stablehlo.compare LT, %29, %50, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %52 = stablehlo.constant dense<3> : tensor<2xi64>
    %53 = stablehlo.add %29, %52 : tensor<2xi64>
    %54 = stablehlo.select %51, %53, %29 : tensor<2xi1>, tensor<2xi64>
    %55 = stablehlo.dynamic_broadcast_in_dim %54, %26, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x?xi64>
    %56 = stablehlo.dynamic_iota %26, dim = 1 : (tensor<2xi64>) -> tensor<2x?xi64>
    %57 = stablehlo.dynamic_broadcast_in_dim %54, %27, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xi64>, tensor<3xi64>) -> tensor<2x?x1xi64>
    %58 = stablehlo.dynamic_broadcast_in_dim %56, %27, dims = [0, 1] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<2x?xi64>, tensor<3xi64>) -> tensor<2x?x1xi64>
    %59 = stablehlo.concatenate %57, %58, dim = 2 : (tensor<2x?x1xi64>, tensor<2x?x1xi64>) -> tensor<2x?x2xi64>
    %60 = "stablehlo.gather"(%49, %59) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<3x?xf32>, tensor<2x?x2xi64>) -> tensor<2x?xf32>
    %61 = stablehlo.reverse %arg0, dims = [0] : tensor<?x3xf32>
    %62 = stablehlo.dynamic_broadcast_in_dim %36, %6, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x3xf32>
    %63 = stablehlo.multiply %61, %62 : tensor<?x3xf32>
    %64 = stablehlo.transpose %30, dims = [1, 0] : (tensor<3x1xf32>) -> tensor<1x3xf32>
    %65 = stablehlo.dynamic_broadcast_in_dim %arg0, %28, dims = [0, 2] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<?x3xf32>, tensor<3xi64>) -> tensor<?x1x3xf32>
    %66 = stablehlo.dynamic_broadcast_in_dim %64, %28, dims = [1, 2] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<1x3xf32>, tensor<3xi64>) -> tensor<?x1x3xf32>
    %67 = stablehlo.multiply %65, %66 : tensor<?x1x3xf32>
    %68 = stablehlo.reduce(%67 init: %45) applies stablehlo.add across dimensions = [2] : (tensor<?x1x3xf32>, tensor<f32>) -> tensor<?x1xf32>
    return %43, %46, %48, %60, %63, %68 : tensor<?x5xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<2x?xf32>, tensor<?x3xf32>, tensor<?x1xf32>
  }
}
