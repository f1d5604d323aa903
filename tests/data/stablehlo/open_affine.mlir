// %arg0: axis 0 is batch
// result 0: axis 0 is batch
// result 2: axis 0 is 2*batch
// result 3: axis 1 is batch
module @open_affine {
  func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<?x2xf32>, tensor<2xf32>, tensor<?xf32>, tensor<3x?xf32>) {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<i64>
    %2 = stablehlo.reshape %1 : (tensor<i64>) -> tensor<1xi64>
    %3 = stablehlo.constant dense<2> : tensor<1xi64>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %5 = stablehlo.convert %1 : (tensor<i64>) -> tensor<f32>
    %6 = stablehlo.constant dense<2> : tensor<i64>
    %7 = stablehlo.multiply %1, %6 : tensor<i64>
    %8 = stablehlo.reshape %7 : (tensor<i64>) -> tensor<1xi64>
    %9 = stablehlo.constant dense<3> : tensor<1xi64>
    %10 = stablehlo.concatenate %9, %2, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %11 = stablehlo.constant dense<"0x0000803F0000004000004040000080400000A0400000C040"> : tensor<3x2xf32>
    %12 = stablehlo.constant dense<"0x0000003F000080BF"> : tensor<2xf32>
    %13 = stablehlo.dot_general %arg0, %11, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %14 = stablehlo.dynamic_broadcast_in_dim %12, %4, dims = [1] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<2xi64>) -> tensor<?x2xf32>
    %15 = stablehlo.add %13, %14 : tensor<?x2xf32>
    %16 = stablehlo.constant dense<0.0> : tensor<f32>
    %17 = stablehlo.dynamic_broadcast_in_dim %16, %4, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %18 = stablehlo.maximum %15, %17 : tensor<?x2xf32>
    %19 = stablehlo.reduce(%18 init: %16) applies stablehlo.add across dimensions = [0] : (tensor<?x2xf32>, tensor<f32>) -> tensor<2xf32>
    %20 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %21 = stablehlo.divide %19, %20 : tensor<2xf32>
    %22 = stablehlo.dynamic_reshape %18, %8 : (tensor<?x2xf32>, tensor<1xi64>) -> tensor<?xf32>
    %23 = stablehlo.dynamic_reshape %arg0, %10 : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<3x?xf32>
    return %18, %21, %22, %23 : tensor<?x2xf32>, tensor<2xf32>, tensor<?xf32>, tensor<3x?xf32>
  }
}
