// %arg0: axis 0 is batch
// result 0: axis 0 is batch
// result 2: axis 0 is 2*batch
module @open_affine_gathers {
  func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<?x2xf32>, tensor<2xf32>, tensor<?xf32>) {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<i64>
    %2 = stablehlo.reshape %1 : (tensor<i64>) -> tensor<1xi64>
    %3 = stablehlo.constant dense<2> : tensor<1xi64>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %5 = stablehlo.convert %1 : (tensor<i64>) -> tensor<f64>
    %6 = stablehlo.convert %5 : (tensor<f64>) -> tensor<f32>
    %7 = stablehlo.constant dense<2> : tensor<i64>
    %8 = stablehlo.multiply %1, %7 : tensor<i64>
    %9 = stablehlo.reshape %8 : (tensor<i64>) -> tensor<1xi64>
    %10 = stablehlo.constant dense<1> : tensor<1xi64>
    %11 = stablehlo.concatenate %9, %10, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %12 = stablehlo.constant dense<"0x0000803F0000004000004040000080400000A0400000C040"> : tensor<3x2xf32>
    %13 = stablehlo.constant dense<"0x0000003F000080BF"> : tensor<2xf32>
    %14 = stablehlo.dot_general %arg0, %12, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %15 = stablehlo.dynamic_broadcast_in_dim %13, %4, dims = [1] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<2xi64>) -> tensor<?x2xf32>
    %16 = stablehlo.add %14, %15 : tensor<?x2xf32>
    %17 = stablehlo.constant dense<0.0> : tensor<f32>
    %18 = stablehlo.dynamic_broadcast_in_dim %17, %4, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %19 = stablehlo.maximum %16, %18 : tensor<?x2xf32>
    %20 = stablehlo.reduce(%19 init: %17) applies stablehlo.add across dimensions = [0] : (tensor<?x2xf32>, tensor<f32>) -> tensor<2xf32>
    %21 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %22 = stablehlo.divide %20, %21 : tensor<2xf32>
    %23 = stablehlo.dynamic_iota %9, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %24 = stablehlo.dynamic_broadcast_in_dim %7, %9, dims = [] : (tensor<i64>, tensor<1xi64>) -> tensor<?xi64>
    %25 = stablehlo.remainder %23, %24 : tensor<?xi64>
    %26 = stablehlo.divide %23, %24 : tensor<?xi64>
    %27 = stablehlo.dynamic_broadcast_in_dim %26, %11, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xi64>, tensor<2xi64>) -> tensor<?x1xi64>
    %28 = stablehlo.dynamic_broadcast_in_dim %25, %11, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xi64>, tensor<2xi64>) -> tensor<?x1xi64>
    %29 = stablehlo.concatenate %27, %28, dim = 1 : (tensor<?x1xi64>, tensor<?x1xi64>) -> tensor<?x2xi64>
    %30 = "stablehlo.gather"(%19, %29) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<?x2xf32>, tensor<?x2xi64>) -> tensor<?xf32>
    return %19, %22, %30 : tensor<?x2xf32>, tensor<2xf32>, tensor<?xf32>
  }
}
