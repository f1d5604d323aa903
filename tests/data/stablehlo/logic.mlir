module @logic {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<2xi64>) -> (tensor<4xi32>, tensor<2xi32>, tensor<4xf32>, tensor<i64>) {
    %0 = stablehlo.constant dense<[true, false, true, true]> : tensor<4xi1>
    %1 = stablehlo.constant dense<2.5> : tensor<4xf32>
    %2 = stablehlo.compare LT, %arg0, %1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %3 = stablehlo.and %0, %2 : tensor<4xi1>
    %4 = stablehlo.constant dense<-1.0> : tensor<4xf32>
    %5 = stablehlo.select %3, %arg0, %4 : tensor<4xi1>, tensor<4xf32>
    %6 = stablehlo.constant dense<2147483648.0> : tensor<4xf32>
    %7 = stablehlo.compare GE, %5, %6, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %8 = stablehlo.constant dense<-2147483648.0> : tensor<4xf32>
    %9 = stablehlo.compare LT, %5, %8, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %10 = stablehlo.compare NE, %5, %5, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %11 = stablehlo.or %9, %10 : tensor<4xi1>
    %12 = stablehlo.or %7, %11 : tensor<4xi1>
    %13 = stablehlo.constant dense<0.0> : tensor<4xf32>
    %14 = stablehlo.select %12, %13, %5 : tensor<4xi1>, tensor<4xf32>
    %15 = stablehlo.convert %14 : (tensor<4xf32>) -> tensor<4xi32>
    %16 = stablehlo.constant dense<2147483647> : tensor<4xi32>
    %17 = stablehlo.select %7, %16, %15 : tensor<4xi1>, tensor<4xi32>
    %18 = stablehlo.constant dense<-2147483648> : tensor<4xi32>
    %19 = stablehlo.select %9, %18, %17 : tensor<4xi1>, tensor<4xi32>
    %20 = stablehlo.constant dense<32> : tensor<2xi64>
    %21 = stablehlo.shift_left %arg1, %20 : tensor<2xi64>
    %22 = stablehlo.shift_right_arithmetic %21, %20 : tensor<2xi64>
    %23 = stablehlo.convert %22 : (tensor<2xi64>) -> tensor<2xi32>
    %24 = stablehlo.constant dense<1.0> : tensor<4xf32>
    %25 = stablehlo.clamp %4, %arg0, %24 : tensor<4xf32>
    %26 = stablehlo.convert %0 : (tensor<4xi1>) -> tensor<4xi32>
    %27 = stablehlo.convert %26 : (tensor<4xi32>) -> tensor<4xi64>
    %28 = stablehlo.constant dense<0> : tensor<i64>
    %29 = stablehlo.reduce(%27 init: %28) applies stablehlo.add across dimensions = [0] : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
    return %19, %23, %25, %29 : tensor<4xi32>, tensor<2xi32>, tensor<4xf32>, tensor<i64>
  }
}
