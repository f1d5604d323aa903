module @views {
  func.func public @main(%arg0: tensor<2x4xf32>) -> (tensor<5x2xf32>, tensor<2x2xf32>, tensor<2x4xf32>, tensor<4x2xf32>, tensor<2x2x4xf32>) {
    %0 = stablehlo.slice %arg0 [0:2, 0:2] : (tensor<2x4xf32>) -> tensor<2x2xf32>
    %1 = stablehlo.slice %arg0 [0:2, 2:4] : (tensor<2x4xf32>) -> tensor<2x2xf32>
    %2 = stablehlo.constant dense<7.0> : tensor<f32>
    %3 = stablehlo.pad %0, %2, low = [1, -1], high = [0, 1], interior = [0, 0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<3x2xf32>
    %4 = stablehlo.concatenate %1, %3, dim = 0 : (tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<5x2xf32>
    %5 = stablehlo.slice %arg0 [0:2, 1:4:2] : (tensor<2x4xf32>) -> tensor<2x2xf32>
    %6 = stablehlo.reverse %5, dims = [1] : tensor<2x2xf32>
    %7 = stablehlo.slice %arg0 [1:2, 0:4] : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %8 = stablehlo.reshape %7 : (tensor<1x4xf32>) -> tensor<4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    %10 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %11 = stablehlo.reshape %arg0 : (tensor<2x4xf32>) -> tensor<2x1x4xf32>
    %12 = stablehlo.reshape %arg0 : (tensor<2x4xf32>) -> tensor<2x1x4xf32>
    %13 = stablehlo.concatenate %11, %12, dim = 1 : (tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x2x4xf32>
    return %4, %6, %9, %10, %13 : tensor<5x2xf32>, tensor<2x2xf32>, tensor<2x4xf32>, tensor<4x2xf32>, tensor<2x2x4xf32>
  }
}
