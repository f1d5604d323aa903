#pragma once
/// The text form of graphs, constants and attributes. The reader is passed the operations and variables that names
/// mean.
#include <string>

#include "ferrite/compile/graph.h"
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// The word before the layer of a node, after its attributes; no operation has an attribute of that name.
inline constexpr std::string_view kScopeWord = "scope";

/// Returns " name=value" for every constant that is set. The type of a value can be told from its text: true, 1, 2.0,
/// f32, ~3 for a literal, [2, 3], "text".
std::string attrs_text(const Attrs& attrs);
/// Returns the text in double quotes, with a backslash before each double quote and backslash in it.
std::string in_quotes(std::string_view text);
/// Returns whether all elements of t are the same element in memory.
bool one_value(const Tensor& t);

/// The operations that a text may name, and functions that give a program to those that carry one.
struct TextOperations {
  const Primitive* (*find)(std::string_view name) = nullptr;  ///< returns null for an unknown name
  bool (*has_body)(const Primitive& op) = nullptr;
  void (*give_body)(Attrs& attrs, Graph body) = nullptr;  ///< may throw TraceError
};

/// Reads a graph from its text form. Throws TraceError, naming the line, when the text is not a graph.
Graph parse(std::string_view text, const ParseOptions& options, const TextOperations& operations);

}  // namespace ferrite::detail
