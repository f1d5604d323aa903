// %arg0: axis 0 is rows
// result 0: axis 0 is 2*rows+1
// result 1: axis 0 is rows
// result 2: axis 0 is rows
// result 3: axis 1 is rows
// result 4: axis 0 is rows
module @open_pieces {
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
    %24 = stablehlo.constant dense<1> : tensor<1xi64>
    %25 = stablehlo.concatenate %24, %2, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %26 = stablehlo.concatenate %2, %24, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %27 = stablehlo.constant dense<"0x0200000000000000FFFFFFFFFFFFFFFF"> : tensor<2xi64>
    %28 = stablehlo.constant dense<3.0> : tensor<f32>
    %29 = stablehlo.dynamic_broadcast_in_dim %28, %4, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x3xf32>
    %30 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<f32>) -> tensor<1x3xf32>
    %31 = stablehlo.concatenate %29, %arg0, %30, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
    %32 = stablehlo.dynamic_broadcast_in_dim %28, %11, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %33 = stablehlo.concatenate %31, %32, dim = 1 : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>
    %34 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %35 = stablehlo.constant dense<0.0> : tensor<f32>
    %36 = stablehlo.real_dynamic_slice %34, %12, %15, %16 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x2xf32>
    %37 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %38 = stablehlo.real_dynamic_slice %37, %17, %22, %23 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32>
    %39 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
    %40 = stablehlo.constant dense<0> : tensor<2xi64>
    %41 = stablehlo.compare LT, %27, %40, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %42 = stablehlo.constant dense<3> : tensor<2xi64>
    %43 = stablehlo.add %27, %42 : tensor<2xi64>
    %44 = stablehlo.select %41, %43, %27 : tensor<2xi1>, tensor<2xi64>
    %45 = "stablehlo.dynamic_gather"(%39, %44, %25) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<3x?xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x?xf32>
    %46 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %47 = stablehlo.convert %46 : (tensor<?xi64>) -> tensor<?xf64>
    %48 = stablehlo.constant dense<0.5> : tensor<f64>
    %49 = stablehlo.dynamic_broadcast_in_dim %48, %2, dims = [] : (tensor<f64>, tensor<1xi64>) -> tensor<?xf64>
    %50 = stablehlo.add %47, %49 : tensor<?xf64>
    %51 = stablehlo.convert %50 : (tensor<?xf64>) -> tensor<?xf32>
    %52 = stablehlo.dynamic_reshape %51, %26 : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x1xf32>
    %53 = stablehlo.reverse %arg0, dims = [0] : tensor<?x3xf32>
    %54 = stablehlo.dynamic_broadcast_in_dim %52, %4, dims = [0, 1] {known_expanding_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?x1xf32>, tensor<2xi64>) -> tensor<?x3xf32>
    %55 = stablehlo.multiply %53, %54 : tensor<?x3xf32>
    return %33, %36, %38, %45, %55 : tensor<?x5xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<2x?xf32>, tensor<?x3xf32>
  }
}
