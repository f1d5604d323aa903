#pragma once
/// StableHLO programs as text.
#include "ferrite/exchange/emit/export_program.h"

namespace ferrite::exchange::detail {

/// "f32", ..., "i1".
std::string_view hlo_dtype(Dtype dtype);
/// "tensor<2x?xf32>".
std::string hlo_type(const Spec& spec);
/// "[1, 0]".
std::string hlo_list(const Shape& list);
/// "dense<...>".
std::string hlo_elements(const Tensor& tensor);

/// The text of a module with that function as `@main`. Values are numbered in the order of the text. With `locations`,
/// operations are followed by the layer to which they belong.
std::string hlo_text(const ExportProgram& program, const std::string& name, bool locations);

}  // namespace ferrite::exchange::detail
