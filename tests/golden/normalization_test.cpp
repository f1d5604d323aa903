// Normalisation compared with PyTorch 2.13: values, gradients and double backward
// (tests/data/make_normalization_fixtures.py writes the cases); errors and their messages.
#include "ferrite/tensor/normalization.h"

#include "golden/twice.h"
#include "support/wrong_calls.h"

using namespace ferrite;
using golden::Functions;

namespace {

using In = const Tensors&;

/// Normalises with given statistics, which have no gradients in PyTorch.
Tensor given(In x, const ChannelAffine& affine = {}, double epsilon = 1e-5) {
  return batch_norm(x[0], detach(x[1]), detach(x[2]), affine, epsilon);
}
/// Normalises with the statistics of x, as in training.
Tensor trained(In x, double epsilon = 1e-5) {
  Shape axes{0};
  for (int i = 2; i < x[0].rank(); ++i) axes.push_back(i);
  return batch_norm(x[0], mean(x[0], axes), var(x[0], axes, false, 0), {x[1], x[2]}, epsilon);
}

const Functions& functions() {
  static const Functions all = {
      {"batch", [](In x) { return square(given(x)); }},
      {"batch_affine",
       [](In x) {
         return given(x, {x[3], x[4]});
       }},
      {"batch_flat",
       [](In x) {
         return given(x, {x[3], x[4]}, 0.1);
       }},
      {"batch_weight", [](In x) { return given(x, {.weight = x[3]}); }},
      {"batch_training", [](In x) { return trained(x); }},
      {"batch_training_flat", [](In x) { return trained(x); }},
      {"batch_training_volume", [](In x) { return trained(x, 0.01); }},
      {"group", [](In x) { return group_norm(x[0], 2); }},
      {"group_one", [](In x) { return group_norm(x[0], 1); }},
      {"group_affine",
       [](In x) {
         return group_norm(x[0], 3, {x[1], x[2]}, 1e-3);
       }},
      {"group_flat",
       [](In x) {
         return group_norm(x[0], 2, {x[1], x[2]});
       }},
      {"group_bias", [](In x) { return group_norm(x[0], 4, {.bias = x[1]}); }},
      {"instance", [](In x) { return instance_norm(x[0]); }},
      {"instance_affine",
       [](In x) {
         return instance_norm(x[0], {x[1], x[2]}, 0.01);
       }},
      {"rms", [](In x) { return rms_norm(x[0]); }},
      {"rms_weight", [](In x) { return rms_norm(x[0], 1, x[1], 1e-6); }},
      {"rms_axes", [](In x) { return rms_norm(x[0], 2, x[1], 0.1); }},
      {"response", [](In x) { return local_response_norm(x[0], 3, {.alpha = 0.5}); }},
      {"response_even", [](In x) { return local_response_norm(x[0], 4, {.alpha = 1, .beta = 0.5, .k = 2}); }},
      {"response_wide", [](In x) { return local_response_norm(x[0], 9, {.alpha = 0.3}); }},
  };
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(normalization)

const bool registered = golden::add_cases("normalization.safetensors", functions());

BOOST_AUTO_TEST_CASE(every_case_of_the_fixture_has_its_counterpart) {
  BOOST_TEST(registered);
  for (const std::string& name : golden::cases_of("normalization.safetensors"))
    BOOST_TEST(functions().contains(name), name);
  BOOST_TEST(golden::cases_of("normalization.safetensors").size() == functions().size());
}

BOOST_AUTO_TEST_CASE(wrong_calls_say_what_is_wrong) {
  const Tensor x = ones({2, 4, 3}), c = ones({4}), flat = ones({4});
  support::check_refused<ShapeError>({
      {[&] { (void)batch_norm(flat, c, c); }, "batch_norm: expects [N, C, ...], got [4]"},
      {[&] { (void)batch_norm(x, ones({3}), c); }, "batch_norm: the mean must be [4] for x [2, 4, 3], got [3]"},
      {[&] {
         (void)batch_norm(x, c, ones({4, 1}));
       },
       "batch_norm: the var must be [4] for x [2, 4, 3], got [4, 1]"},
      {[&] { (void)batch_norm(x, c, c, {.weight = ones({1})}); },
       "batch_norm: the weight must be [4] for x [2, 4, 3], got [1]"},
      {[&] { (void)group_norm(x, 2, {.bias = ones({2})}); },
       "group_norm: the bias must be [4] for x [2, 4, 3], got [2]"},
      {[&] {
         (void)instance_norm(ones({2, 0, 3}));
       },
       "instance_norm: there are no channels: [2, 0, 3]"},
      {[&] { (void)rms_norm(x, 4); }, "rms_norm: 4 last axes of [2, 4, 3]"},
      {[&] { (void)rms_norm(x, 0); }, "rms_norm: 0 last axes of [2, 4, 3]"},
      {[&] { (void)rms_norm(x, 2, ones({3})); }, "rms_norm: the weight must be f32[4, 3], got f32[3]"},
      {[&] { (void)rms_norm(x, 1, ones({3}, Dtype::f64)); }, "rms_norm: the weight must be f32[3], got f64[3]"},
      {[&] { (void)local_response_norm(flat, 2); }, "local_response_norm: expects [N, C, ...], got [4]"},
  });
  support::check_refused<DtypeError>({
      {[&] { (void)batch_norm(cast(x, Dtype::i64), c, c); },
       "batch_norm: dtype i64 is not supported; cast it to a float first"},
      {[&] { (void)batch_norm(x, c, cast(c, Dtype::f64)); },
       "batch_norm: dtypes differ: x is f32[2, 4, 3], the var f64[4]"},
      {[&] { (void)rms_norm(cast(x, Dtype::boolean)); },
       "rms_norm: dtype bool is not supported; cast it to a float first"},
  });
  support::check_refused<ValueError>({
      {[&] { (void)batch_norm(x, c, c, {}, -1); }, "batch_norm: epsilon must not be negative, got -1.0"},
      {[&] { (void)group_norm(x, 3); }, "group_norm: 3 groups do not divide the channels of [2, 4, 3]"},
      {[&] { (void)group_norm(x, 0); }, "group_norm: 0 groups do not divide the channels of [2, 4, 3]"},
      {[&] { (void)rms_norm(x, 1, {}, std::nan("")); }, "rms_norm: epsilon is NaN"},
      {[&] { (void)local_response_norm(x, 0); }, "local_response_norm: the size must be positive, got 0"},
  });
}

BOOST_AUTO_TEST_SUITE_END()
