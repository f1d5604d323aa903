module @indexing {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<3x2xi64>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
    %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %2 = stablehlo.reshape %1 : (tensor<3xf32>) -> tensor<3x1xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x4xf32>
    %4 = stablehlo.compare EQ, %arg0, %3, FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    %5 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    %6 = stablehlo.or %4, %5 : tensor<3x4xi1>
    %7 = stablehlo.iota dim = 1 : tensor<3x4xi64>
    %8 = stablehlo.constant dense<9223372036854775807> : tensor<3x4xi64>
    %9 = stablehlo.select %6, %7, %8 : tensor<3x4xi1>, tensor<3x4xi64>
    %10 = stablehlo.constant dense<9223372036854775807> : tensor<i64>
    %11 = stablehlo.reduce(%9 init: %10) applies stablehlo.minimum across dimensions = [1] : (tensor<3x4xi64>, tensor<i64>) -> tensor<3xi64>
    %12 = stablehlo.constant dense<0> : tensor<3xi64>
    %13 = stablehlo.compare LT, %11, %12, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %14 = stablehlo.constant dense<3> : tensor<3xi64>
    %15 = stablehlo.add %11, %14 : tensor<3xi64>
    %16 = stablehlo.select %13, %15, %11 : tensor<3xi1>, tensor<3xi64>
    %17 = "stablehlo.gather"(%arg0, %16) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
    %18 = stablehlo.iota dim = 0 : tensor<3x2xi64>
    %19 = stablehlo.reshape %18 : (tensor<3x2xi64>) -> tensor<3x2x1xi64>
    %20 = stablehlo.constant dense<0> : tensor<3x2xi64>
    %21 = stablehlo.compare LT, %arg1, %20, SIGNED : (tensor<3x2xi64>, tensor<3x2xi64>) -> tensor<3x2xi1>
    %22 = stablehlo.constant dense<4> : tensor<3x2xi64>
    %23 = stablehlo.add %arg1, %22 : tensor<3x2xi64>
    %24 = stablehlo.select %21, %23, %arg1 : tensor<3x2xi1>, tensor<3x2xi64>
    %25 = stablehlo.reshape %24 : (tensor<3x2xi64>) -> tensor<3x2x1xi64>
    %26 = stablehlo.concatenate %19, %25, dim = 2 : (tensor<3x2x1xi64>, tensor<3x2x1xi64>) -> tensor<3x2x2xi64>
    %27 = "stablehlo.gather"(%arg0, %26) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<3x4xf32>, tensor<3x2x2xi64>) -> tensor<3x2xf32>
    %28 = stablehlo.iota dim = 0 : tensor<3x2xi64>
    %29 = stablehlo.reshape %28 : (tensor<3x2xi64>) -> tensor<3x2x1xi64>
    %30 = stablehlo.compare LT, %arg1, %20, SIGNED : (tensor<3x2xi64>, tensor<3x2xi64>) -> tensor<3x2xi1>
    %31 = stablehlo.add %arg1, %22 : tensor<3x2xi64>
    %32 = stablehlo.select %30, %31, %arg1 : tensor<3x2xi1>, tensor<3x2xi64>
    %33 = stablehlo.reshape %32 : (tensor<3x2xi64>) -> tensor<3x2x1xi64>
    %34 = stablehlo.concatenate %29, %33, dim = 2 : (tensor<3x2x1xi64>, tensor<3x2x1xi64>) -> tensor<3x2x2xi64>
    %35 = "stablehlo.scatter"(%arg0, %34, %27) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%old: tensor<f32>, %new: tensor<f32>):
      %both = stablehlo.add %old, %new : tensor<f32>
      stablehlo.return %both : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<3x2x2xi64>, tensor<3x2xf32>) -> tensor<3x4xf32>
    return %17, %35 : tensor<3x4xf32>, tensor<3x4xf32>
  }
}
