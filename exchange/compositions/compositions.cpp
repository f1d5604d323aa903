/// Finds the composition of an operation.
#include "ferrite/exchange/compositions/compositions.h"

namespace ferrite::exchange::detail {

Composition find_composition(const Primitive& op) {
  for (const Compositions family : {activation_compositions(), window_compositions(), pooling_compositions(),
                                    scan_compositions(), linear_scan_compositions(), selective_scan_compositions()})
    for (const NamedComposition& c : family)
      if (c.operation == op.name) return c.compose;
  return nullptr;
}

}  // namespace ferrite::exchange::detail
