#pragma once
/// Checks gradients of first and second order against central differences in f64.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// Options of gradcheck: what is compared, and how closely.
struct GradcheckOptions {
  int order = 1;            ///< order 2 also checks the gradient of the gradient
  int directions = 0;       ///< 0: full Jacobians; n > 0: n random directions (for large inputs)
  double step = 6e-6;       ///< step of the central difference; for full Jacobians times max(1, |x|)
  double tolerance = 1e-7;  ///< |analytic - numeric| <= tolerance (1 + |numeric|)
  std::uint64_t seed = 0;   ///< seed of the directions and cotangents
};

/// The outcome of `gradcheck`: the place where analytic and numeric derivative differ most.
struct GradcheckReport {
  bool ok = true;             ///< whether all differences are within the tolerance
  int order = 1;              ///< order of the derivative with the largest difference
  std::size_t input = 0;      ///< index of the input; 0 for a direction
  std::int64_t index = 0;     ///< index of the input's element, row-major; -1 for a direction
  std::int64_t output = 0;    ///< index of the result's element, row-major; -1 for a direction
  double analytic = 0;        ///< derivative by gradients
  double numeric = 0;         ///< derivative by central differences
  std::int64_t compared = 0;  ///< number of comparisons made

  explicit operator bool() const { return ok; }
  /// Returns one sentence: "gradcheck: order 1, input 0, element 3, result 1: analytic 0.5, numeric 0.25".
  std::string str() const;
};

/// Compares the gradients of f at `inputs` (all f64) with central differences. f maps the inputs to one tensor of
/// any shape and must not depend on anything that changes. Throws DtypeError for inputs that are not f64 and
/// ValueError for a null function, no inputs, an order other than 1 or 2, and a step, tolerance or number of directions
/// with which nothing could be found.
GradcheckReport gradcheck(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                          const GradcheckOptions& options = {});

}  // namespace ferrite
