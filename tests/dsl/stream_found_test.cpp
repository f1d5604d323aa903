// Layers that define `forward` alone: what a step carries is found in the program of all steps.
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/cumulative.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

constexpr std::int64_t kFoundFeatures = 3;

/// A layer that is one function without any declaration about steps.
struct Found final : nn::Layer {
  using Function = std::function<Tensor(const Tensor& x, const Found& layer)>;
  Parameter weight, bias;
  nn::Gru gru{kFoundFeatures, kFoundFeatures, nn::Init{.seed = 7}};
  Function f;
  explicit Found(Function function, const nn::Init& init = {.seed = 5}) : Layer(init), f(std::move(function)) {
    weight = parameter("weight", {kFoundFeatures, kFoundFeatures, 2}, nn::init::uniform(-1, 1), init);
    bias = parameter("bias", {kFoundFeatures}, nn::init::uniform(-1, 1), init);
    adopt("gru", gru);
  }
  std::string kind() const override { return "found"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return f(x, *this); }
  std::unique_ptr<nn::Layer> clone() const override {
    auto copy = std::make_unique<Found>(f);
    nn::copy_values(*this, *copy);
    return copy;
  }
};

/// Returns x delayed by some steps, with zeros at first.
Tensor delayed(const Tensor& x, std::int64_t steps) {
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  return slice(concat({zeros({B, steps, x.shape()[2]}, x.dtype()), x}, 1), 1, 0, T);
}
/// Returns a causal convolution over two steps, `dilation` apart, written with channels first.
Tensor convolved(const Tensor& x, const Found& l, std::int64_t dilation) {
  const Tensor padded = pad(transpose(x, 1, 2), {0, 0, dilation}, {0, 0, 0});
  return transpose(conv1d(padded, l.weight.value(), l.bias.value(), {.dilation = {dilation}}), 1, 2);
}

const std::vector<std::pair<const char*, Found::Function>> kFound = {
    {"differences", [](const Tensor& x, const Found&) { return x - delayed(x, 1); }},
    {"an echo of itself", [](const Tensor& x, const Found& l) { return x + l.bias * delayed(x, 4); }},
    {"a convolution", [](const Tensor& x, const Found& l) { return convolved(x, l, 1); }},
    {"a dilated one beside its input", [](const Tensor& x, const Found& l) { return x + tanh(convolved(x, l, 3)); }},
    {"two of them", [](const Tensor& x, const Found& l) { return convolved(sigmoid(convolved(x, l, 2)), l, 3); }},
    {"a delay that begins with what weights make of zeros",
     [](const Tensor& x, const Found& l) { return exp(delayed(x, 3) + l.bias); }},
    {"branches of unequal delays",
     [](const Tensor& x, const Found& l) {
       return concat({delayed(x, 2), convolved(x, l, 1), delayed(x, 5)}, 2);
     }},
    {"a recurrent layer within", [](const Tensor& x, const Found& l) { return x * l.gru(delayed(x, 1)); }},
    {"nothing to carry", [](const Tensor& x, const Found& l) { return exp(x) * l.bias; }},
};

Tensor rows_of(const std::vector<float>& y, std::int64_t B) {
  const std::int64_t T = 20, N = static_cast<std::int64_t>(y.size()) / (B * T);
  return contiguous(transpose(Tensor::from(y, {T, B, N}), 0, 1));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_found)

BOOST_AUTO_TEST_CASE(a_forward_is_enough_to_stream) {
  const Tensor x = uniform({2, 20, kFoundFeatures}, {.seed = 3}, -1, 1);
  const std::vector<float> in = contiguous(transpose(x, 0, 1)).to_vector<float>();
  for (const auto& [words, f] : kFound) {
    BOOST_TEST_CONTEXT(words) {
      const Found layer(f);
      const Tensor whole = layer(x);
      const std::size_t row = static_cast<std::size_t>(2 * whole.shape()[2]);
      nn::Stream stream = layer.stream(2);
      std::vector<float> out(20 * row);
      stream.steps(20, in, out);
      BOOST_TEST(stream.on_tensors() == 0U);
      BOOST_TEST(identical(rows_of(out, 2), whole));
      // From the middle: saved, restored in another stream, cloned.
      stream.reset();
      stream.steps(7, std::span(in).first(7 * 6), std::span(out).first(7 * row));
      nn::Stream other = layer.stream(2), copy = stream.clone();
      std::vector<float> skipped(row);
      other.step(std::span(in).first(6), skipped);  // the first step determines the width
      other.restore(stream.save());
      for (nn::Stream* s : {&other, &copy, &stream}) {
        std::vector<float> again(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(7 * row));
        again.resize(out.size());
        s->steps(13, std::span(in).subspan(7 * 6), std::span(again).subspan(7 * row));
        BOOST_TEST(identical(rows_of(again, 2), whole));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_row_that_begins_anew_has_the_steps_of_its_own_beginning) {
  const Tensor x = uniform({2, 20, kFoundFeatures}, {.seed = 4}, -1, 1);
  for (const auto& [words, f] : kFound) {
    BOOST_TEST_CONTEXT(words) {
      const Found layer(f);
      const Tensor whole = layer(x), anew = layer(slice(x, 1, 9, 20));
      const std::int64_t N = whole.shape()[2];
      nn::Stream stream = layer.stream(2);
      std::vector<float> y(static_cast<std::size_t>(2 * N));
      for (std::int64_t t = 0; t < 20; ++t) {
        if (t == 9) stream.reset(1);
        stream.step(select(x, 1, t).to_vector<float>(), y);
        const Tensor rows = Tensor::from(y, {2, N});
        BOOST_TEST(identical(select(rows, 0, 0), contiguous(select(select(whole, 0, 0), 0, t))));
        if (t >= 9) BOOST_TEST(identical(select(rows, 0, 1), contiguous(select(select(anew, 0, 1), 0, t - 9))));
      }
    }
  }
}

/// The values before the first step are a function of the weights, too.
BOOST_AUTO_TEST_CASE(refreshed_streams_begin_with_the_new_weights) {
  const Tensor x = uniform({2, 20, kFoundFeatures}, {.seed = 4}, -1, 1);
  const std::vector<float> in = contiguous(transpose(x, 0, 1)).to_vector<float>();
  for (const auto& [words, f] : kFound) {
    BOOST_TEST_CONTEXT(words) {
      const Found layer(f);
      nn::Stream stream = layer.stream(2);
      std::vector<float> out(static_cast<std::size_t>(layer(x).numel()));
      stream.steps(20, in, out);
      layer.weight.assign(layer.weight.value() * 2);
      layer.bias.assign(layer.bias.value() + 1);
      stream.refresh();
      stream.reset();
      stream.steps(20, in, out);
      BOOST_TEST(identical(rows_of(out, 2), layer(x)));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_causal_is_refused_by_its_layer_and_operation) {
  const auto refused = [](const Found::Function& f, const char* why) {
    auto net = dsl::sequence(kFoundFeatures).linear(kFoundFeatures).add(Found(f)).build(1);
    BOOST_CHECK_EXCEPTION((void)net.stream(), ValueError, says("stream: the layer '1' (found) is not causal: "));
    BOOST_CHECK_EXCEPTION((void)net.stream(), ValueError, says(why));
  };
  refused([](const Tensor& x, const Found&) { return x - mean(x, {1}, true); }, "sum of 1 reduces over time");
  refused([](const Tensor& x, const Found&) { return cumsum(x, 1); }, "cumsum of 1 goes along time");
  refused([](const Tensor& x, const Found&) { return flip(x, {1}); }, "slice of 1 turns the order of steps");
  refused([](const Tensor& x, const Found&) { return x * unsqueeze(cast(arange(x.shape()[1]), x.dtype()), 1); },
          "reads a constant that differs from step to step");
  const char* const fixed = "slice of 1 gives equally many steps for sequences of any length";
  const char* const other = "a step gives other numbers than the whole sequence";
  refused([](const Tensor& x, const Found&) { return x / x.shape()[1]; }, other);
  refused([](const Tensor& x, const Found&) { return x - slice(x, 1, 0, 1); }, fixed);
  refused([](const Tensor& x, const Found&) { return x * slice(delayed(x, 1), 1, 0, 1); }, fixed);
  refused(
      [](const Tensor& x, const Found& l) {
        const auto r = l.gru.run(x);
        return r.output * unsqueeze(r.state, 1);
      },
      other);
  refused(
      [](const Tensor& x, const Found&) {
        return pad(slice(x, 1, 0, x.shape()[1] - 1), {0, 0, 0}, {0, 1, 0});
      },
      "output 0 has 11 steps for 10 steps of the inputs");
  refused([](const Tensor& x, const Found&) { return x + delayed(x, x.shape()[1] / 3); },
          "what a step carries depends on the number of steps");
  refused([](const Tensor& x, const Found&) { return softmax(x, 1); }, "softmax of 1 goes along time");
}

BOOST_AUTO_TEST_CASE(reports_tell_how_each_layer_runs) {
  struct Turning final : nn::Layer {
    nn::Gru gru{3, 3, nn::Init{.seed = 3}};
    Turning() { adopt("gru", gru); }
    std::string kind() const override { return "turning"; }
    bool causal() const override { return true; }
    Tensor forward(const Tensor& x, const nn::Context& c) const override { return gru(flip(flip(x, {1}), {1}), c); }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Turning>(); }
  };
  const auto net = dsl::sequence(3).gru(4).dropout(0.5).linear(3).add(Found(kFound[2].second)).add(Turning()).build(1);
  const nn::StreamReport report = net.stream(2).report();
  BOOST_REQUIRE(report.layers.size() == 4U);
  const auto is = [&](std::size_t i, const char* layer, const char* kind, const char* runs, std::int64_t bytes) {
    const nn::LayerReport& l = report.layers[i];
    BOOST_TEST(l.layer == layer);
    BOOST_TEST(l.kind == kind);
    BOOST_TEST(l.runs == runs);
    BOOST_TEST(l.bytes == bytes);
  };
  is(0, "0", "gru", "kernel", 2 * 4 * 4);
  is(1, "2", "linear", "kernel", 0);
  is(2, "3", "found", "program", 2 * 3 * 4);
  is(3, "4", "turning", "tensors", 2 * 3 * 4);
  BOOST_TEST(report.layers[3].why.find("turns the order of steps") != std::string::npos);
  BOOST_TEST(report.bytes == 2 * 4 * 4 + 2 * 2 * 3 * 4);
  BOOST_TEST(report.at_once == 1);
  BOOST_TEST(report.str().find("turning  tensors") != std::string::npos);
  const nn::StreamReport fast = dsl::sequence(3).gru(4).linear(3).build(1).stream().report();
  BOOST_TEST(fast.at_once == 64);
  BOOST_TEST(fast.layers[1].at_once == 64);
  BOOST_TEST(fast.layers[0].why.empty());
}

BOOST_AUTO_TEST_SUITE_END()
