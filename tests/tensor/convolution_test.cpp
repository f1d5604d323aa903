// Convolutions: errors and their messages, and bits that depend on neither batch nor threads.
#include "ferrite/tensor/convolution.h"

#include <thread>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/threads.h"
#include "support/wrong_calls.h"

using namespace ferrite;

namespace {

Tensor some(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f32) {
  return uniform(shape, {.seed = 17, .stream = stream}, -1, 1, dtype);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() == Dtype::f64) return a.shape() == b.shape() && a.to_vector<double>() == b.to_vector<double>();
  return a.shape() == b.shape() && a.to_vector<float>() == b.to_vector<float>();
}

struct Gradients {
  Tensor y, gx, gw;
};
Gradients gradients(const Tensor& x, const Tensor& w, const ConvolutionOptions& o) {
  Tape tape;
  const Tensor a = tape.watch(x), b = tape.watch(w);
  const Tensor y = conv2d(a, b, {}, o);
  const Tensors g = tape.grad(y, {a, b}, {}, cast(some(y.shape(), 9), y.dtype()));
  return {y, g[0], g[1]};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(convolutions)

BOOST_AUTO_TEST_CASE(shapes_that_do_not_fit_are_refused) {
  const Tensor x = some({2, 4, 9}, 1), w = some({6, 4, 3}, 2);
  const std::pair<std::function<void()>, std::string> calls[] = {
      {[&] { (void)conv1d(some({9}, 1), w); }, "conv1d: expects rank 3, or 2 without a batch, got [9]"},
      {[&] { (void)conv2d(x, w); }, "conv2d: the weight needs rank 4, got [6, 4, 3]"},
      {[&] {
         (void)conv1d(x, some({6, 3, 3}, 2));
       },
       "conv1d: weight [6, 3, 3] in 1 groups takes 3 channels, got [2, 4, 9]"},
      {[&] {
         (void)conv1d(x, some({6, 4, 0}, 2));
       },
       "conv1d: the kernel has no elements: [6, 4, 0]"},
      {[&] { (void)conv1d(x, w, some({5}, 3)); }, "conv1d: the bias needs 6 elements, got [5]"},
      {[&] {
         (void)conv1d(x, w, {}, {.stride = {1, 2, 3}});
       },
       "conv1d: stride needs one number, got [1, 2, 3]"},
      {[&] { (void)conv1d(x, w, {}, {.dilation = {5}}); },
       "conv1d: the kernel reaches over 11 elements of axis 2, which has 9 with its padding: [2, 4, 9]"},
      {[&] { (void)conv1d(x, w, {}, {.padding = {9}, .padding_mode = PaddingMode::reflect}); },
       "pad: axis 2 of [2, 4, 9] has too few elements for 9 more of this mode"},
      {[&] { (void)conv1d(x, w, {}, {.padding = {10}, .padding_mode = PaddingMode::circular}); },
       "pad: axis 2 of [2, 4, 9] has too few elements for 10 more of this mode"},
      {[&] {
         (void)pad(x, {1}, {1, 2}, PaddingMode::reflect);
       },
       "pad: before and after need one amount for each axis: [1] and [1, 2] for [2, 4, 9]"},
      {[&] { (void)conv_transpose1d(x, w); }, "conv_transpose1d: weight [6, 4, 3] takes 6 channels, got [2, 4, 9]"},
      {[&] {
         (void)conv_transpose1d(some({2, 6, 1}, 1), w, {}, {.padding = {2}});
       },
       "conv_transpose1d: nothing is left of axis 2: [2, 6, 1] with padding [2]"},
  };
  for (const auto& [call, message] : calls) BOOST_TEST(support::message_of<ShapeError>(call) == message);
}

BOOST_AUTO_TEST_CASE(values_that_no_option_allows_are_refused) {
  const Tensor x = some({2, 4, 9}, 1), w = some({6, 4, 3}, 2);
  const std::pair<std::function<void()>, std::string> calls[] = {
      {[&] { (void)conv1d(x, w, {}, {.stride = {0}}); }, "conv1d: stride must be at least 1, got [0]"},
      {[&] { (void)conv1d(x, w, {}, {.padding = {-1}}); }, "conv1d: padding must be at least 0, got [-1]"},
      {[&] { (void)conv1d(x, w, {}, {.dilation = {-2}}); }, "conv1d: dilation must be at least 1, got [-2]"},
      {[&] { (void)conv1d(x, w, {}, {.groups = 3}); },
       "conv1d: groups must divide both numbers of channels, got 3 groups of 4 to 6"},
      {[&] { (void)conv1d(x, w, {}, {.stride = {2}, .padding = ConvolutionPadding::same}); },
       "conv1d: padding `same` takes strides of 1, got [2]"},
      {[&] {
         (void)pad(x, {0, 0, -1}, {0, 0, 0}, PaddingMode::circular);
       },
       "pad: amounts must not be negative with a mode: [0, 0, -1] and [0, 0, 0]; crop with slice"},
      {[&] {
         (void)conv_transpose1d(some({2, 6, 5}, 1), w, {}, {.output_padding = {2}, .groups = 2});
       },
       "conv_transpose1d: output_padding must be less than the stride or than the dilation, got [2] with [1] and [1]"},
      {[&] {
         (void)conv_transpose1d(some({2, 6, 5}, 1), w, {}, {.groups = 4});
       },
       "conv_transpose1d: groups must divide the number of channels, got 4 groups of 6"},
  };
  for (const auto& [call, message] : calls) BOOST_TEST(support::message_of<ValueError>(call) == message);
  BOOST_TEST(support::message_of<DtypeError>([&] { (void)conv1d(cast(x, Dtype::f64), w); }) ==
             "conv1d: dtypes differ: f64[2, 4, 9] and f32[6, 4, 3]; cast one of them");
  BOOST_TEST(support::message_of<DtypeError>([&] { (void)conv1d(cast(x, Dtype::i64), w); }) ==
             "conv1d: dtype i64 is not supported; cast to a float");
}

BOOST_AUTO_TEST_CASE(an_image_alone_has_the_bits_that_it_has_in_a_batch) {
  const Tensor x = some({5, 3, 11, 13}, 1), w = some({10, 3, 3, 3}, 2);
  const Tensor y = conv2d(x, w, {}, {.stride = {2, 1}, .padding = {1}});
  for (std::int64_t n = 0; n < 5; ++n)
    BOOST_TEST(same_bits(select(y, 0, n), conv2d(select(x, 0, n), w, {}, {.stride = {2, 1}, .padding = {1}})));
}

BOOST_AUTO_TEST_CASE(a_channel_alone_has_the_bits_that_it_has_among_others) {
  // There are more channels than images that are placed together, and more images than that, each in memory that others
  // had before.
  const std::int64_t channels = 21, images = 18;
  const Tensor x = some({images, channels, 9, 14}, 1), w = some({channels, 1, 3, 3}, 2);
  for (const std::int64_t stride : {1, 2, 3}) {
    const Tensor y = conv2d(x, w, {}, {.stride = {stride}, .padding = {2}, .groups = channels});
    const Gradients all = gradients(x, w, {.stride = {stride}, .padding = {2}, .groups = channels});
    Tensors alone, gx, gw;
    const Tensor cotangent = some(y.shape(), 9);
    for (std::int64_t c = 0; c < channels; ++c) {
      Tape tape;
      const Tensor a = tape.watch(slice(x, 1, c, c + 1)), b = tape.watch(slice(w, 0, c, c + 1));
      alone.push_back(conv2d(a, b, {}, {.stride = {stride}, .padding = {2}}));
      const Tensors g = tape.grad(alone.back(), {a, b}, {}, slice(cotangent, 1, c, c + 1));
      gx.push_back(g[0]);
      gw.push_back(g[1]);
    }
    BOOST_TEST(same_bits(all.y, concat(alone, 1)));
    BOOST_TEST(same_bits(all.gx, concat(gx, 1)));
    BOOST_TEST(same_bits(all.gw, concat(gw, 0)));
  }
}

/// Depthwise planes have their own kernels; two planes in depth, one of which is zero, do not use them.
BOOST_AUTO_TEST_CASE(a_plane_has_the_bits_that_it_has_in_a_volume) {
  const struct {
    std::int64_t size, height, width, padding, dilation, stride;
  } cases[] = {{3, 14, 14, 1, 1, 1},  {3, 5, 33, 0, 1, 1},  {3, 3, 3, 0, 1, 1},    {3, 1, 7, 1, 1, 1},
               {3, 40, 16, 2, 1, 1},  {5, 9, 20, 2, 1, 1},  {5, 5, 64, 0, 1, 1},   {5, 2, 9, 2, 1, 1},
               {3, 9, 21, 2, 2, 1},   {3, 2, 1, 1, 1, 1},   {3, 140, 18, 1, 1, 1}, {3, 300, 40, 1, 1, 1},
               {5, 12, 31, 4, 1, 1},  {3, 7, 300, 1, 1, 1}, {3, 6, 17, 1, 3, 1},   {3, 28, 28, 1, 1, 2},
               {3, 9, 33, 0, 1, 2},   {3, 2, 1, 1, 1, 2},   {3, 31, 64, 2, 1, 2},  {3, 10, 15, 1, 1, 2},
               {5, 13, 20, 2, 1, 2},  {5, 3, 70, 3, 1, 2},  {3, 12, 19, 1, 2, 2},  {5, 40, 35, 0, 1, 2},
               {3, 15, 131, 1, 1, 2}, {3, 4, 600, 1, 1, 2}, {3, 9, 9, 1, 1, 3}};
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& c : cases) {
      const std::int64_t channels = 3, images = 2;
      const Tensor x = some({images, channels, c.height, c.width}, 1, dtype);
      const Tensor w = some({channels, 1, c.size, c.size}, 2, dtype), bias = some({channels}, 3, dtype);
      ConvolutionOptions o{
          .stride = {c.stride}, .padding = {c.padding}, .dilation = {1, c.dilation}, .groups = channels};
      const Gradients plane = gradients(x, w, o);
      BOOST_TEST_CONTEXT(c.size << " x " << c.size << " / " << c.stride << " on " << c.height << " x " << c.width) {
        BOOST_TEST(same_bits(conv2d(x, w, bias, o), plane.y + reshape(bias, {channels, 1, 1})));
        const auto deep = [](const Tensor& t) {
          return concat({unsqueeze(t, 2), zeros(unsqueeze(t, 2).shape(), t.dtype())}, 2);
        };
        o.stride = {1, c.stride, c.stride};
        o.padding = {0, c.padding, c.padding};
        o.dilation = {1, 1, c.dilation};
        Tape tape;
        const Tensor a = tape.watch(deep(x)), b = tape.watch(unsqueeze(w, 2));
        const Tensor y = conv3d(a, b, {}, o);
        const Tensors g = tape.grad(y, {a, b}, {}, deep(cast(some(plane.y.shape(), 9), dtype)));
        BOOST_TEST(same_bits(plane.y, select(y, 2, 0)));
        BOOST_TEST(same_bits(plane.gx, select(g[0], 2, 0)));
        BOOST_TEST(same_bits(plane.gw, squeeze(g[1], 2)));
        const TransposedOptions back{
            .stride = {c.stride}, .padding = {std::min<std::int64_t>(c.padding, 1)}, .groups = channels};
        const TransposedOptions deep_back{
            .stride = {1, c.stride, c.stride}, .padding = {0, back.padding[0], back.padding[0]}, .groups = channels};
        if (c.height > 2 && c.width > 2)
          BOOST_TEST(same_bits(conv_transpose2d(x, w, bias, back),
                               select(conv_transpose3d(deep(x), unsqueeze(w, 2), bias, deep_back), 2, 0)));
      }
    }
}

/// For small images lanes lie along channels; those of one channel lie along positions.
BOOST_AUTO_TEST_CASE(channels_of_small_images_have_the_bits_that_they_have_alone) {
  const struct {
    Shape x;
    std::int64_t channels, groups;
    ConvolutionOptions options;
  } cases[] = {{{8, 64, 7, 7}, 64, 1, {.padding = {1}}},
               {{6, 10, 5, 6}, 33, 1, {.padding = {1}}},
               {{16, 6, 14, 14}, 80, 1, {}},
               {{9, 64, 9, 9}, 48, 2, {.stride = {2}, .padding = {1}, .groups = 2}},
               {{40, 17, 3, 5}, 16, 1, {.padding = {2, 1}, .dilation = {1, 2}}}};
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& c : cases) {
      const std::int64_t inner = c.x[1] / c.groups, outer = c.channels / c.groups;
      const Tensor x = some(c.x, 1, dtype), w = some({c.channels, inner, 3, 3}, 2, dtype);
      const Tensor bias = some({c.channels}, 3, dtype);
      const Tensor y = conv2d(x, w, bias, c.options);
      const Tensor gx = gradients(x, w, c.options).gx, g = cast(some(y.shape(), 9), dtype);
      ConvolutionOptions alone = c.options;
      alone.groups = 1;
      Tensors channels, sources;
      for (std::int64_t i = 0; i < c.channels; ++i) {
        const Tensor group = slice(x, 1, i / outer * inner, (i / outer + 1) * inner);
        channels.push_back(conv2d(group, slice(w, 0, i, i + 1), slice(bias, 0, i, i + 1), alone));
      }
      for (std::int64_t i = 0; i < c.x[1]; ++i) {
        const std::int64_t first = i / inner * outer;
        Tape tape;
        const Tensor a = tape.watch(slice(x, 1, i, i + 1));
        const Tensor b = slice(slice(w, 0, first, first + outer), 1, i % inner, i % inner + 1);
        sources.push_back(tape.grad(conv2d(a, b, {}, alone), {a}, {}, slice(g, 1, first, first + outer))[0]);
      }
      BOOST_TEST_CONTEXT(c.x.str() << " to " << c.channels << " channels") {
        BOOST_TEST(same_bits(y, concat(channels, 1)));
        BOOST_TEST(same_bits(gx, concat(sources, 1)));
      }
    }
}

/// Taps that read padding are left out, those that read zeros of x are not: rows of taps, also columns if lanes lie
/// along channels and in gradients of weights; for one image, where that does not pay, and for several.
BOOST_AUTO_TEST_CASE(padding_has_the_bits_of_zeros_that_stand_there) {
  const struct {
    Shape x;
    std::int64_t channels;
    Shape kernel;
    ConvolutionOptions options;
  } cases[] = {{{9, 7, 14, 14}, 16, {3, 3}, {.padding = {1}}},
               {{9, 5, 16, 32}, 33, {3, 3}, {.padding = {1}}},
               {{2, 8, 7, 7}, 64, {3, 3}, {.padding = {1}}},
               {{9, 40, 5, 6}, 70, {3, 3}, {.padding = {1, 2}}},
               {{9, 6, 17, 15}, 20, {3, 3}, {.stride = {2}, .padding = {1}}},
               {{9, 6, 20, 33}, 20, {5, 3}, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 1}}},
               {{9, 3, 12, 16}, 48, {7, 5}, {.padding = {3, 2}}},
               {{9, 31, 10, 13}, 16, {3, 3}, {.padding = {3, 1}}},
               {{9, 8, 18, 40}, 24, {3, 3}, {.padding = {1}, .groups = 2}},
               {{9, 12, 6, 9}, 5, {3, 3}, {.padding = {1}}},
               {{3, 300, 6, 6}, 17, {3, 3}, {.padding = {1}}}};
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& c : cases)
      for (const std::int64_t images : {std::int64_t{1}, c.x[0]}) {
        const Tensor x = some({images, c.x[1], c.x[2], c.x[3]}, 1, dtype);
        const Tensor w = some({c.channels, c.x[1] / c.options.groups, c.kernel[0], c.kernel[1]}, 2, dtype);
        const Shape& amounts = c.options.padding.amounts;
        const std::int64_t rows = amounts[0], columns = amounts[amounts.rank() - 1];
        ConvolutionOptions inside = c.options;
        inside.padding = {};
        const Gradients left_out = gradients(x, w, c.options);
        const Gradients there = gradients(pad(x, {0, 0, rows, columns}, {0, 0, rows, columns}), w, inside);
        BOOST_TEST_CONTEXT(x.shape().str() << " with " << w.shape().str()) {
          BOOST_TEST(same_bits(left_out.y, there.y));
          BOOST_TEST(same_bits(left_out.gw, there.gw));
          BOOST_TEST(
              same_bits(left_out.gx, slice(slice(there.gx, 2, rows, rows + c.x[2]), 3, columns, columns + c.x[3])));
        }
      }
}

/// A pass that reads only one of two phases does not have all taps.
BOOST_AUTO_TEST_CASE(a_phase_alone_meets_its_taps_only) {
  const Tensor x = some({8, 20, 1, 7}, 1), w = some({20, 32, 3, 3}, 2);
  const TransposedOptions o{.stride = {2, 1}, .padding = {1, 1}};
  BOOST_TEST(same_bits(conv_transpose2d(x, w, {}, o), [&] {
    Tensors rows;
    for (std::int64_t n = 0; n < 8; ++n) rows.push_back(conv_transpose2d(slice(x, 0, n, n + 1), w, {}, o));
    return concat(rows, 0);
  }()));
  BOOST_TEST(amax(abs(conv_transpose2d(x, w, {}, o) - conv_transpose2d(x, slice(w, 2, 1, 2), {}, {.padding = {0, 1}})))
                 .item<float>() == 0);
}

/// Depthwise lines have their own kernel; two of them in a plane do not use it.
BOOST_AUTO_TEST_CASE(a_line_has_the_bits_that_it_has_in_a_plane) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (std::int64_t taps = 1; taps <= 9; ++taps)
      for (const std::int64_t dilation : {1, 3})
        for (const std::int64_t padding :
             {std::int64_t{0}, taps * dilation / 2, (taps - 1) * dilation, std::int64_t{37}})
          for (const std::int64_t length : {96, 133}) {
            const std::int64_t channels = 3;
            const Tensor x = some({2, channels, 1, length}, 1, dtype), w = some({channels, 1, 1, taps}, 2, dtype);
            const Tensor bias = some({channels}, 3, dtype);
            const ConvolutionOptions o{.padding = {0, padding}, .dilation = {1, dilation}, .groups = channels};
            const Gradients line = gradients(x, w, o), plane = gradients(concat({x, zeros(x.shape(), dtype)}, 2), w, o);
            BOOST_TEST_CONTEXT(taps << " taps, dilation " << dilation << ", padding " << padding << ", " << length) {
              BOOST_TEST(same_bits(line.y, slice(plane.y, 2, 0, 1)));
              const Tensor biased = conv2d(x, w, bias, o);
              BOOST_TEST(same_bits(biased, line.y + reshape(bias, {channels, 1, 1})));
              const TransposedOptions back{
                  .padding = {0, std::min<std::int64_t>(padding, 20)}, .groups = channels, .dilation = {1, dilation}};
              const Tensor y = conv_transpose2d(x, w, bias, back);
              BOOST_TEST(same_bits(y, slice(conv_transpose2d(concat({x, x}, 2), w, bias, back), 2, 0, 1)));
              // The gradient of x where the second line has none.
              Tape tape;
              const Tensor a = tape.watch(concat({x, x}, 2));
              const Tensor g = cast(some(line.y.shape(), 9), dtype);
              const Tensor gx = tape.grad(conv2d(a, w, {}, o), {a}, {}, concat({g, zeros(g.shape(), dtype)}, 2))[0];
              BOOST_TEST(same_bits(line.gx, slice(gx, 2, 0, 1)));
            }
          }
}

/// Rows of three neighbouring taps share what they read if the rows of weights fill one packet.
BOOST_AUTO_TEST_CASE(rows_of_weights_have_the_bits_that_they_have_among_others) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t rows : {16, 13, 8, 4})
      for (const std::int64_t channels : {1, 2, 5})
        for (const std::int64_t width : {3, 17, 40}) {
          const Tensor x = some({2, channels, 19, width}, 1, dtype), g = some({2, rows, 19, width}, 9, dtype);
          const auto gradient = [&](std::int64_t times) {
            Tape tape;
            const Tensor w = tape.watch(some({rows * times, channels, 3, 3}, 2, dtype));
            const Tensor all = times == 1 ? g : concat({g, g, g}, 1);
            return slice(tape.grad(conv2d(x, w, {}, {.padding = {1}}), {w}, {}, all)[0], 0, 0, rows);
          };
          if (rows == 4 && dtype == Dtype::f32) continue;  // so few rows lie along positions where packets are wide
          BOOST_TEST_CONTEXT(rows << " rows, " << channels << " channels, " << width << " wide")
          BOOST_TEST(same_bits(gradient(1), gradient(3)));
        }
}

BOOST_AUTO_TEST_CASE(rows_of_any_length_at_strides_are_exact) {
  // Small integers have exact sums in both dtypes; doubles are copied one by one.
  for (const std::int64_t stride : {2, 3, 4})
    for (std::int64_t width = 1; width <= 140; width += width < 70 ? 1 : 7)
      for (const std::int64_t before : {0, 1, 2}) {
        const Tensor x = ferrite::floor(8 * some({1, 2, 2, width}, 1)), w = ferrite::floor(8 * some({3, 2, 2, 1}, 2));
        const ConvolutionOptions o{.stride = {stride}, .padding = {0, before}};
        const Tensor y = conv2d(x, w, {}, o);
        BOOST_TEST(same_bits(y, cast(conv2d(cast(x, Dtype::f64), cast(w, Dtype::f64), {}, o), Dtype::f32)));
      }
}

/// Kernels of one element treat an image as one row.
BOOST_AUTO_TEST_CASE(kernels_of_one_element_do_not_depend_on_the_shape_of_an_image) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t channels : {1, 5, 40}) {
      const Tensor x = some({3, 20, 6, 17}, 1, dtype), w = some({channels, 20, 1, 1}, 2, dtype);
      const Gradients plane = gradients(x, w, {}), line = gradients(reshape(x, {3, 20, 1, 102}), w, {});
      BOOST_TEST(same_bits(plane.y, reshape(line.y, plane.y.shape())));
      BOOST_TEST(same_bits(plane.gx, reshape(line.gx, x.shape())));
      Tape tape;
      const Tensor watched = tape.watch(w);
      const Tensor g = cast(some(plane.y.shape(), 9), dtype);
      const Tensor y = conv2d(reshape(x, {3, 20, 1, 102}), watched);
      BOOST_TEST(same_bits(plane.gw, tape.grad(y, {watched}, {}, reshape(g, y.shape()))[0]));
    }
}

/// A thread keeps the plans of the last 32 shapes. More shapes than that in turn, other channels, and transposed ones
/// have the bits of a thread that has kept none.
BOOST_AUTO_TEST_CASE(kept_plans_serve_only_their_own_shapes) {
  const auto results = [](std::int64_t n) {
    Tensors all;
    for (const std::int64_t channels : {1, 2, 3}) {
      const Tensor x = uniform({1, channels, n + 8}, {.seed = 1}), w = uniform({2, channels, 3}, {.seed = 2});
      all.push_back(conv1d(x, w, {}, {.stride = {2}}));
      all.push_back(conv_transpose1d(uniform({1, 2, n}, {.seed = 3}), w, {}, {.stride = {2}}));
    }
    return all;
  };
  for (int round = 0; round < 2; ++round)
    for (std::int64_t n = 1; n < 24; ++n) {
      Tensors fresh;
      std::thread([&] { fresh = results(n); }).join();
      const Tensors here = results(n), again = results(n);
      for (std::size_t i = 0; i < here.size(); ++i) {
        BOOST_TEST(same_bits(here[i], fresh[i]), "length " << n << ", result " << i);
        BOOST_TEST(same_bits(again[i], fresh[i]), "length " << n << ", result " << i << ", again");
      }
    }
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_threads) {
  const struct {
    Shape x, w;
    ConvolutionOptions options;
  } cases[] = {{{1, 24, 40, 40}, {40, 24, 3, 3}, {.padding = {1}}},
               {{3, 32, 30, 30}, {32, 8, 3, 3}, {.stride = {2}, .padding = {1}, .groups = 4}},
               {{2, 96, 64, 64}, {96, 1, 3, 3}, {.padding = {1}, .groups = 96}},
               {{2, 96, 64, 64}, {96, 1, 3, 3}, {.stride = {2}, .padding = {1}, .groups = 96}},
               {{2, 64, 14, 14}, {80, 64, 3, 3}, {.padding = {1}}}};
  for (const auto& c : cases) {
    const Tensor x = some(c.x, 1), w = some(c.w, 2);
    const Gradients one = gradients(x, w, c.options);
    for (const int threads : {2, 5}) {
      set_threads(threads);
      const Gradients many = gradients(x, w, c.options);
      set_threads(1);
      BOOST_TEST(same_bits(one.y, many.y));
      BOOST_TEST(same_bits(one.gx, many.gx));
      BOOST_TEST(same_bits(one.gw, many.gw));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_gradient_of_weights_sums_images_and_blocks_of_positions) {
  const Tensor x = some({3, 2, 20, 20}, 1, Dtype::f64), w = some({20, 2, 3, 3}, 2, Dtype::f64);
  const Tensor all = gradients(x, w, {.padding = {1}}).gw;
  const Tensor y = some({3, 20, 20, 20}, 9);
  // Computed element by element, as sums over images and positions of y times x.
  const Tensor padded = pad(x, {0, 0, 1, 1}, {0, 0, 1, 1});
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      const Tensor read = slice(slice(padded, 2, i, i + 20), 3, j, j + 20);
      const Tensor wanted = sum(unsqueeze(cast(y, Dtype::f64), 2) * unsqueeze(read, 1), {0, 3, 4});
      const Tensor apart = amax(abs(select(select(all, 3, j), 2, i) - wanted));
      BOOST_TEST(apart.item<double>() < 1e-11);
    }
}

BOOST_AUTO_TEST_CASE(a_product_of_one_tap_is_a_matrix_product) {
  const Tensor x = some({1, 300, 37}, 1), w = some({11, 300, 1}, 2);
  BOOST_TEST(same_bits(conv1d(x, w), unsqueeze(matmul(reshape(w, {11, 300}), select(x, 0, 0)), 0)));
}

BOOST_AUTO_TEST_SUITE_END()
