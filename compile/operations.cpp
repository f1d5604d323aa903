/// All operations that a program may contain: those of tensors, those that the compiler adds, and those that a text
/// names.
#include "ferrite/compile/operations.h"

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/compile/detail/program.h"
#include "ferrite/compile/graph/graph_text.h"
#include "ferrite/compile/scan_body.h"

namespace ferrite {

std::span<const Primitive* const> program_operations() {
  static const Primitive* const compiled[] = {&detail::compiled_primitive()};
  static const auto all = detail::joined({detail::scan_operations(), compiled, detail::custom_gradients()});
  return all;
}

namespace {

/// Returns a composite that every trace holds as one application, because it has its own gradient.
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
