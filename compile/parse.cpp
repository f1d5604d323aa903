/// `parse_graph` with the operations of tensors and of programs.
#include "ferrite/compile/graph/parse.h"
#include "ferrite/compile/scan_body.h"

namespace ferrite {

Graph parse_graph(std::string_view text, const ParseOptions& options) {
  constexpr detail::TextOperations all = {
      .find =
          [](std::string_view name) {
            const Primitive* const scan = detail::find_scan(name);
            return scan ? scan : find_primitive(name);
          },
      .has_body = [](const Primitive& op) { return detail::find_scan(op.name) != nullptr; },
      .give_body = detail::ScanBody::give,
  };
  return detail::parse(text, options, all);
}

}  // namespace ferrite
