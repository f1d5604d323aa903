#pragma once
/// Operations that other formats have no word for, as functions of operations that they have. Beside the `reference` of
/// a record, which gives the operation's bits: these agree to rounding, and suit formats whose windows are slices.
#include <vector>

#include "ferrite/tensor/primitive.h"

namespace ferrite::exchange::detail {

/// What stands behind `extent` elements so that there are just `size` windows. Of the numbers that give them it is what
/// stands in front, if that is one: the same for every extent, and symmetric. Where windows end before the elements do
/// there is nothing to add.
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
