#pragma once
// Checks that hidden elements change neither a value nor a gradient, and operands for the check.
#include <limits>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/sampling.h"
#include "support/compare.h"

namespace hidden {
using namespace ferrite;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline const double kNan = std::numeric_limits<double>::quiet_NaN();
inline const std::vector<double> kPoison = {kNan, kInfinity, -kInfinity};

using Function = std::function<Tensor(const Tensors& x)>;

/// Returns the value of f and the gradients of all operands.
inline Tensors values_and_gradients(const Function& f, const Tensors& operands) {
  Tape tape;
  Tensors x;
  for (const Tensor& t : operands) x.push_back(tape.watch(t));
  const Tensor y = f(x);
  Tensors all{detach(y)};
  for (const Tensor& g : detail::lenient_grad(tape, {sum(y), {}}, {x.data(), x.size()})) all.push_back(g);
  return all;
}

/// Checks f with values that are not finite at hidden elements: of each operand in turn, then of all.
inline void check_hidden(const std::string& name, const Function& f, const Tensors& operands, const Tensors& hidden,
                         std::size_t poisoned) {
  const Tensors clean = values_and_gradients(f, operands);
  BOOST_TEST_REQUIRE(std::isfinite(sum(cast(clean[0], Dtype::f64)).item<double>()), name);
  for (const double bad : kPoison)
    for (std::size_t which = 0; which <= poisoned; ++which) {
      Tensors x;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const bool here = i < poisoned && (which == i || which == poisoned);
        x.push_back(here ? where(hidden[i], bad, operands[i]) : operands[i]);
      }
      const Tensors got = values_and_gradients(f, x);
      for (std::size_t i = 0; i < got.size(); ++i)
        BOOST_TEST(support::identical(got[i], clean[i]),
                   name << ", " << bad << " in operand " << which << ", result " << i);
      for (std::size_t i = 0; i < poisoned; ++i)
        BOOST_TEST(sum(abs(where(hidden[i], got[i + 1], 0.0))).item<float>() == 0, name << ", gradient " << i);
    }
}

inline Tensor numbers(const std::vector<double>& v, const Shape& shape = {}) {
  return cast(Tensor::from(v, shape.rank() ? shape : Shape{std::ssize(v)}), Dtype::f32);
}
/// Returns numbers from a seed, in 0.1..0.9, which may serve as probabilities.
inline Tensor some(const Shape& shape, std::uint64_t seed) { return uniform(shape, {.seed = seed}, 0.1, 0.9); }
inline Tensor signs(const Shape& shape, std::uint64_t seed) {
  return where(lt(some(shape, seed), 0.5), -1.0, ones(shape));
}
inline Tensor classes(const Shape& shape, std::int64_t C, std::uint64_t seed) {
  return randint(shape, RandomKey{.seed = seed}, 0, C);
}
inline Tensor integers(const std::vector<std::int64_t>& v) { return Tensor::from(v, {std::ssize(v)}); }

}  // namespace hidden
