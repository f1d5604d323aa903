#pragma once
#include "ferrite/dsl/network.h"

namespace ferrite::dsl::detail {

/// Extents that stand for batch and time while shapes are inferred.
inline constexpr std::int64_t kBatch = 97;
inline constexpr std::int64_t kTime = 89;

struct DryRun {
  Spec output;
  std::int64_t multiply_adds = 0;
};

/// Runs a layer on shapes alone: nothing is computed. Throws what the layer throws.
DryRun dry_run(const nn::Layer& layer, const Spec& input);

/// The same shape for one sample of one step.
Spec single(const Spec& spec);

/// A text in which leading extents kBatch and kTime of bracketed shapes read B and T.
std::string symbolic(const std::string& text);

}  // namespace ferrite::dsl::detail
