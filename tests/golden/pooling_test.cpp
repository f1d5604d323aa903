// Pooling, its gradients and second gradients compared with PyTorch 2.13: tests/data/make_pooling_fixtures.py writes
// the cases.
#include "ferrite/tensor/pooling.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

constexpr double kTolerance = 1e-12;

/// The contents of NAME/options.
struct Case {
  explicit Case(const std::vector<std::int64_t>& v)
      : kind(v[0]),
        axes(static_cast<int>(v[1])),
        ceil(v[2] != 0),
        include(v[3] != 0),
        divisor(v[4]),
        norm(static_cast<double>(v[5])) {
    std::size_t at = 6;
    for (Shape* s : {&kernel, &stride, &padding, &dilation, &size})
      for (int i = 0; i < axes; ++i) s->push_back(v[at++]);
  }
  std::int64_t kind;
  int axes;
  bool ceil, include;
  std::int64_t divisor;
  double norm;
  Shape kernel{}, stride{}, padding{}, dilation{}, size{};
};

template <class F>
auto of_axes(int axes, F one, F two, F three) {
  return axes == 1 ? one : axes == 2 ? two : three;
}

MaxPooled apply(const Case& c, const Tensor& x, const Tensor& indices) {
  const MaxPoolOptions largest{.stride = c.stride, .padding = c.padding, .dilation = c.dilation, .ceil_mode = c.ceil};
  switch (c.kind) {
    case 0: {
      const MaxPooled with = of_axes(c.axes, max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices)(
          x, c.kernel, largest);
      return {of_axes(c.axes, max_pool1d, max_pool2d, max_pool3d)(x, c.kernel, largest), with.indices};
    }
    case 1:
      return {of_axes(c.axes, avg_pool1d, avg_pool2d, avg_pool3d)(x, c.kernel,
                                                                  {.stride = c.stride,
                                                                   .padding = c.padding,
                                                                   .ceil_mode = c.ceil,
                                                                   .count_include_pad = c.include,
                                                                   .divisor_override = c.divisor}),
              {}};
    case 2:
      return {of_axes(c.axes, lp_pool1d, lp_pool2d, lp_pool3d)(x, c.norm, c.kernel,
                                                               {.stride = c.stride, .ceil_mode = c.ceil}),
              {}};
    case 3: return {of_axes(c.axes, adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)(x, c.size), {}};
    case 4: {
      const Tensor values = of_axes(c.axes, adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)(x, c.size);
      return {values, of_axes(c.axes, adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices,
                              adaptive_max_pool3d_with_indices)(x, c.size)
                          .indices};
    }
    default:
      return {of_axes(c.axes, max_unpool1d, max_unpool2d, max_unpool3d)(
                  x, indices, c.kernel,
                  {.stride = c.stride, .padding = c.padding, .output_size = c.size[0] == 0 ? Shape{} : c.size}),
              {}};
  }
}

void check(const io::TensorFile& file, const std::string& name) {
  BOOST_TEST_CONTEXT(name) {
    const Case c(file.tensor(name + "/options").to_vector<std::int64_t>());
    const auto drawn = [&](const char* what) { return cast(file.tensor(name + what), Dtype::f64); };
    const Tensor given = file.contains(name + "/indices") ? file.tensor(name + "/indices") : Tensor();
    Tape tape;
    const Tensor x = tape.watch(drawn("/x")), cot = tape.watch(drawn("/cot"));
    const MaxPooled y = apply(c, x, given);
    BOOST_TEST(within(y.values, file.tensor(name + "/out"), kTolerance));
    if (y.indices.defined()) BOOST_TEST(y.indices.to_vector<std::int64_t>() == given.to_vector<std::int64_t>());
    const Tensor gx = tape.grad(y.values, {x}, {.create_graph = true}, cot)[0];
    BOOST_TEST(within(gx, file.tensor(name + "/gx"), kTolerance));
    const Tensor k = reshape(cast(arange(gx.numel()), Dtype::f64), gx.shape());
    const Tensors h = tape.grad(sum(gx * sin(k)), {x, cot});
    const bool curved = file.contains(name + "/hx");
    BOOST_TEST(within(h[0], curved ? file.tensor(name + "/hx") : zeros_like(h[0]), kTolerance));
    BOOST_TEST(within(h[1], file.tensor(name + "/hc"), kTolerance));
    const Tensor single = apply(c, cast(drawn("/x"), Dtype::f32), given).values;
    BOOST_TEST(within(cast(single, Dtype::f64), file.tensor(name + "/out"), 1e-6));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pooling_golden)

BOOST_AUTO_TEST_CASE(values_places_gradients_and_their_gradients) {
  const io::TensorFile file = support::fixture("pooling.safetensors");
  std::set<std::string> cases;
  for (const std::string_view name : file.names()) cases.insert(std::string(name.substr(0, name.find('/'))));
  BOOST_TEST(cases.size() >= 75U);
  for (const std::string& name : cases) check(file, name);
}

BOOST_AUTO_TEST_SUITE_END()
