// Numbers in messages: in any locale as C++ writes them, NaN without a sign; and the error when memory runs out.
#include <clocale>
#include <limits>

#include "ferrite/nn/losses/regression.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/ops.h"
#include "support/comma_locale.h"
#include "support/compare.h"
#include "support/sanitized.h"

using namespace ferrite;
using support::says;

BOOST_AUTO_TEST_SUITE(messages)

/// std::to_string follows setlocale, streams follow std::locale::global.
BOOST_AUTO_TEST_CASE(numbers_do_not_follow_the_locale) {
  const support::CommaLocale comma;
  const char* const german = std::setlocale(LC_ALL, "de_DE.UTF-8");
  BOOST_TEST_MESSAGE("the C locale is " << (german ? german : "kept: de_DE.UTF-8 is not installed"));
  const Tensor x = ones({2});
  BOOST_CHECK_EXCEPTION(nn::smooth_l1_loss(x, x, -1.5), ValueError, says("got -1.5"));
  BOOST_CHECK_EXCEPTION(cholesky(-2.5 * eye(2)), ValueError, says("pivot 0 is -2.5"));
  BOOST_CHECK_EXCEPTION(checked(1.5 * x, 0.0, 1.25, "x: value"), ValueError, says("x: value 1.5 lies outside 0..1.25"));
  BOOST_CHECK_EXCEPTION(checked(1.5 * x, 0.0, 1.25, "x: value"), RangeError,
                        [](const RangeError& e) { return e.who() == "x: value"; });
  std::setlocale(LC_ALL, "C");
}

BOOST_AUTO_TEST_CASE(nan_has_no_sign) {
  const double nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0);
  BOOST_TEST(Scalar(nan).str() == "nan");
  const Tensor x = ones({2});
  BOOST_CHECK_EXCEPTION(nn::smooth_l1_loss(x, x, nan), ValueError, says("got nan"));
  BOOST_CHECK_EXCEPTION(checked(nan * x, 0.0, 1.0, "x: value"), ValueError, says("x: value nan lies outside 0..1"));
}

/// The size is more than any machine has, and less than the library refuses by itself.
BOOST_AUTO_TEST_CASE(a_tensor_beyond_the_memory_is_refused_with_its_size) {
  if (support::kSanitized) return;  // its allocators end the program
  BOOST_CHECK_EXCEPTION(full({1 << 22, 1 << 22}, 1.0, Dtype::f64), MemoryError,
                        says("tensor: no memory for f64[4194304, 4194304]: 140737488355328 bytes"));
}

/// The error names the operation whose result is too large.
BOOST_AUTO_TEST_CASE(results_that_are_too_large_are_refused_in_the_name_of_the_operation) {
  const Tensor x = expand(ones({1}), {std::int64_t{1} << 62});
  BOOST_CHECK_EXCEPTION(x + 1, ShapeError, says("add: too large: f32[4611686018427387904]"));
}

BOOST_AUTO_TEST_SUITE_END()
