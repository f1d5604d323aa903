module @recurrence {
  func.func public @main(%arg0: tensor<1x2xf32>, %arg1: tensor<5x1x2xf32>, %arg2: tensor<2x2xf32>) -> (tensor<1x2xf32>, tensor<5x1x2xf32>) {
    %0 = stablehlo.constant dense<0.0> : tensor<5x1x2xf32>
    %1 = stablehlo.constant dense<0> : tensor<i64>
    %2:3 = stablehlo.while(%step2 = %1, %now2_0 = %arg0, %now2_1 = %0) : tensor<i64>, tensor<1x2xf32>, tensor<5x1x2xf32>
    cond {
      %3 = stablehlo.constant dense<5> : tensor<i64>
      %4 = stablehlo.compare LT, %step2, %3, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %5 = stablehlo.constant dense<4> : tensor<i64>
      %6 = stablehlo.subtract %5, %step2 : tensor<i64>
      %7 = stablehlo.dynamic_slice %arg1, %6, %1, %1, sizes = [1, 1, 2] : (tensor<5x1x2xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x1x2xf32>
      %8 = stablehlo.reshape %7 : (tensor<1x1x2xf32>) -> tensor<1x2xf32>
      %9 = stablehlo.dot_general %now2_0, %arg2, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %10 = stablehlo.add %9, %8 : tensor<1x2xf32>
      %11 = stablehlo.tanh %10 : tensor<1x2xf32>
      %12 = stablehlo.reshape %11 : (tensor<1x2xf32>) -> tensor<1x1x2xf32>
      %13 = stablehlo.dynamic_update_slice %now2_1, %12, %6, %1, %1 : (tensor<5x1x2xf32>, tensor<1x1x2xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<5x1x2xf32>
      %14 = stablehlo.constant dense<1> : tensor<i64>
      %15 = stablehlo.add %step2, %14 : tensor<i64>
      stablehlo.return %15, %11, %13 : tensor<i64>, tensor<1x2xf32>, tensor<5x1x2xf32>
    }
    return %2#1, %2#2 : tensor<1x2xf32>, tensor<5x1x2xf32>
  }
}
