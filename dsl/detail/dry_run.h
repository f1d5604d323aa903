#pragma once
#include "ferrite/dsl/network.h"

namespace ferrite::dsl::detail {

/// Extents that stand for batch and time while shapes are inferred: primes that nobody chooses as a size.
inline constexpr std::int64_t kBatch = 1013;
inline constexpr std::int64_t kTime = 1009;

/// What a layer gives, run on shapes alone: nothing is computed. Throws what the layer throws.
Spec dry_run(const nn::Layer& layer, const Spec& input);
/// Multiply-adds of the products that it consists of, step by step.
std::int64_t multiply_adds(const nn::Layer& layer, const Spec& input);

/// Whether extents of the layer's output, other than its axis of time, change with the number of steps.
bool depends_on_steps(const nn::Layer& layer, const Spec& input, const Spec& output);

/// Whether axis 1 is time: in sequences [B, T, ...] and in tokens [B, T].
bool has_time(const Spec& spec);

/// The same shape for one sample of one step.
Spec single(const Spec& spec);

/// A text in which leading extents kBatch and kTime of bracketed shapes read B and T.
std::string symbolic(const std::string& text);

}  // namespace ferrite::dsl::detail
