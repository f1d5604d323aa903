// %arg0: axis 0 is batch
// result 0: axis 0 is batch
// result 2: axis 0 is 2*batch
module @open_affine {
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
    %10 = stablehlo.constant dense<"0x0000803F0000004000004040000080400000A0400000C040"> : tensor<3x2xf32>
    %11 = stablehlo.constant dense<"0x0000003F000080BF"> : tensor<2xf32>
    %12 = stablehlo.dot_general %arg0, %10, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %13 = stablehlo.dynamic_broadcast_in_dim %11, %4, dims = [1] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<2xi64>) -> tensor<?x2xf32>
    %14 = stablehlo.add %12, %13 : tensor<?x2xf32>
    %15 = stablehlo.constant dense<0.0> : tensor<f32>
    %16 = stablehlo.dynamic_broadcast_in_dim %15, %4, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %17 = stablehlo.maximum %14, %16 : tensor<?x2xf32>
    %18 = stablehlo.reduce(%17 init: %15) applies stablehlo.add across dimensions = [0] : (tensor<?x2xf32>, tensor<f32>) -> tensor<2xf32>
    %19 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %20 = stablehlo.divide %18, %19 : tensor<2xf32>
    %21 = stablehlo.dynamic_reshape %17, %9 : (tensor<?x2xf32>, tensor<1xi64>) -> tensor<?xf32>
    return %17, %20, %21 : tensor<?x2xf32>, tensor<2xf32>, tensor<?xf32>
  }
}
