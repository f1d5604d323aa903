// Layers whose forward calls other layers: those stream by their own steps, and the operations between them as
// programs.
#include <algorithm>
#include <array>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/attention.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/convolution.h"
#include "ferrite/nn/layers/per_step.h"
#include "ferrite/nn/layers/pooling.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/norms.h"
#include "support/compare.h"
#include "support/fed.h"

using namespace ferrite;
using support::gives_whole;
using support::identical;
using support::says;

namespace {

/// Returns x delayed by some steps, with zeros at first.
Tensor later(const Tensor& x, std::int64_t steps) {
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  return slice(concat({zeros({B, steps, x.shape()[2]}, x.dtype()), x}, 1), 1, 0, T);
}

/// A layer whose forward calls others: they run by their own steps, and the operations between them as programs.
struct Composed final : nn::Layer {
  using Function = std::function<Tensor(const Tensor& x, const Composed& layer)>;
  nn::CausalConv1d conv{{.in_channels = 3, .out_channels = 3, .kernel_size = 3, .dilation = 2}, {.seed = 1}};
  nn::CausalConv1d strided{{.in_channels = 3, .out_channels = 3, .kernel_size = 3, .stride = 2}, {.seed = 2}};
  nn::Conv1d ahead{{.in_channels = 3,
                    .out_channels = 3,
                    .kernel_size = {5},
                    .padding = ConvolutionPadding::same,
                    .channels_last = true},
                   {.seed = 3}};
  nn::MultiheadAttention attention{{.embed_dim = 3, .num_heads = 1, .causal = true, .capacity = 64}, {.seed = 4}};
  nn::Gru gru{3, 3, nn::Init{.seed = 5}};
  Function f;
  explicit Composed(Function function) : f(std::move(function)) {
    adopt("conv", conv), adopt("strided", strided), adopt("ahead", ahead), adopt("attention", attention);
    adopt("gru", gru);
  }
  std::string kind() const override { return "composed"; }
  nn::StepInput step_input() const override { return {3}; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return f(x, *this); }
  std::unique_ptr<nn::Layer> clone() const override {
    auto copy = std::make_unique<Composed>(f);
    nn::copy_values(*this, *copy);
    return copy;
  }
};

struct ComposedCase {
  const char* words;
  std::int64_t stride, delay;
  std::size_t kernels;
  Composed::Function f;
};
const std::vector<ComposedCase> kComposed = {
    {"one layer behind another", 1, 0, 2, [](const Tensor& x, const Composed& l) { return l.gru(l.conv(x)); }},
    {"a value that two read", 1, 0, 2,
     [](const Tensor& x, const Composed& l) {
       const Tensor s = sigmoid(later(x, 1) + x);
       return l.gru(s) + l.conv(s) * s;
     }},
    {"one layer called twice", 1, 0, 2, [](const Tensor& x, const Composed& l) { return l.gru(tanh(l.gru(x))); }},
    {"a stride", 2, 0, 3, [](const Tensor& x, const Composed& l) { return l.gru(l.strided(tanh(l.conv(x)))); }},
    {"look-ahead beside its input", 1, 2, 1, [](const Tensor& x, const Composed& l) { return x - l.ahead(x); }},
    {"a recurrence of what waits", 1, 4, 3,
     [](const Tensor& x, const Composed& l) {
       const Tensor y = l.ahead(l.ahead(x)) * later(x, 1);
       return l.gru(y) + x;
     }},
    {"look-ahead and a stride", 2, 2, 3,
     [](const Tensor& x, const Composed& l) { return l.gru(l.strided(l.ahead(x) + x)); }},
    {"attention", 1, 0, 2, [](const Tensor& x, const Composed& l) { return l.conv(x + l.attention(x)); }},
    {"a call that is no step: with lengths", 1, 0, 0,
     [](const Tensor& x, const Composed& l) {
       return l.conv(x, {.lengths = full({x.shape()[0]}, x.shape()[1], Dtype::i64)});
     }},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_composed)

BOOST_AUTO_TEST_CASE(layers_that_a_forward_calls_run_by_their_own_steps) {
  const Tensor x = uniform({2, 40, 3}, {.seed = 3}, -1, 1);
  for (const ComposedCase& c : kComposed) {
    BOOST_TEST_CONTEXT(c.words) {
      const Composed layer(c.f);
      nn::Stream stream = layer.stream(2);
      BOOST_TEST(stream.on_tensors() == 0U);
      BOOST_TEST(stream.stride() == c.stride);
      BOOST_TEST(stream.delay() == c.delay);
      const nn::StreamReport report = stream.report();
      const auto is_kernel = [](const nn::LayerReport& l) { return l.runs == "kernel" && !l.layer.empty(); };
      const auto kernels = static_cast<std::size_t>(std::ranges::count_if(report.layers, is_kernel));
      BOOST_TEST((c.kernels > 0 ? kernels >= c.kernels : kernels == 0));
      BOOST_TEST(gives_whole(stream, x, layer(x)));
      for (const Parameter& p : layer.parameters()) p.assign(p.value() * 1.5);
      nn::Stream copy = stream.clone();
      stream.refresh();
      stream.reset();
      BOOST_TEST(gives_whole(stream, x, layer(x)));
      copy.refresh();
      copy.reset();
      BOOST_TEST(gives_whole(copy, x, layer(x)));
      if (c.stride > 1 || c.delay > 0) continue;
      std::vector<float> out(2 * 40 * 3);
      copy.reset();
      copy.steps(40, contiguous(transpose(x, 0, 1)).to_vector<float>(), out);
      BOOST_TEST(identical(contiguous(transpose(Tensor::from(out, {40, 2, 3}), 0, 1)), layer(x)));
    }
  }
}

/// Forwards that can be cut in only one way, or not at all.
const std::vector<ComposedCase> kCutOtherwise = {
    {"a layer that ends with its call", 1, 0, 1,
     [](const Tensor& x, const Composed& l) {
       return nn::Celu()(nn::AvgPool1d({.kernel_size = {1}, .stride = {1}, .channels_last = true})(l.gru(x)));
     }},
    {"a call that is ahead of the input", 1, 0, 0,
     [](const Tensor& x, const Composed& l) {
       const Tensor first = zeros({x.shape()[0], 1, 3});
       return slice(l.gru(concat({first, x}, 1)), 1, 0, x.shape()[1]);
     }},
    {"steps joined with rows in a layer that says how", 1, 0, 1,
     [](const Tensor& x, const Composed& l) {
       const nn::PerStep flat({.name = "flat", .function = [](const Tensor& y) {
                                 const std::int64_t B = y.shape()[0], T = y.shape()[1];
                                 return reshape(tanh(reshape(y, {B * T, 3})), {B, T, 3});
                               }});
       return flat(l.gru(x));
     }},
    {"a call that throws, and is caught", 1, 0, 1,
     [](const Tensor& x, const Composed& l) {
       Tensor y = x;
       try {
         y = l.gru(concat({x, x}, 2));
       } catch (const ShapeError&) {
       }
       return l.conv(y);
     }},
    {"many strides", 64, 0, 3,
     [](const Tensor& x, const Composed& l) {
       Tensor y = x;
       for (int i = 0; i < 6; ++i) y = l.strided(y);
       return y;
     }},
};

/// A carried value that several programs need is carried once.
BOOST_AUTO_TEST_CASE(shared_values_are_computed_once) {
  const Composed layer([](const Tensor& x, const Composed& l) {
    const Tensor u = sigmoid(later(x, 1) + x);
    return l.gru(u * 2) + l.conv(u * 3) * u;
  });
  const Tensor x = uniform({1, 20, 3}, {.seed = 3}, -1, 1);
  nn::Stream stream = layer.stream();
  BOOST_TEST(gives_whole(stream, x, layer(x)));
  BOOST_TEST(layer.stream().save().size() == 3U);  // the delay, h, and the inputs in the convolution
}

BOOST_AUTO_TEST_CASE(layers_are_cut_where_steps_can_be_found) {
  const Tensor x = uniform({2, 150, 3}, {.seed = 3}, -1, 1);
  for (const ComposedCase& c : kCutOtherwise)
    for (const std::int64_t B : {1, 2}) {
      BOOST_TEST_CONTEXT(c.words << ", " << B << " rows") {
        const Composed layer(c.f);
        nn::Stream stream = layer.stream(B);
        BOOST_TEST(stream.on_tensors() == 0U);
        BOOST_TEST(stream.stride() == c.stride);
        const Tensor rows = contiguous(slice(x, 0, 0, B));
        BOOST_TEST(gives_whole(stream, rows, layer(rows)));
      }
    }
}

/// Tracing leaves out the expansion to all rows if there is one row.
BOOST_AUTO_TEST_CASE(one_row_streams_as_several_do) {
  const Composed layer([](const Tensor& x, const Composed& l) {
    const Tensor first = expand(unsqueeze(select(l.conv.weight.value(), 2, 0), 0), {x.shape()[0], 3, 3});
    return l.gru(slice(concat({first, x}, 1), 1, 0, x.shape()[1]));
  });
  for (const std::int64_t B : {1, 2, 5}) {
    const Tensor x = uniform({B, 20, 3}, {.seed = 3}, -1, 1);
    nn::Stream stream = layer.stream(B);
    BOOST_TEST(gives_whole(stream, x, layer(x)));
  }
}

BOOST_AUTO_TEST_CASE(layers_that_take_no_negative_numbers_stream) {
  const Composed layer([](const Tensor& x, const Composed& l) { return l.gru(checked(x, 0, 1, "a share")); });
  const Tensor x = uniform({1, 20, 3}, {.seed = 3}, 0, 1);
  nn::Stream stream = layer.stream();
  BOOST_TEST(gives_whole(stream, x, layer(x)));
  std::vector<float> y(3);
  BOOST_CHECK_THROW(stream.feed(std::array<float, 3>{0, 2, 0}, y), Error);
}

BOOST_AUTO_TEST_CASE(results_with_other_rows_are_refused) {
  for (const bool fewer : {true, false}) {
    const Composed layer([fewer](const Tensor& x, const Composed&) {
      return fewer ? mean(x, {0}, true) : concat({x, x}, 0);
    });
    BOOST_CHECK_THROW((void)layer.stream(2), ValueError);
  }
}

/// Weights that no longer are the same in all steps are refused, and no weight has been taken.
BOOST_AUTO_TEST_CASE(a_refused_refresh_changes_nothing) {
  struct Positions final : nn::Layer {
    Parameter p;
    nn::Gru gru{3, 3, nn::Init{.seed = 5}};
    Positions() { p = parameter("p", {64, 3}, nn::init::constant(0), {.seed = 1}), adopt("gru", gru); }
    std::string kind() const override { return "positions"; }
    nn::StepInput step_input() const override { return {3}; }
    Tensor forward(const Tensor& x, const nn::Context&) const override {
      return gru(x) + slice(p.value(), 0, 0, x.shape()[1]);
    }
    std::unique_ptr<nn::Layer> clone() const override {
      auto copy = std::make_unique<Positions>();
      nn::copy_values(*this, *copy);
      return copy;
    }
  };
  const Positions layer;
  const Tensor x = uniform({1, 20, 3}, {.seed = 3}, -1, 1), whole = layer(x);
  nn::Stream stream = layer.stream();
  for (const Parameter& p : layer.parameters()) p.assign(uniform(p.shape(), {.seed = 9}, -1, 1));
  BOOST_CHECK_EXCEPTION(stream.refresh(), ValueError, says("differs from step to step"));
  BOOST_TEST(gives_whole(stream, x, whole));
}

/// A layer that a user derives from nn::Windowed.
struct Strided final : nn::Windowed {
  nn::StepWindow w;
  explicit Strided(const nn::StepWindow& window) : w(window) {}
  std::string kind() const override { return "strided"; }
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return {3}; }
  std::optional<nn::StepWindow> window() const override { return w; }
  Tensor over(const Tensor& x) const override { return cast(gt(sum(x, {1}), 0), Dtype::boolean); }
  Tensor forward(const Tensor& x, const nn::Context&) const override {
    Tensors outputs;
    for (std::int64_t t = 0; t + w.reach() < x.shape()[1]; t += w.stride)
      outputs.push_back(over(slice(x, 1, t, t + w.reach() + 1, w.dilation)));
    return stack(std::span<const Tensor>(outputs.data(), outputs.size()), 1);
  }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Strided>(w); }
};

BOOST_AUTO_TEST_CASE(windows_of_users_stream_with_strides_and_rows_of_any_bytes) {
  struct Bools final : nn::Windowed {  // returns whether any of three rows of bools is true
    std::string kind() const override { return "bools"; }
    bool causal() const override { return true; }
    std::optional<nn::StepWindow> window() const override { return nn::StepWindow{.taps = 3}; }
    Tensor over(const Tensor& x) const override { return cast(any(x, {1}), Dtype::f32); }
    Tensor forward(const Tensor& x, const nn::Context&) const override {
      const std::int64_t T = x.shape()[1];
      Tensor y = cast(slice(x, 1, 2, T), Dtype::f32);
      for (const std::int64_t t : {0, 1}) y = maximum(y, cast(slice(x, 1, t, T - 2 + t), Dtype::f32));
      return y;
    }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Bools>(); }
  };
  auto net = dsl::sequence(3).add(Strided({.taps = 4, .dilation = 2, .stride = 3})).add(Bools()).build(1);
  const Tensor x = uniform({2, 60, 3}, {.seed = 3}, -1, 1);
  nn::Stream stream = net.stream(2);
  BOOST_TEST(stream.stride() == 3);
  BOOST_TEST(gives_whole(stream, x, net(x)));
  for (const nn::StepWindow& w : {nn::StepWindow{.taps = 0}, nn::StepWindow{.dilation = 0}, nn::StepWindow{.stride = 0},
                                  nn::StepWindow{.before = 2}, nn::StepWindow{.after = -1}})
    BOOST_CHECK_EXCEPTION((void)Strided(w).stream(), ValueError, says("cannot be streamed"));
}

BOOST_AUTO_TEST_SUITE_END()
