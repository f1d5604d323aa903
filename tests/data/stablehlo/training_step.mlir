// %arg1: variable 'net.w'
// result 1: variable 'net.w'
module @training_step {
  func.func public @main(%arg0: tensor<2x3xf64>, %arg1: tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf64>) -> tensor<2x3xf64>
    %1 = stablehlo.multiply %arg0, %0 : tensor<2x3xf64>
    %2 = stablehlo.multiply %1, %1 : tensor<2x3xf64>
    %3 = stablehlo.constant dense<0.0> : tensor<f64>
    %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf64>, tensor<f64>) -> tensor<f64>
    %5 = stablehlo.constant dense<1.0> : tensor<f64>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f64>) -> tensor<2x3xf64>
    %7 = stablehlo.multiply %6, %1 : tensor<2x3xf64>
    %8 = stablehlo.constant dense<2.0> : tensor<2x3xf64>
    %9 = stablehlo.multiply %8, %7 : tensor<2x3xf64>
    %10 = stablehlo.multiply %9, %arg0 : tensor<2x3xf64>
    %11 = stablehlo.reduce(%10 init: %3) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf64>, tensor<f64>) -> tensor<3xf64>
    %12 = stablehlo.constant dense<0.1> : tensor<3xf64>
    %13 = stablehlo.multiply %12, %11 : tensor<3xf64>
    %14 = stablehlo.subtract %arg1, %13 : tensor<3xf64>
    return %4, %14 : tensor<f64>, tensor<3xf64>
  }
}
