// Pooling: errors and their messages, and bits that do not depend on threads.
#include "ferrite/tensor/pooling.h"

#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/sampling.h"
#include "ferrite/tensor/threads.h"
#include "support/wrong_calls.h"

using namespace ferrite;

namespace {

Tensor some(const Shape& shape) { return uniform(shape, {.seed = 18}, -1, 1); }

/// Returns numbers with few distinct values, so that many are equal, with NaN, infinities and zeros of both signs.
Tensor special(const Shape& shape, Dtype dtype) {
  Tensor x = cast(randint(shape, {.seed = 19}, -3, 8), Dtype::f64);
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  x = where(eq(x, 7), nan, where(eq(x, 6), -infinite, where(eq(x, 5), -0.0, where(eq(x, 4), 0.0, x))));
  return cast(x, dtype);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pooling)

BOOST_AUTO_TEST_CASE(wrong_calls_say_what_is_wrong) {
  const Tensor x = some({2, 3, 7});
  const Tensor places = Tensor::from({std::int64_t{0}, std::int64_t{9}}, {1, 1, 2});
  const std::pair<std::function<void()>, std::string> shapes[] = {
      {[&] { (void)max_pool2d(some({7}), {2}); }, "max_pool2d: expects rank 4, or 3 without a batch, got [7]"},
      {[&] { (void)max_pool1d(x, {}); }, "max_pool1d: kernel needs one number or 1, got []"},
      {[&] {
         (void)max_pool1d(x, {2, 2});
       },
       "max_pool1d: kernel needs one number, got [2, 2]"},
      {[&] { (void)max_pool1d(x, {8}); }, "max_pool1d: no window of 8 elements fits axis 2 of [2, 3, 7]"},
      {[&] {
         (void)avg_pool1d(some({2, 3, 0}), {1});
       },
       "avg_pool1d: no window of 1 elements fits axis 2 of [2, 3, 0]"},
      {[&] {
         (void)adaptive_avg_pool1d(some({2, 3, 0}), {1});
       },
       "adaptive_avg_pool1d: axis 2 of [2, 3, 0] has no elements"},
      {[&] { (void)adaptive_max_pool2d(x, {}); }, "adaptive_max_pool2d: size needs one number or 2, got []"},
      {[&] { (void)max_unpool1d(x, places, {2}); }, "max_unpool1d: indices [1, 1, 2] do not fit [2, 3, 7]"},
      {[&] {
         (void)max_unpool1d(some({1, 1, 2}), places, {2});
       },
       "plane_scatter: index 9 is not in a plane of 4 elements"},
  };
  for (const auto& [call, message] : shapes) BOOST_TEST(support::message_of<ShapeError>(call) == message);
  const std::pair<std::function<void()>, std::string> values[] = {
      {[&] { (void)max_pool1d(x, {0}); }, "max_pool1d: kernel must be at least 1, got [0]"},
      {[&] { (void)max_pool1d(x, {2}, {.stride = {-1}}); }, "max_pool1d: stride must be at least 1, got [-1]"},
      {[&] { (void)max_pool1d(x, {2}, {.padding = {-1}}); }, "max_pool1d: padding must be at least 0, got [-1]"},
      {[&] { (void)max_pool1d(x, {2}, {.dilation = {0}}); }, "max_pool1d: dilation must be at least 1, got [0]"},
      {[&] { (void)avg_pool1d(x, {3}, {.padding = {2}}); },
       "avg_pool1d: padding must be at most half of what the kernel reaches over, got [2] for 3 elements"},
      {[&] { (void)avg_pool1d(x, {3}, {.divisor_override = -2}); },
       "avg_pool1d: divisor_override must not be negative, got -2"},
      {[&] { (void)lp_pool1d(x, 0, {3}); }, "lp_pool1d: the norm must be finite and not 0, got 0.0"},
      {[&] { (void)adaptive_max_pool1d(x, {-2}); }, "adaptive_max_pool1d: size must be at least -1, got [-2]"},
      {[&] {
         (void)max_unpool1d(x, zeros({2, 3, 7}, Dtype::i64), {2}, {.output_size = {0}});
       },
       "max_unpool1d: output_size must be at least 1, got [0]"},
  };
  for (const auto& [call, message] : values) BOOST_TEST(support::message_of<ValueError>(call) == message);
  BOOST_TEST(support::message_of<DtypeError>([&] { (void)max_pool1d(cast(x, Dtype::i32), {2}); }) ==
             "max_pool1d: dtype i32 is not supported; cast to a float");
  BOOST_TEST(support::message_of<DtypeError>([&] { (void)max_unpool1d(x, x, {2}); }) ==
             "plane_scatter: the indices must be i64, got f32[2, 3, 7]");
}

/// The expected values are the first of the largest, or a NaN, and sums row by row.
BOOST_AUTO_TEST_CASE(squares_of_rows_of_any_length_have_the_bits_of_their_definition) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (std::int64_t n = 2; n < 72; ++n) {
      const std::int64_t height = 2 + n % 5;
      const Tensor x = special({2, 3, height, n}, dtype);
      const std::vector<double> from = cast(x, Dtype::f64).to_vector<double>();
      std::vector<double> best, total;
      for (std::int64_t c = 0; c < 6; ++c)
        for (std::int64_t j = 0; j < height / 2; ++j)
          for (std::int64_t i = 0; i < n / 2; ++i) {
            double most = -std::numeric_limits<double>::infinity(), all = 0;
            for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, n, n + 1}) {
              const double v = from[static_cast<std::size_t>((c * height + 2 * j) * n + 2 * i + k)];
              if (v > most || std::isnan(v)) most = v;
              all += v;
            }
            best.push_back(most);
            total.push_back(all / 4);
          }
      const auto same = [](const Tensor& y, const std::vector<double>& wanted) {
        const std::vector<double> found = cast(y, Dtype::f64).to_vector<double>();
        if (found.size() != wanted.size()) return false;
        for (std::size_t i = 0; i < found.size(); ++i) {
          const bool both = std::isnan(found[i]) && std::isnan(wanted[i]);
          if (!both && (found[i] != wanted[i] || std::signbit(found[i]) != std::signbit(wanted[i]))) return false;
        }
        return true;
      };
      BOOST_TEST_CONTEXT(x.spec().str()) {
        BOOST_TEST(same(max_pool2d(x, {2}), best));
        BOOST_TEST(same(avg_pool2d(x, {2}), total));
      }
    }
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_threads) {
  const Tensor x = some({16, 32, 50, 50});
  const auto results = [&] {
    Tape tape;
    const Tensor watched = tape.watch(x);
    const Tensor y = max_pool2d(watched, {3}, {.stride = {2}, .padding = {1}});
    const Tensor z = avg_pool2d(watched, {3}, {.stride = {2}, .padding = {1}});
    const Tensor g = tape.grad(sum(square(y) * z), {watched})[0];
    return concat({reshape(y, {-1}), reshape(z, {-1}), reshape(g, {-1})}, 0).to_vector<float>();
  };
  const std::vector<float> one = results();
  set_threads(3);
  const std::vector<float> many = results();
  set_threads(1);
  BOOST_TEST((one == many));
}

BOOST_AUTO_TEST_SUITE_END()
