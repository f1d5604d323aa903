#pragma once
/// Helpers of the oracles of draws.
#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/draws.h"

namespace oracles {

/// Returns the key of an application: the operands from `first` on replace its seed and stream, and add to its call.
inline RandomKey key_of(std::span<const Dense> in, std::size_t first, const KeyAttrs& attrs) {
  RandomKey key = attrs.key();
  if (in.size() == first + 2)
    key = {static_cast<std::uint64_t>(in[first].values[0]), static_cast<std::uint64_t>(in[first].values[1]), key.call};
  if (in.size() > first) key.call += static_cast<std::uint64_t>(in.back().values[0]);
  return key;
}

}  // namespace oracles
