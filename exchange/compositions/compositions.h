#pragma once
/// Operations that other formats lack, as functions of operations that they have. The `reference` of a record gives the
/// operation bit for bit; these compositions agree to rounding, and suit formats whose windows are slices.
#include <vector>

#include "ferrite/tensor/primitive.h"

namespace ferrite::exchange::detail {

/// Returns the padding after `extent` elements with which there are exactly `size` windows. Where several amounts fit,
/// it is the padding in front if that is one of them, which is symmetric and the same for every extent; else the least
/// amount. If the windows end before the elements do, it is 0.
std::int64_t space_behind(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                          std::int64_t before, std::int64_t size);

/// The constants and result types of an application that is composed.
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

/// Returns the composition of an operation, or null.
Composition find_composition(const Primitive& op);

}  // namespace ferrite::exchange::detail
