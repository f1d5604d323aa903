// %arg0: axis 0 is rows
// result 0: axis 0 is 2*rows+1
// result 1: axis 0 is rows
// result 2: axis 0 is rows
// result 3: axis 1 is rows
// result 4: axis 0 is rows
module @open_pieces_gathers {
  func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<?x5xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<2x?xf32>, tensor<?x3xf32>) {
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
    %28 = stablehlo.constant dense<"0x0200000000000000FFFFFFFFFFFFFFFF"> : tensor<2xi64>
    %29 = stablehlo.constant dense<3.0> : tensor<f32>
    %30 = stablehlo.dynamic_broadcast_in_dim %29, %4, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x3xf32>
    %31 = stablehlo.broadcast_in_dim %29, dims = [] : (tensor<f32>) -> tensor<1x3xf32>
    %32 = stablehlo.concatenate %30, %arg0, %31, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
    %33 = stablehlo.dynamic_broadcast_in_dim %29, %11, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %34 = stablehlo.concatenate %32, %33, dim = 1 : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>
    %35 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %36 = stablehlo.constant dense<0.0> : tensor<f32>
    %37 = stablehlo.real_dynamic_slice %35, %12, %15, %16 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x2xf32>
    %38 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %39 = stablehlo.real_dynamic_slice %38, %17, %22, %23 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32>
    %40 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
    %41 = stablehlo.constant dense<0> : tensor<2xi64>
    %42 = stablehlo.compare LT, %28, %41, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %43 = stablehlo.constant dense<3> : tensor<2xi64>
    %44 = stablehlo.add %28, %43 : tensor<2xi64>
    %45 = stablehlo.select %42, %44, %28 : tensor<2xi1>, tensor<2xi64>
    %46 = stablehlo.dynamic_broadcast_in_dim %45, %24, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x?xi64>
    %47 = stablehlo.dynamic_iota %24, dim = 1 : (tensor<2xi64>) -> tensor<2x?xi64>
    %48 = stablehlo.dynamic_broadcast_in_dim %45, %26, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xi64>, tensor<3xi64>) -> tensor<2x?x1xi64>
    %49 = stablehlo.dynamic_broadcast_in_dim %47, %26, dims = [0, 1] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<2x?xi64>, tensor<3xi64>) -> tensor<2x?x1xi64>
    %50 = stablehlo.concatenate %48, %49, dim = 2 : (tensor<2x?x1xi64>, tensor<2x?x1xi64>) -> tensor<2x?x2xi64>
    %51 = "stablehlo.gather"(%40, %50) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<3x?xf32>, tensor<2x?x2xi64>) -> tensor<2x?xf32>
    %52 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %53 = stablehlo.convert %52 : (tensor<?xi64>) -> tensor<?xf64>
    %54 = stablehlo.constant dense<0.5> : tensor<f64>
    %55 = stablehlo.dynamic_broadcast_in_dim %54, %2, dims = [] : (tensor<f64>, tensor<1xi64>) -> tensor<?xf64>
    %56 = stablehlo.add %53, %55 : tensor<?xf64>
    %57 = stablehlo.convert %56 : (tensor<?xf64>) -> tensor<?xf32>
    %58 = stablehlo.dynamic_broadcast_in_dim %57, %27, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x1xf32>
    %59 = stablehlo.reverse %arg0, dims = [0] : tensor<?x3xf32>
    %60 = stablehlo.dynamic_broadcast_in_dim %57, %4, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x3xf32>
    %61 = stablehlo.multiply %59, %60 : tensor<?x3xf32>
    return %34, %37, %39, %51, %61 : tensor<?x5xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<2x?xf32>, tensor<?x3xf32>
  }
}
