// %arg0: axis 0 is rows
// result 0: axis 0 is 2*rows+1
// result 1: axis 0 is rows
// result 2: axis 0 is rows
// result 3: axis 1 is rows
// result 4: axis 0 is rows
// result 5: axis 0 is rows
module @open_pieces {
  func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<?x5xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<2x?xf32>, tensor<?x3xf32>, tensor<?x1xf32>) {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<i64>
    %2 = stablehlo.reshape %1 : (tensor<i64>) -> tensor<1xi64>
    %3 = stablehlo.constant dense<1> : tensor<1xi64>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %5 = stablehlo.constant dense<3> : tensor<1xi64>
    %6 = stablehlo.concatenate %2, %5, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %7 = stablehlo.constant dense<2> : tensor<i64>
    %8 = stablehlo.multiply %1, %7 : tensor<i64>
    %9 = stablehlo.constant dense<1> : tensor<i64>
    %10 = stablehlo.add %8, %9 : tensor<i64>
    %11 = stablehlo.reshape %10 : (tensor<i64>) -> tensor<1xi64>
    %12 = stablehlo.constant dense<2> : tensor<1xi64>
    %13 = stablehlo.concatenate %11, %12, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %14 = stablehlo.constant dense<"0x01000000000000000000000000000000"> : tensor<2xi64>
    %15 = stablehlo.add %1, %9 : tensor<i64>
    %16 = stablehlo.reshape %15 : (tensor<i64>) -> tensor<1xi64>
    %17 = stablehlo.concatenate %16, %12, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %18 = stablehlo.constant dense<1> : tensor<2xi64>
    %19 = stablehlo.constant dense<0> : tensor<2xi64>
    %20 = stablehlo.multiply %1, %7 : tensor<i64>
    %21 = stablehlo.constant dense<-1> : tensor<i64>
    %22 = stablehlo.add %20, %21 : tensor<i64>
    %23 = stablehlo.reshape %22 : (tensor<i64>) -> tensor<1xi64>
    %24 = stablehlo.concatenate %23, %5, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %25 = stablehlo.constant dense<"0x02000000000000000100000000000000"> : tensor<2xi64>
    %26 = stablehlo.concatenate %3, %2, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %27 = stablehlo.constant dense<"0x0200000000000000FFFFFFFFFFFFFFFF"> : tensor<2xi64>
    %28 = stablehlo.constant dense<"0x0000803F0000004000004040"> : tensor<3x1xf32>
    %29 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %30 = stablehlo.convert %29 : (tensor<?xi64>) -> tensor<?xf64>
    %31 = stablehlo.constant dense<0.5> : tensor<f64>
    %32 = stablehlo.dynamic_broadcast_in_dim %31, %2, dims = [] : (tensor<f64>, tensor<1xi64>) -> tensor<?xf64>
    %33 = stablehlo.add %30, %32 : tensor<?xf64>
    %34 = stablehlo.convert %33 : (tensor<?xf64>) -> tensor<?xf32>
    %35 = stablehlo.dynamic_reshape %34, %4 : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x1xf32>
    %36 = stablehlo.constant dense<3.0> : tensor<f32>
    %37 = stablehlo.dynamic_broadcast_in_dim %36, %6, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x3xf32>
    %38 = stablehlo.broadcast_in_dim %36, dims = [] : (tensor<f32>) -> tensor<1x3xf32>
    %39 = stablehlo.concatenate %37, %arg0, %38, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
    %40 = stablehlo.dynamic_broadcast_in_dim %36, %13, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %41 = stablehlo.concatenate %39, %40, dim = 1 : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>
    %42 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %43 = stablehlo.constant dense<0.0> : tensor<f32>
    %44 = stablehlo.real_dynamic_slice %42, %14, %17, %18 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x2xf32>
    %45 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %46 = stablehlo.real_dynamic_slice %45, %19, %24, %25 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32>
    %47 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
    %48 = stablehlo.constant dense<0> : tensor<2xi64>
    %49 = stablehlo.compare LT, %27, %48, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %50 = stablehlo.constant dense<3> : tensor<2xi64>
    %51 = stablehlo.add %27, %50 : tensor<2xi64>
    %52 = stablehlo.select %49, %51, %27 : tensor<2xi1>, tensor<2xi64>
    %53 = "stablehlo.dynamic_gather"(%47, %52, %26) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<3x?xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x?xf32>
    %54 = stablehlo.reverse %arg0, dims = [0] : tensor<?x3xf32>
    %55 = stablehlo.dynamic_broadcast_in_dim %35, %6, dims = [0, 1] {known_expanding_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?x1xf32>, tensor<2xi64>) -> tensor<?x3xf32>
    %56 = stablehlo.multiply %54, %55 : tensor<?x3xf32>
    %57 = stablehlo.dot_general %arg0, %28, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<?x3xf32>, tensor<3x1xf32>) -> tensor<?x1xf32>
    return %41, %44, %46, %53, %56, %57 : tensor<?x5xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<2x?xf32>, tensor<?x3xf32>, tensor<?x1xf32>
  }
}
