// Convolutions whose lanes lie along channels keep packed copies of their weights.
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor some(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f32) {
  return uniform(shape, {.seed = 17, .stream = stream}, -1, 1, dtype);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(convolution_weights)

/// Weights that are used again are kept in the order in which lanes along channels read them.
BOOST_AUTO_TEST_CASE(weights_that_are_used_again_give_the_same_bits) {
  const struct {
    Shape x, w;
    ConvolutionOptions options;
    bool transposed = false;
  } cases[] = {{{1, 1, 1, 640}, {37, 1, 1, 256}, {.stride = {1, 128}}},
               {{1, 129, 1, 4}, {33, 129, 1, 3}, {.padding = {0, 1}}},
               {{1, 16, 1, 4}, {64, 16, 1, 3}, {.stride = {1, 2}, .padding = {0, 1}}},
               {{2, 12, 9, 7}, {64, 6, 3, 2}, {.stride = {3, 2}, .padding = {1, 1}, .dilation = {2, 1}, .groups = 2}},
               {{2, 12, 9, 7}, {64, 6, 3, 3}, {.stride = {2, 2}, .groups = 2}},
               {{1, 300, 3, 3}, {17, 300, 3, 3}, {}},
               {{1, 20, 2, 3}, {20, 16, 3, 3}, {.padding = {1, 1}, .groups = 2}, true},
               {{1, 12, 5, 1}, {12, 48, 2, 1}, {.dilation = {2, 1}}, true}};
  int kept = 0;  // the number depends on the lanes of a packet
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& c : cases) {
      const Tensor x = some(c.x, 1, dtype);
      const auto run = [&](const Tensor& w) {
        if (!c.transposed) return conv2d(x, w, {}, c.options);
        const ConvolutionOptions& o = c.options;
        return conv_transpose2d(x, w, {}, {.padding = o.padding.amounts, .groups = o.groups, .dilation = o.dilation});
      };
      BOOST_TEST_CONTEXT(c.x.str() << " with " << c.w.str()) {
        const Tensor w = some(c.w, 2, dtype), first = run(w);
        BOOST_TEST(w.impl()->storage->packs.load() == nullptr);
        BOOST_TEST(identical(run(w), first));
        kept += w.impl()->storage->packs.load() != nullptr ? 1 : 0;
        BOOST_TEST(identical(run(w), first));
      }
    }
  BOOST_TEST(kept > 0);
}

/// Windows that end before the padding at the end, which a stride steps over, still begin in the padding.
BOOST_AUTO_TEST_CASE(padding_that_a_stride_steps_over_is_read_in_front) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t extent : {6, 7, 8, 9, 10, 11, 12}) {
      const Tensor x = some({1, 16, 1, extent}, 1, dtype), w = some({64, 16, 1, 3}, 2, dtype);
      const Tensor padded = pad(x, {0, 0, 0, 1}, {0, 0, 0, 1});
      for (int again = 0; again < 3; ++again)
        BOOST_TEST(identical(conv2d(x, w, {}, {.stride = {1, 3}, .padding = {0, 1}}),
                             conv2d(padded, w, {}, {.stride = {1, 3}})),
                   "of " << extent);
    }
}

/// Equal elements in other groups are other weights.
BOOST_AUTO_TEST_CASE(kept_weights_serve_only_their_own_groups) {
  const Tensor w = some({32, 6, 1, 3}, 2), x = some({1, 6, 1, 4}, 1), wide = some({1, 12, 1, 4}, 3);
  const auto calls = [&](const Tensor& of) {
    return Tensors{conv2d(x, of), conv2d(x, slice(of, 0, 0, 16)), conv2d(wide, of, {}, {.groups = 2}),
                   conv_transpose2d(some({1, 32, 1, 4}, 4), of)};
  };
  for (int i = 0; i < 3; ++i) {
    const Tensors again = calls(w), fresh = calls(some({32, 6, 1, 3}, 2));
    for (std::size_t k = 0; k < again.size(); ++k) BOOST_TEST(identical(again[k], fresh[k]));
  }
}

BOOST_AUTO_TEST_SUITE_END()
