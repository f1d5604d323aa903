// %arg0: axis 0 is time
// %arg0: axis 1 is batch
// result 0: axis 0 is batch
// result 1: axis 0 is time
// result 1: axis 1 is batch
module @open_recurrence_gathers {
  func.func public @main(%arg0: tensor<?x?x2xf32>) -> (tensor<?x2xf32>, tensor<?x?x2xf32>) {
    %0 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?x2xf32>) -> tensor<i32>
    %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<i64>
    %2 = stablehlo.reshape %1 : (tensor<i64>) -> tensor<1xi64>
    %3 = stablehlo.constant dense<2> : tensor<1xi64>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %5 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?x2xf32>) -> tensor<i32>
    %6 = stablehlo.convert %5 : (tensor<i32>) -> tensor<i64>
    %7 = stablehlo.reshape %6 : (tensor<i64>) -> tensor<1xi64>
    %8 = stablehlo.concatenate %7, %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
    %9 = stablehlo.constant dense<-1> : tensor<i64>
    %10 = stablehlo.add %6, %9 : tensor<i64>
    %11 = stablehlo.constant dense<1> : tensor<1xi64>
    %12 = stablehlo.concatenate %11, %2, %3, dim = 0 : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
    %13 = stablehlo.constant dense<1> : tensor<3xi64>
    %14 = stablehlo.constant dense<"0x0000803F000000400000404000008040"> : tensor<2x2xf32>
    %15 = stablehlo.constant dense<0.0> : tensor<f32>
    %16 = stablehlo.dynamic_broadcast_in_dim %15, %4, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    %17 = stablehlo.dynamic_broadcast_in_dim %15, %8, dims = [] : (tensor<f32>, tensor<3xi64>) -> tensor<?x?x2xf32>
    %18 = stablehlo.constant dense<0> : tensor<i64>
    %19:3 = stablehlo.while(%step19 = %18, %now19_0 = %16, %now19_1 = %17) : tensor<i64>, tensor<?x2xf32>, tensor<?x?x2xf32>
    cond {
      %20 = stablehlo.compare LT, %step19, %6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %20 : tensor<i1>
    } do {
      %21 = stablehlo.subtract %10, %step19 : tensor<i64>
      %22 = stablehlo.reshape %21 : (tensor<i64>) -> tensor<1xi64>
      %23 = stablehlo.reshape %18 : (tensor<i64>) -> tensor<1xi64>
      %24 = stablehlo.reshape %18 : (tensor<i64>) -> tensor<1xi64>
      %25 = stablehlo.concatenate %22, %23, %24, dim = 0 : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
      %26 = stablehlo.add %25, %12 : tensor<3xi64>
      %27 = stablehlo.real_dynamic_slice %arg0, %25, %26, %13 : (tensor<?x?x2xf32>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<1x?x2xf32>
      %28 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %29 = stablehlo.reduce(%27 init: %28) applies stablehlo.maximum across dimensions = [0] : (tensor<1x?x2xf32>, tensor<f32>) -> tensor<?x2xf32>
      %30 = stablehlo.dot_general %now19_0, %14, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
      %31 = stablehlo.add %30, %29 : tensor<?x2xf32>
      %32 = stablehlo.tanh %31 : tensor<?x2xf32>
      %33 = stablehlo.dynamic_broadcast_in_dim %32, %12, dims = [1, 2] {known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<?x2xf32>, tensor<3xi64>) -> tensor<1x?x2xf32>
      %34 = stablehlo.reshape %21 : (tensor<i64>) -> tensor<1x1xi64>
      %35 = "stablehlo.scatter"(%now19_1, %34, %33) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        stablehlo.return %new : tensor<f32>
      }) : (tensor<?x?x2xf32>, tensor<1x1xi64>, tensor<1x?x2xf32>) -> tensor<?x?x2xf32>
      %36 = stablehlo.constant dense<1> : tensor<i64>
      %37 = stablehlo.add %step19, %36 : tensor<i64>
      stablehlo.return %37, %32, %35 : tensor<i64>, tensor<?x2xf32>, tensor<?x?x2xf32>
    }
    return %19#1, %19#2 : tensor<?x2xf32>, tensor<?x?x2xf32>
  }
}
