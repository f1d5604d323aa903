// %arg0: axis 0 is batch
// result 0: axis 0 is batch
// result 2: axis 0 is 2*batch
// result 3: axis 1 is batch
module @open_affine_gathers {
  func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<?x2xf32>, tensor<2xf32>, tensor<?xf32>, tensor<3x?xf32>) {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<i64>
    %2 = stablehlo.reshape %1 : (tensor<i64>) -> tensor<1xi64>
    %3 = stablehlo.constant dense<2> : tensor<1xi64>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %5 = stablehlo.convert %1 : (tensor<i64>) -> tensor<f32>
    %6 = stablehlo.constant dense<2> : tensor<i64>
    %7 = stablehlo.multiply %1, %6 : tensor<i64>
    %8 = stablehlo.reshape %7 : (tensor<i64>) -> tensor<1xi64>
    %9 = stablehlo.constant dense<1> : tensor<1xi64>
    %10 = stablehlo.concatenate %8, %9, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %11 = stablehlo.constant dense<3> : tensor<1xi64>
    %12 = stablehlo.concatenate %11, %2, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %13 = stablehlo.constant dense<3> : tensor<i64>
    %14 = stablehlo.concatenate %11, %2, %9, dim = 0 : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
    %15 = stablehlo.constant dense<"0x0000803F0000004000004040000080400000A0400000C040"> : tensor<3x2xf32>
    %16 = stablehlo.constant dense<"0x0000003F000080BF"> : tensor<2xf32>
    %17 = stablehlo.dot_general %arg0, %15, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %18 = stablehlo.dynamic_broadcast_in_dim %16, %4, dims = [1] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<2xi64>) -> tensor<?x2xf32>
    %19 = stablehlo.add %17, %18 : tensor<?x2xf32>
    %20 = stablehlo.constant dense<0.0> : tensor<f32>
    %21 = stablehlo.dynamic_broadcast_in_dim %20, %4, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %22 = stablehlo.maximum %19, %21 : tensor<?x2xf32>
    %23 = stablehlo.reduce(%22 init: %20) applies stablehlo.add across dimensions = [0] : (tensor<?x2xf32>, tensor<f32>) -> tensor<2xf32>
    %24 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %25 = stablehlo.divide %23, %24 : tensor<2xf32>
    %26 = stablehlo.dynamic_iota %8, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %27 = stablehlo.dynamic_broadcast_in_dim %6, %8, dims = [] : (tensor<i64>, tensor<1xi64>) -> tensor<?xi64>
    %28 = stablehlo.remainder %26, %27 : tensor<?xi64>
    %29 = stablehlo.divide %26, %27 : tensor<?xi64>
    %30 = stablehlo.dynamic_broadcast_in_dim %29, %10, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xi64>, tensor<2xi64>) -> tensor<?x1xi64>
    %31 = stablehlo.dynamic_broadcast_in_dim %28, %10, dims = [0] {known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?xi64>, tensor<2xi64>) -> tensor<?x1xi64>
    %32 = stablehlo.concatenate %30, %31, dim = 1 : (tensor<?x1xi64>, tensor<?x1xi64>) -> tensor<?x2xi64>
    %33 = "stablehlo.gather"(%22, %32) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<?x2xf32>, tensor<?x2xi64>) -> tensor<?xf32>
    %34 = stablehlo.dynamic_iota %12, dim = 1 : (tensor<2xi64>) -> tensor<3x?xi64>
    %35 = stablehlo.dynamic_iota %12, dim = 0 : (tensor<2xi64>) -> tensor<3x?xi64>
    %36 = stablehlo.dynamic_broadcast_in_dim %1, %12, dims = [] : (tensor<i64>, tensor<2xi64>) -> tensor<3x?xi64>
    %37 = stablehlo.multiply %35, %36 : tensor<3x?xi64>
    %38 = stablehlo.add %34, %37 : tensor<3x?xi64>
    %39 = stablehlo.dynamic_broadcast_in_dim %13, %12, dims = [] : (tensor<i64>, tensor<2xi64>) -> tensor<3x?xi64>
    %40 = stablehlo.remainder %38, %39 : tensor<3x?xi64>
    %41 = stablehlo.divide %38, %39 : tensor<3x?xi64>
    %42 = stablehlo.dynamic_broadcast_in_dim %41, %14, dims = [0, 1] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<3x?xi64>, tensor<3xi64>) -> tensor<3x?x1xi64>
    %43 = stablehlo.dynamic_broadcast_in_dim %40, %14, dims = [0, 1] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<3x?xi64>, tensor<3xi64>) -> tensor<3x?x1xi64>
    %44 = stablehlo.concatenate %42, %43, dim = 2 : (tensor<3x?x1xi64>, tensor<3x?x1xi64>) -> tensor<3x?x2xi64>
    %45 = "stablehlo.gather"(%arg0, %44) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<?x3xf32>, tensor<3x?x2xi64>) -> tensor<3x?xf32>
    return %22, %25, %33, %45 : tensor<?x2xf32>, tensor<2xf32>, tensor<?xf32>, tensor<3x?xf32>
  }
}
