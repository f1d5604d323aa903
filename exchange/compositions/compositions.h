#pragma once
/// Operations that other formats have no word for, as functions of operations that they have. Beside the `reference` of
/// a record, which gives the operation's bits: these agree to rounding, and suit formats whose windows are slices.
#include <vector>

#include "ferrite/tensor/primitive.h"

namespace ferrite::exchange::detail {

/// The padding behind `extent` elements with which there are exactly `size` windows. Where several amounts do, the
/// result is the padding in front, if it is one of them: that is symmetric, and the same for every extent; else it is
/// the least. If the windows end before the elements do, it is 0.
std::int64_t space_behind(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                          std::int64_t before, std::int64_t size);

/// One application as a composition sees it.
struct Composed {
  const Attrs& attrs;
  const std::vector<Spec>& out;
};
using Composition = Tensors (*)(const Composed& c, const Tensors& in);

struct NamedComposition {
  std::string_view operation;
  Composition compose;
};
using Compositions = std::span<const NamedComposition>;
Compositions activation_compositions();
Compositions window_compositions();
Compositions pooling_compositions();
Compositions scan_compositions();
Compositions linear_scan_compositions();
Compositions selective_scan_compositions();

/// That of an operation, or null.
Composition find_composition(const Primitive& op);

}  // namespace ferrite::exchange::detail
