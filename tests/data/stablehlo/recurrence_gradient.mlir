module @recurrence_gradient {
  func.func public @main(%arg0: tensor<1x2xf32>, %arg1: tensor<5x1x2xf32>, %arg2: tensor<2x2xf32>) -> (tensor<2x2xf32>) {
    %0 = stablehlo.constant dense<0.0> : tensor<5x1x2xf32>
    %1 = stablehlo.constant dense<0> : tensor<i64>
    %2:4 = stablehlo.while(%step2 = %1, %now2_0 = %arg0, %now2_1 = %0, %now2_2 = %0) : tensor<i64>, tensor<1x2xf32>, tensor<5x1x2xf32>, tensor<5x1x2xf32>
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
      %12 = stablehlo.reshape %now2_0 : (tensor<1x2xf32>) -> tensor<1x1x2xf32>
      %13 = stablehlo.dynamic_update_slice %now2_1, %12, %6, %1, %1 : (tensor<5x1x2xf32>, tensor<1x1x2xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<5x1x2xf32>
      %14 = stablehlo.reshape %11 : (tensor<1x2xf32>) -> tensor<1x1x2xf32>
      %15 = stablehlo.dynamic_update_slice %now2_2, %14, %6, %1, %1 : (tensor<5x1x2xf32>, tensor<1x1x2xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<5x1x2xf32>
      %16 = stablehlo.constant dense<1> : tensor<i64>
      %17 = stablehlo.add %step2, %16 : tensor<i64>
      stablehlo.return %17, %11, %13, %15 : tensor<i64>, tensor<1x2xf32>, tensor<5x1x2xf32>, tensor<5x1x2xf32>
    }
    %18 = stablehlo.constant dense<1.0> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<f32>) -> tensor<5x1x2xf32>
    %20 = stablehlo.constant dense<0.0> : tensor<1x2xf32>
    %21 = stablehlo.constant dense<0.0> : tensor<2x2xf32>
    %22:3 = stablehlo.while(%step22 = %1, %now22_0 = %20, %now22_1 = %21) : tensor<i64>, tensor<1x2xf32>, tensor<2x2xf32>
    cond {
      %23 = stablehlo.constant dense<5> : tensor<i64>
      %24 = stablehlo.compare LT, %step22, %23, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %24 : tensor<i1>
    } do {
      %25 = stablehlo.dynamic_slice %2#2, %step22, %1, %1, sizes = [1, 1, 2] : (tensor<5x1x2xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x1x2xf32>
      %26 = stablehlo.reshape %25 : (tensor<1x1x2xf32>) -> tensor<1x2xf32>
      %27 = stablehlo.dynamic_slice %2#3, %step22, %1, %1, sizes = [1, 1, 2] : (tensor<5x1x2xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x1x2xf32>
      %28 = stablehlo.reshape %27 : (tensor<1x1x2xf32>) -> tensor<1x2xf32>
      %29 = stablehlo.dynamic_slice %19, %step22, %1, %1, sizes = [1, 1, 2] : (tensor<5x1x2xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x1x2xf32>
      %30 = stablehlo.reshape %29 : (tensor<1x1x2xf32>) -> tensor<1x2xf32>
      %31 = stablehlo.add %now22_0, %30 : tensor<1x2xf32>
      %32 = stablehlo.constant dense<1.0> : tensor<1x2xf32>
      %33 = stablehlo.multiply %28, %28 : tensor<1x2xf32>
      %34 = stablehlo.subtract %32, %33 : tensor<1x2xf32>
      %35 = stablehlo.multiply %31, %34 : tensor<1x2xf32>
      %36 = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %37 = stablehlo.dot_general %35, %36, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %38 = stablehlo.transpose %26, dims = [1, 0] : (tensor<1x2xf32>) -> tensor<2x1xf32>
      %39 = stablehlo.dot_general %38, %35, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2x1xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
      %40 = stablehlo.add %now22_1, %39 : tensor<2x2xf32>
      %41 = stablehlo.constant dense<1> : tensor<i64>
      %42 = stablehlo.add %step22, %41 : tensor<i64>
      stablehlo.return %42, %37, %40 : tensor<i64>, tensor<1x2xf32>, tensor<2x2xf32>
    }
    return %22#2 : tensor<2x2xf32>
  }
}
