// Pooling: what is refused and in which words, and bits that do not depend on threads.
#include "ferrite/tensor/pooling.h"

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/threads.h"
#include "support/wrong_calls.h"

using namespace ferrite;

namespace {

Tensor some(const Shape& shape) { return uniform(shape, {.seed = 18}, -1, 1); }

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
      {[&] { (void)lp_pool1d(x, 0, {3}); }, "lp_pool1d: the norm must be finite and not 0, got 0.000000"},
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
