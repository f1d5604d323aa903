#pragma once
/// Finds the outputs of layers for any batch and any number of steps by running the layers on types alone.
#include "ferrite/dsl/network.h"

namespace ferrite::dsl::detail {

/// The two symbols of a chain: batch B and time T.
inline SymbolicNumber batch() { return SymbolicNumber::symbol(0); }
inline SymbolicNumber time() { return SymbolicNumber::symbol(1); }
/// Returns a type as text, "f32[B, T, 7]", or its shape alone. T is the number of steps of the network's input.
std::string text_of(const Flow& flow);
std::string shape_of(const Flow& flow);

/// Returns the type of a layer's output, without computing values. The layer may change the number of steps to floor((T
/// + offset) / stride); if its pace does not give the stride, the stride must be at most 256. Throws what the layer
/// throws, and a ShapeError that begins with `kind` when the number of steps changes in another way or another extent
/// depends on it.
Flow dry_run(const nn::Layer& layer, const Flow& in, const std::string& kind);
/// Returns the multiply-adds of all products in a layer from `in` to `out`, for one sample and one step of the
/// network's input; after a stride of 2 that is half of the layer's own, rounded up. For a layer that cannot run on a
/// single step, work done once per sequence is not counted.
std::int64_t multiply_adds(const nn::Layer& layer, const Flow& in, const Flow& out);

}  // namespace ferrite::dsl::detail
