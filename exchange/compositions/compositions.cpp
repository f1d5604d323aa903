/// Finds the composition of an operation.
#include "ferrite/exchange/compositions/compositions.h"

#include <algorithm>

namespace ferrite::exchange::detail {

std::int64_t space_behind(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                          std::int64_t before, std::int64_t size) {
  const std::int64_t exact = (size - 1) * stride + (kernel - 1) * dilation + 1 - before - extent;
  const std::int64_t least = std::max<std::int64_t>(exact, 0), most = exact + stride - 1;
  return before >= least && before <= most ? before : least;
}

Composition find_composition(const Primitive& op) {
  for (const Compositions family : {activation_compositions(), window_compositions(), pooling_compositions(),
                                    scan_compositions(), linear_scan_compositions(), selective_scan_compositions()})
    for (const NamedComposition& c : family)
      if (c.operation == op.name) return c.compose;
  return nullptr;
}

}  // namespace ferrite::exchange::detail
