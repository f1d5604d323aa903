#pragma once
/// Writing StableHLO programs as text.
#include "ferrite/exchange/emit/export_program.h"

namespace ferrite::exchange::detail {

/// Returns StableHLO's name of a dtype, "f32", ..., "i1".
std::string_view hlo_dtype(Dtype dtype);
/// Returns the text of a type, "tensor<2x?xf32>".
std::string hlo_type(const Spec& spec);
/// Returns the text of a list of integers, "[1, 0]".
std::string hlo_list(const Shape& list);
/// Returns the elements of a constant as text, "dense<...>".
std::string hlo_elements(const Tensor& tensor);

/// Returns the text of a module with the program as its function `@main`. Values are numbered in the order of the text.
/// With `locations`, operations are followed by the layer to which they belong.
std::string hlo_text(const ExportProgram& program, const std::string& name, bool locations);

}  // namespace ferrite::exchange::detail
