#pragma once
/// What the library's own operations have beside tensor/define.h: kernels of packets, and the lists of their families.
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/kernel/block.h"

namespace ferrite::detail {

/// Operations on packets: their function `f` takes a packet of floats, or one lane of anything else.
template <class Op, class T>
requires(!OfNumbers<Op> && !HasBlock<Op, T>) struct BlockOf<Op, T> {
  static constexpr Block choose() {
    if constexpr (kToBool<Op>) {
      return lane_block<Op, T, bool>;
    } else if constexpr (std::is_floating_point_v<T>) {
      return packet_block<Op, T>;
    } else {
      return lane_block<Op, T, T>;
    }
  }
  static constexpr Block kernel = choose();
};

/// x Phi(x), the primitive behind `gelu`.
Tensor gelu_exact(const Tensor& x);

/// A family of operations, collected by the registry.
using Family = std::span<const Primitive* const>;
Family arithmetic_family();
Family functions_family();
Family logic_family();
Family reduction_family();
Family prod_others_family();
Family product_family();
Family view_family();
Family window_family();
Family assembly_family();
Family indexing_family();
Family check_family();
Family creation_family();
Family random_family();
// Of composites.
Family composite_family();
Family composite_shape_family();
Family composite_value_family();
Family composite_padding_family();
Family composite_random_family();

}  // namespace ferrite::detail
