/// `parse_graph` with the operations of tensors and of programs.
#include "ferrite/compile/graph/graph_parse.h"
#include "ferrite/compile/scan_body.h"

namespace ferrite {
namespace {

/// Composites that every trace holds as one application: those with a gradient of their own.
const Primitive* find_whole(std::string_view name) {
  for (const Primitive* op : composites())
    if (op->name == name && op->differentiable()) return op;
  return nullptr;
}

}  // namespace

Graph parse_graph(std::string_view text, const ParseOptions& options) {
  constexpr detail::TextOperations all = {
      .find =
          [](std::string_view name) {
            if (const Primitive* const scan = detail::find_scan(name)) return scan;
            const Primitive* const op = find_primitive(name);
            return op ? op : find_whole(name);
          },
      .has_body = [](const Primitive& op) { return detail::find_scan(op.name) != nullptr; },
      .give_body = detail::ScanBody::give,
  };
  return detail::parse(text, options, all);
}

}  // namespace ferrite
