// Convolutions, their gradients and second gradients compared with PyTorch 2.13:
// tests/data/make_convolution_fixtures.py writes the cases.
#include <boost/test/unit_test.hpp>
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

constexpr double kTolerance = 1e-12;

/// The contents of NAME/options.
struct Case {
  bool transposed;
  int axes;
  ConvolutionOptions convolution;
  TransposedOptions transposition;
};

Case case_of(const std::vector<std::int64_t>& v) {
  Case c{v[0] == 1, static_cast<int>(v[1]), {}, {}};
  const auto numbers = [&](std::size_t list) {
    Shape s;
    for (std::size_t i = 0; i < static_cast<std::size_t>(v[1]); ++i)
      s.push_back(v[4 + list * static_cast<std::size_t>(v[1]) + i]);
    return s;
  };
  c.convolution = {.stride = numbers(0),
                   .padding = numbers(1),
                   .dilation = numbers(2),
                   .groups = v[2],
                   .padding_mode = static_cast<PaddingMode>(v[3])};
  if (numbers(1)[0] == -1) c.convolution.padding = ConvolutionPadding::same;
  c.transposition = {.stride = numbers(0),
                     .padding = numbers(1),
                     .output_padding = numbers(3),
                     .groups = v[2],
                     .dilation = numbers(2)};
  return c;
}

Tensor apply(const Case& c, const Tensor& x, const Tensor& w, const Tensor& b) {
  const auto convolutions = {conv1d, conv2d, conv3d};
  const auto transposed = {conv_transpose1d, conv_transpose2d, conv_transpose3d};
  if (c.transposed) return transposed.begin()[c.axes - 1](x, w, b, c.transposition);
  return convolutions.begin()[c.axes - 1](x, w, b, c.convolution);
}

Tensor counted(const Tensor& x) { return reshape(cast(arange(x.numel()), x.dtype()), x.shape()); }

std::set<std::string> names(const io::TensorFile& file) {
  std::set<std::string> cases;
  for (const std::string_view name : file.names()) cases.insert(std::string(name.substr(0, name.find('/'))));
  return cases;
}

void check(const io::TensorFile& file, const std::string& name) {
  BOOST_TEST_CONTEXT(name) {
    const Case c = case_of(file.tensor(name + "/options").to_vector<std::int64_t>());
    const auto drawn = [&](const char* what) { return cast(file.tensor(name + what), Dtype::f64); };
    const bool biased = file.contains(name + "/b");
    Tape outer;
    const Tensor x = outer.watch(drawn("/x")), w = outer.watch(drawn("/w"));
    const Tensor b = biased ? outer.watch(drawn("/b")) : Tensor();
    const Tensor y = apply(c, x, w, b);
    BOOST_TEST(within(y, file.tensor(name + "/out"), kTolerance));
    Tensors inputs{x, w};
    if (biased) inputs.push_back(b);
    const Tensors g =
        outer.grad(y, std::span<const Tensor>(inputs.data(), inputs.size()), {.create_graph = true}, drawn("/cot"));
    BOOST_TEST(within(g[0], file.tensor(name + "/gx"), kTolerance));
    BOOST_TEST(within(g[1], file.tensor(name + "/gw"), kTolerance));
    if (biased) BOOST_TEST(within(g[2], file.tensor(name + "/gb"), kTolerance));
    const Tensors h = outer.grad(sum(g[0] * sin(counted(x))) + sum(g[1] * cos(counted(w))), {x, w});
    BOOST_TEST(within(h[0], file.tensor(name + "/hx"), kTolerance));
    BOOST_TEST(within(h[1], file.tensor(name + "/hw"), kTolerance));
    // f32 is within a few roundings of sums of products below 1.
    const auto single = [&](const char* what) { return cast(drawn(what), Dtype::f32); };
    const Tensor short_y = apply(c, single("/x"), single("/w"), biased ? single("/b") : Tensor());
    BOOST_TEST(within(cast(short_y, Dtype::f64), file.tensor(name + "/out"), 1e-6));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(convolution_golden)

BOOST_AUTO_TEST_CASE(values_gradients_and_their_gradients) {
  const io::TensorFile file = support::fixture("convolution.safetensors");
  const std::set<std::string> cases = names(file);
  BOOST_TEST(cases.size() >= 45U);
  for (const std::string& name : cases) check(file, name);
}

BOOST_AUTO_TEST_SUITE_END()
