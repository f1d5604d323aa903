#pragma once
/// The text form of constants and attributes: written in print.cpp, read in parse.cpp.
#include <string>

#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Stands before the layer of a node, behind its attributes; no operation has an attribute of that name.
inline constexpr std::string_view kScopeWord = "scope";

/// " name=value" for every constant that is set. The type of a value can be told from its text: true, 1, 2.0, f32, ~3
/// for a literal, [2, 3], "text".
std::string attrs_text(const Attrs& attrs);
/// "text", with a backslash before quotes and backslashes.
std::string in_quotes(std::string_view text);
/// Whether every element is the same one in memory.
bool one_value(const Tensor& t);

}  // namespace ferrite::detail
