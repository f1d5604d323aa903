// Windows and interpolation: errors and their messages, and that windows of an axis are a view.
#include "ferrite/tensor/windows.h"

#include "ferrite/tensor/ops.h"
#include "support/wrong_calls.h"

using namespace ferrite;

namespace {

Tensor some(const Shape& shape) { return uniform(shape, {.seed = 19}, -1, 1); }

}  // namespace

BOOST_AUTO_TEST_SUITE(windows)

BOOST_AUTO_TEST_CASE(wrong_calls_say_what_is_wrong) {
  const Tensor x = some({1, 2, 4, 5});
  const std::pair<std::function<void()>, std::string> shapes[] = {
      {[&] { (void)unfold(some({4}), 0, 5, 1); }, "unfold: axis 0 of [4] has no window of 5 elements"},
      {[&] {
         (void)unfold(some({4, 2}), {2});
       },
       "unfold: expects rank 3, 4 or 5, got [4, 2]"},
      {[&] { (void)unfold(x, {2}); }, "unfold: the kernel needs 2 numbers, got [2]"},
      {[&] {
         (void)unfold(x, {5, 2});
       },
       "unfold: no window of 5 elements fits axis 0 of [4, 5]"},
      {[&] {
         (void)fold(x, {4, 5}, {2, 2});
       },
       "fold_windows: columns [1, 2, 4, 5] are not 12 windows of 4 elements"},
      {[&] {
         (void)fold(some({1, 8, 11}), {4, 5}, {2, 2});
       },
       "fold_windows: columns [1, 8, 11] are not 12 windows of 4 elements"},
      {[&] {
         (void)fold(some({1, 8, 12}), {}, {2, 2});
       },
       "fold: the size needs one, two or three numbers, got []"},
      {[&] {
         (void)interpolate(some({4, 5}), {.size = {3}});
       },
       "interpolate: expects rank 3, 4 or 5, got [4, 5]"},
      {[&] {
         (void)interpolate(x, {.size = {3, 4, 5}});
       },
       "interpolate: size needs one number or 2, got [3, 4, 5]"},
      {[&] {
         (void)interpolate(x, {.scale_factor = {2, 2, 2}});
       },
       "interpolate: scale_factor needs one number or 2, got 3"},
      {[&] {
         (void)interpolate(some({1, 2, 4}), {.size = {3}, .mode = Interpolation::cubic});
       },
       "interpolate: cubic takes two axes of space, got [1, 2, 4]"},
      {[&] {
         (void)interpolate(some({1, 2, 0}), {.size = {3}});
       },
       "interpolate: axis 2 of [1, 2, 0] has no elements"},
  };
  for (const auto& [call, message] : shapes) BOOST_TEST(support::message_of<ShapeError>(call) == message);
  const std::pair<std::function<void()>, std::string> values[] = {
      {[&] { (void)unfold(x, 3, 0, 1); }, "unfold: size and step must be positive, got 0 and 1"},
      {[&] {
         (void)unfold(x, {2, 2}, {.stride = {0}});
       },
       "unfold: stride must be at least 1, got [0]"},
      {[&] {
         (void)unfold(x, {2, 2}, {.padding = {-1}});
       },
       "unfold: padding must be at least 0, got [-1]"},
      {[&] { (void)pixel_shuffle(x, 2); },
       "pixel_shuffle: the square of the factor must divide the channels, got 2 for [1, 2, 4, 5]"},
      {[&] { (void)pixel_unshuffle(x, 2); },
       "pixel_unshuffle: the factor must divide height and width, got 2 for [1, 2, 4, 5]"},
      {[&] { (void)channel_shuffle(x, 3); },
       "channel_shuffle: groups must divide the channels, got 3 for [1, 2, 4, 5]"},
      {[&] { (void)interpolate(x, {}); },
       "interpolate: either size or scale_factor must be given, got [] and 0 factors"},
      {[&] { (void)interpolate(x, {.size = {3}, .scale_factor = {2}}); },
       "interpolate: either size or scale_factor must be given, got [3] and 1 factors"},
      {[&] { (void)interpolate(x, {.size = {0}}); }, "interpolate: size must be at least 1, got [0]"},
      {[&] { (void)interpolate(x, {.scale_factor = {-1}}); },
       "interpolate: scale_factor must be positive and finite, got -1.0"},
      {[&] { (void)interpolate(x, {.scale_factor = {0.1}}); },
       "interpolate: axis 2 of [1, 2, 4, 5] would get 0.0 elements"},
      {[&] { (void)interpolate(x, {.size = {3}, .align_corners = true}); },
       "interpolate: align_corners takes linear or cubic: mode 0"},
      {[&] { (void)interpolate(x, {.size = {3}, .recompute_scale_factor = true}); },
       "interpolate: recompute_scale_factor takes a scale_factor: size [3]"},
  };
  for (const auto& [call, message] : values) BOOST_TEST(support::message_of<ValueError>(call) == message);
  BOOST_TEST(support::message_of<DtypeError>([&] { (void)interpolate(cast(x, Dtype::i32), {.size = {3}}); }) ==
             "interpolate: dtype i32 is not supported; cast to a float");
  BOOST_TEST(support::message_of<DtypeError>([&] {
               (void)unfold(cast(x, Dtype::i64), {2, 2});
             }) == "unfold_windows: dtype i64 is not supported; cast to a float");
}

BOOST_AUTO_TEST_CASE(pixels_and_channels_as_pytorch_orders_them) {
  const auto counted = [](const Shape& s) { return reshape(cast(arange(s.numel()), Dtype::f32), s); };
  // Expected: torch.nn.functional.pixel_shuffle(torch.arange(8.).reshape(1, 4, 1, 2), 2), and channel_shuffle(2) of 6
  // channels.
  const std::vector<float> pixels{0, 2, 1, 3, 4, 6, 5, 7}, channels{0, 3, 1, 4, 2, 5};
  BOOST_TEST((pixel_shuffle(counted({1, 4, 1, 2}), 2).to_vector<float>() == pixels));
  BOOST_TEST((channel_shuffle(counted({1, 6, 1}), 2).to_vector<float>() == channels));
  const Tensor x = some({2, 3, 4, 6});
  BOOST_TEST((pixel_shuffle(pixel_unshuffle(x, 2), 2).to_vector<float>() == x.to_vector<float>()));
}

BOOST_AUTO_TEST_CASE(windows_of_an_axis_share_its_elements) {
  const Tensor x = some({3, 9});
  const Tensor y = unfold(x, 1, 4, 2);
  BOOST_TEST((y.shape() == Shape{3, 3, 4}));
  BOOST_TEST(y.raw() == x.raw());
  BOOST_TEST((select(y, 1, 2).to_vector<float>() == slice(x, 1, 4, 8).to_vector<float>()));
}

BOOST_AUTO_TEST_SUITE_END()
