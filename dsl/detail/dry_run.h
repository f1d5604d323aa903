#pragma once
/// What layers give for any batch and any number of steps, found by running them on types alone.
#include "ferrite/dsl/network.h"

namespace ferrite::dsl::detail {

/// The symbols of a chain: batch and time.
inline SymbolicNumber batch() { return SymbolicNumber::symbol(0); }
inline SymbolicNumber time() { return SymbolicNumber::symbol(1); }
/// A type as text: "f32[B, T, 7]", and its shape alone. T is the number of steps of the network's input.
std::string text_of(const Flow& flow);
std::string shape_of(const Flow& flow);

/// What a layer gives. Nothing is computed. A layer may give fewer or more steps than it gets, floor((T + offset) /
/// stride), a stride of at most 256 where its pace does not tell it. Throws what the layer throws, and ShapeError,
/// begun with `kind`, where the number of steps changes otherwise and where another extent depends on it.
Flow dry_run(const nn::Layer& layer, const Flow& in, const std::string& kind);
/// Multiply-adds of the products that a layer from `in` to `out` consists of, for one sample of one step of the
/// network's input: behind a stride of 2 half of those of a step, rounded up. Of a layer that cannot run on a single
/// step, what it does once for a whole sequence is not among them.
std::int64_t multiply_adds(const nn::Layer& layer, const Flow& in, const Flow& out);

}  // namespace ferrite::dsl::detail
