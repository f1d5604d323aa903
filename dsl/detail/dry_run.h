#pragma once
/// What layers give for any batch and any number of steps, found by running them on types alone.
#include "ferrite/dsl/network.h"

namespace ferrite::dsl::detail {

/// The symbols of a chain: batch and time.
inline SymbolicNumber batch() { return SymbolicNumber::symbol(0); }
inline SymbolicNumber time() { return SymbolicNumber::symbol(1); }
/// A type as text: "f32[B, T, 7]", and its shape alone.
std::string text_of(const SymbolicSpec& spec);
std::string shape_of(const SymbolicSpec& spec);

/// What a layer gives. Nothing is computed. Throws what the layer throws, and ShapeError, begun with `kind`, where an
/// extent other than an axis of time depends on the number of steps.
SymbolicSpec dry_run(const nn::Layer& layer, const SymbolicSpec& input, const std::string& kind);
/// Multiply-adds of the products that it consists of, for one sample of one step.
std::int64_t multiply_adds(const nn::Layer& layer, const SymbolicSpec& input);

}  // namespace ferrite::dsl::detail
