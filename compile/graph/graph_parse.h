#pragma once
/// Reads the text form of graphs, given what its words stand for.
#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// The operations that a text may name, and how those that carry a program are given it.
struct TextOperations {
  const Primitive* (*find)(std::string_view name) = nullptr;  ///< null for an unknown name
  bool (*has_body)(const Primitive& op) = nullptr;
  void (*give_body)(Attrs& attrs, Graph body) = nullptr;  ///< may throw TraceError
};

Graph parse(std::string_view text, const ParseOptions& options, const TextOperations& operations);

}  // namespace ferrite::detail
