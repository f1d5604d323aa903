// %arg1: variable 'b'
module @affine {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2xf32>) -> (tensor<2x2xf32>) {
    %0 = stablehlo.constant dense<"0x0000803F0000004000004040000080400000A0400000C040"> : tensor<3x2xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
    %3 = stablehlo.add %1, %2 : tensor<2x2xf32>
    %4 = stablehlo.constant dense<0.0> : tensor<2x2xf32>
    %5 = stablehlo.maximum %3, %4 : tensor<2x2xf32>
    %6 = stablehlo.constant dense<0.5> : tensor<2x2xf32>
    %7 = stablehlo.multiply %6, %5 : tensor<2x2xf32>
    return %7 : tensor<2x2xf32>
  }
}
