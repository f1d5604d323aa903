#pragma once
/// The text form of constants and attributes, written in graph_text.cpp and read in graph_parse.cpp.
#include <string>

#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// true, 1, 2.0, f32, ~3, [2, 3], "text": the type can be told from the text. A literal has a ~ in front.
std::string attr_text(const Attr::Value& value);
/// "text", with a backslash before quotes and backslashes.
std::string in_quotes(std::string_view text);
/// Whether every element is the same one in memory.
bool one_value(const Tensor& t);

}  // namespace ferrite::detail
