#pragma once
/// Nets around every causal word of the builder.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ferrite/dsl/builder.h"

namespace layer_catalogue {

constexpr std::int64_t kFeatures = 3, kSteps = 9;

/// Makes a net around one word, for a dtype.
using Words = std::function<ferrite::dsl::Builder()>;

/// Returns nets by word: on sequences of kFeatures, or tokens below 7, of up to kSteps steps if a capacity holds them.
std::map<std::string, std::vector<Words>> catalogue(ferrite::Dtype dtype);

/// Returns an input x [batch, steps, kFeatures], or tokens [batch, steps].
ferrite::Tensor input(const ferrite::dsl::Network& net, std::int64_t batch, ferrite::Dtype dtype,
                      std::int64_t steps = kSteps);

}  // namespace layer_catalogue
