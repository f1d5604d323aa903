#pragma once
/// Checks gradients of first and second order against central differences in f64.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

struct GradcheckOptions {
  int order = 1;            ///< 2 checks the gradient of the gradient as well
  int directions = 0;       ///< 0: full Jacobians; else so many random directions (for large inputs)
  double step = 6e-6;       ///< of the central difference, times max(1, |x|)
  double tolerance = 1e-7;  ///< |analytic - numeric| <= tolerance (1 + |numeric|)
  std::uint64_t seed = 0;   ///< of the directions and cotangents
};

/// Where analytic and numeric derivative differ most.
struct GradcheckReport {
  bool ok = true;
  int order = 1;            ///< the order at which the worst difference stands
  std::size_t input = 0;    ///< which input
  std::int64_t index = 0;   ///< which element of it, row-major; -1 for a direction
  std::int64_t output = 0;  ///< which element of the result, row-major; -1 for a direction
  double analytic = 0;
  double numeric = 0;
  std::int64_t compared = 0;  ///< number of comparisons

  explicit operator bool() const { return ok; }
  /// One sentence: "gradcheck: order 1, input 0, element 3, result 1: analytic 0.5, numeric 0.25".
  std::string str() const;
};

/// Compares the gradients of f at `inputs` (all f64) with central differences. f maps the inputs to one tensor of
/// any shape and must not depend on anything that changes. Throws DtypeError for inputs that are not f64 and
/// ValueError for a null function, no inputs, an order other than 1 or 2, and a step, tolerance or number of directions
/// with which nothing could be found.
GradcheckReport gradcheck(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                          const GradcheckOptions& options = {});

}  // namespace ferrite
