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
    %28 = stablehlo.constant dense<"0x0000803F0000004000004040"> : tensor<3x1xf32>
    %29 = stablehlo.constant dense<3.0> : tensor<f32>
    %30 = stablehlo.dynamic_broadcast_in_dim %29, %4, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x3xf32>
    %31 = stablehlo.broadcast_in_dim %29, dims = [] : (tensor<f32>) -> tensor<1x3xf32>
    %32 = stablehlo.concatenate %30, %arg0, %31, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
    %33 = stablehlo.dynamic_broadcast_in_dim %29, %11, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %34 = stablehlo.concatenate %32, %33, dim = 1 : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>
    %35 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %36 = stablehlo.constant dense<0.0> : tensor<f32>
    %37 = stablehlo.real_dynamic_slice %35, %12, %15, %16 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x2xf32>
    %38 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %39 = stablehlo.real_dynamic_slice %38, %17, %22, %23 : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32>
    %40 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
    %41 = stablehlo.constant dense<0> : tensor<2xi64>
    %42 = stablehlo.compare LT, %27, %41, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %43 = stablehlo.constant dense<3> : tensor<2xi64>
    %44 = stablehlo.add %27, %43 : tensor<2xi64>
    %45 = stablehlo.select %42, %44, %27 : tensor<2xi1>, tensor<2xi64>
    %46 = "stablehlo.dynamic_gather"(%40, %45, %25) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<3x?xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x?xf32>
    %47 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %48 = stablehlo.convert %47 : (tensor<?xi64>) -> tensor<?xf64>
    %49 = stablehlo.constant dense<0.5> : tensor<f64>
    %50 = stablehlo.dynamic_broadcast_in_dim %49, %2, dims = [] : (tensor<f64>, tensor<1xi64>) -> tensor<?xf64>
    %51 = stablehlo.add %48, %50 : tensor<?xf64>
    %52 = stablehlo.convert %51 : (tensor<?xf64>) -> tensor<?xf32>
    %53 = stablehlo.dynamic_reshape %52, %26 : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x1xf32>
    %54 = stablehlo.reverse %arg0, dims = [0] : tensor<?x3xf32>
    %55 = stablehlo.dynamic_broadcast_in_dim %53, %4, dims = [0, 1] {known_expanding_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?x1xf32>, tensor<2xi64>) -> tensor<?x3xf32>
    %56 = stablehlo.multiply %54, %55 : tensor<?x3xf32>
    %57 = stablehlo.dot_general %arg0, %28, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<?x3xf32>, tensor<3x1xf32>) -> tensor<?x1xf32>
    return %34, %37, %39, %46, %56, %57 : tensor<?x5xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<2x?xf32>, tensor<?x3xf32>, tensor<?x1xf32>
  }
}
