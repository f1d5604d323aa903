#pragma once
/// Programs in another floating-point type.
#include "ferrite/compile/graph.h"

namespace ferrite::exchange::detail {

/// Returns a program as one without variables: their present values are constants. Throws ValueError, its message begun
/// with `who`, for a program that assigns variables or draws random numbers.
Graph with_constants(Graph graph, const std::string& who);

/// Returns a program whose f32 values are `dtype`, f32 or f64, and whose operations are those of tensors: an operation
/// of a layer, such as `gru_sequence`, is replaced by its definition. Literals keep all digits of their doubles. Values
/// of storage types stay what they are. The program must have no variables.
Graph of_dtype(const Graph& graph, Dtype dtype);

}  // namespace ferrite::exchange::detail
