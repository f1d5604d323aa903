#pragma once
/// The text form of graphs, constants and attributes; reading is given what the words stand for.
#include <string>

#include "ferrite/compile/graph.h"
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

/// The operations that a text may name, and how those that carry a program are given it.
struct TextOperations {
  const Primitive* (*find)(std::string_view name) = nullptr;  ///< null for an unknown name
  bool (*has_body)(const Primitive& op) = nullptr;
  void (*give_body)(Attrs& attrs, Graph body) = nullptr;  ///< may throw TraceError
};

Graph parse(std::string_view text, const ParseOptions& options, const TextOperations& operations);

}  // namespace ferrite::detail
