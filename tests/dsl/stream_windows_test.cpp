// Operations that stride or look ahead, in a forward without layers for them.
#include <algorithm>
#include <array>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/pooling.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/pooling.h"
#include "support/compare.h"
#include "support/fed.h"

using namespace ferrite;
using support::gives_whole;
using support::identical;
using support::says;

namespace {

/// A layer whose forward consists of operations, with some weights.
struct Written final : nn::Layer {
  using Function = std::function<Tensor(const Tensor& x, const Written& layer)>;
  Parameter w{parameter("w", {4, 3, 3}, nn::init::uniform(-0.5, 0.5), {.seed = 1})};
  Parameter plane{parameter("plane", {2, 1, 3, 2}, nn::init::uniform(-0.5, 0.5), {.seed = 2})};
  Parameter b{parameter("b", {4}, nn::init::uniform(-0.5, 0.5), {.seed = 3})};
  nn::Gru gru{3, 3, nn::Init{.seed = 5}};
  Function f;
  explicit Written(Function function) : f(std::move(function)) { adopt("gru", gru); }
  std::string kind() const override { return "written"; }
  nn::StepInput step_input() const override { return {3}; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return f(x, *this); }
  std::unique_ptr<nn::Layer> clone() const override {
    auto copy = std::make_unique<Written>(f);
    nn::copy_values(*this, *copy);
    return copy;
  }
};

Tensor turned(const Tensor& x) { return transpose(x, 1, 2); }
/// Returns conv1d of steps [B, T, 3] -> [B, T', 4].
Tensor convolved(const Tensor& x, const Written& l, const ConvolutionOptions& options) {
  return turned(conv1d(turned(x), l.w.value(), l.b.value(), options));
}
std::int64_t steps(const Tensor& x) { return x.shape()[1]; }

struct WindowCase {
  const char* words;
  std::int64_t stride, delay;
  Written::Function f;
};
const std::vector<WindowCase> kWindows = {
    {"a convolution that strides", 2, 1,
     [](const Tensor& x, const Written& l) { return convolved(x, l, {.stride = {2}, .padding = {1}}); }},
    {"one without padding", 3, 4,
     [](const Tensor& x, const Written& l) { return convolved(x, l, {.stride = {3}, .dilation = {2}}); }},
    {"one that looks ahead", 1, 2,
     [](const Tensor& x, const Written& l) { return convolved(x, l, {.padding = {2}, .dilation = {2}}); }},
    {"one with a weight norm", 2, 2,
     [](const Tensor& x, const Written& l) {
       const Tensor v = l.w.value();
       return turned(conv1d(turned(x), v / sqrt(sum(v * v, {1, 2}, true)), {}, {.stride = {2}}));
     }},
    {"padding by an operation of its own", 1, 1,
     [](const Tensor& x, const Written& l) {
       return convolved(pad(x, {0, 1, 0}, {0, 1, 0}), l, {});
     }},
    {"padding on one side", 2, 0,
     [](const Tensor& x, const Written& l) {
       return convolved(pad(x, {0, 2, 0}, {0, 0, 0}), l, {.stride = {2}});
     }},
    {"padding joined in front and behind", 1, 1,
     [](const Tensor& x, const Written& l) {
       const Tensor edge = full({x.shape()[0], 1, 3}, 0.25);
       return convolved(concat({edge, x, edge}, 1), l, {});
     }},
    {"a plane of steps and features", 2, 1,
     [](const Tensor& x, const Written& l) {
       const Tensor y = conv2d(unsqueeze(x, 1), l.plane.value(), {}, {.stride = {2, 1}, .padding = {1, 0}});
       return flatten(transpose(y, 1, 2), 2, -1);
     }},
    {"strides of strides", 6, 3,
     [](const Tensor& x, const Written& l) {
       const Tensor y = convolved(x, l, {.stride = {2}, .padding = {1}});
       return turned(avg_pool1d(turned(tanh(y)), {2}, {.stride = {3}}));
     }},
    {"the largest of some", 2, 1,
     [](const Tensor& x, const Written&) {
       return turned(max_pool1d(turned(x), {3}, {.stride = {2}, .padding = {1}}));
     }},
    {"the largest of two that came", 1, 0,
     [](const Tensor& x, const Written&) {
       return turned(max_pool1d(turned(pad(x, {0, 1, 0}, {0, 0, 0}, -2)), {2}, {.stride = {1}}));
     }},
    {"the largest beside it", 1, 1,
     [](const Tensor& x, const Written&) {
       return turned(max_pool1d(turned(x), {3}, {.stride = {1}, .padding = {1}}));
     }},
    {"the largest, of what is left at the end, too", 2, 1,
     [](const Tensor& x, const Written&) {
       return turned(max_pool1d(turned(x), {3}, {.stride = {2}, .padding = {1}, .ceil_mode = true}));
     }},
    {"a mean", 4, 3, [](const Tensor& x, const Written&) { return turned(avg_pool1d(turned(x), {4})); }},
    {"differences", 1, 1,
     [](const Tensor& x, const Written&) { return slice(x, 1, 1) - slice(x, 1, 0, steps(x) - 1); }},
    {"steps without the first ones", 1, 2, [](const Tensor& x, const Written&) { return tanh(slice(x, 1, 2)); }},
    {"and without the last ones", 1, 3, [](const Tensor& x, const Written&) { return slice(x, 1, 0, steps(x) - 3); }},
    {"every third step from the second one on", 3, 1,
     [](const Tensor& x, const Written&) { return slice(x, 1, 1, steps(x), 3); }},
    {"some steps in one", 4, 3,
     [](const Tensor& x, const Written&) {
       return tanh(reshape(x, {x.shape()[0], steps(x) / 4, 12}));
     }},
    {"rarely one", 70, 0, [](const Tensor& x, const Written&) { return slice(x, 1, 0, steps(x), 70); }},
    {"a shift in front of a stride", 5, 1,
     [](const Tensor& x, const Written& l) {
       const Tensor late = pad(turned(x), {0, 0, 1}, {0, 0, -1});
       return turned(conv1d(late, l.w.value(), {}, {.stride = {5}, .padding = {1}}));
     }},
    {"differences of channels in front of steps", 1, 1,
     [](const Tensor& x, const Written&) {
       const Tensor y = turned(x);
       return turned(slice(y, 2, 1) - slice(y, 2, 0, steps(x) - 1));
     }},
    {"a step ahead of the last", 1, 1,
     [](const Tensor& x, const Written&) {
       return slice(concat({x, zeros({x.shape()[0], 1, 3})}, 1), 1, 1);
     }},
    {"look-ahead over a delay of more steps", 1, 2,
     [](const Tensor& x, const Written& l) {
       const Tensor late = slice(concat({zeros({x.shape()[0], 3, 3}), x}, 1), 1, 0, steps(x));
       return convolved(pad(late, {0, 0, 0}, {0, 2, 0}), l, {});
     }},
    {"the same by a padding that cuts", 1, 1,
     [](const Tensor& x, const Written& l) {
       return turned(conv1d(pad(turned(x), {0, 0, 3}, {0, 0, -3}), l.w.value(), {}, {.padding = {1}}));
     }},
    {"steps of windows that are cut off again", 1, 0,
     [](const Tensor& x, const Written& l) {
       const Tensor y = slice(convolved(x, l, {.padding = {2}}), 2, 0, 3);
       return slice(convolved(tanh(y), l, {.padding = {2}}), 1, 0, steps(x));
     }},
    {"a recurrence of what looks ahead, beside its input", 1, 1,
     [](const Tensor& x, const Written& l) {
       return l.gru(turned(avg_pool1d(turned(x), {3}, {.stride = {1}, .padding = {1}}))) + x;
     }},
    {"a recurrence between strides", 4, 3,
     [](const Tensor& x, const Written& l) {
       const Tensor y = turned(max_pool1d(turned(x), {2}));
       return slice(l.gru(y), 1, 1, steps(y), 2);
     }},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_windows)

BOOST_AUTO_TEST_CASE(operations_that_stride_or_look_ahead_stream) {
  for (const WindowCase& c : kWindows)
    for (const std::int64_t B : {1, 2})
      for (const std::int64_t T : {29, 36}) {
        if (c.words == std::string("some steps in one") && T == 29) continue;
        BOOST_TEST_CONTEXT(c.words << ", " << B << " rows, " << T << " steps") {
          const Tensor x = uniform({B, T, 3}, {.seed = 3}, -1, 1);
          const Written layer(c.f);
          nn::Stream stream = layer.stream(B);
          BOOST_TEST(stream.on_tensors() == 0U);
          BOOST_TEST(stream.stride() == c.stride);
          BOOST_TEST(stream.delay() == c.delay);
          BOOST_TEST(gives_whole(stream, x, layer(x)));
          for (const Parameter& p : layer.parameters()) p.assign(p.value() * 1.5);
          nn::Stream copy = stream.clone();
          copy.refresh();
          copy.reset();
          BOOST_TEST(gives_whole(copy, x, layer(x)));
        }
      }
}

/// The sequences are long enough to show where the last window ends.
BOOST_AUTO_TEST_CASE(long_strides_end_where_the_sequence_does) {
  const std::vector<Written::Function> all = {
      [](const Tensor& x, const Written&) { return slice(x, 1, 0, steps(x), 100); },
      [](const Tensor& x, const Written&) { return turned(max_pool1d(turned(x), {200}, {.ceil_mode = true})); },
      [](const Tensor& x, const Written&) {
        return turned(max_pool1d(max_pool1d(turned(x), {16}), {8}, {.ceil_mode = true}));
      }};
  for (const Written::Function& f : all)
    for (const std::int64_t T : {144, 201, 303, 400, 401}) {
      const Tensor x = uniform({1, T, 3}, {.seed = 3}, -1, 1);
      const Written layer(f);
      nn::Stream stream = layer.stream();
      BOOST_TEST(gives_whole(stream, x, layer(x)), T);
    }
}

/// A window of a value that has no step yet sees only padding.
BOOST_AUTO_TEST_CASE(short_sequences_end_as_they_do_in_whole) {
  const Written layer([](const Tensor& x, const Written& l) {
    return convolved(slice(x, 1, 4, steps(x), 3), l, {.stride = {2}, .padding = {2}});
  });
  nn::Stream stream = layer.stream(2);
  for (const std::int64_t T : {4, 5, 6, 9}) {
    stream.reset();
    const Tensor x = uniform({2, T, 3}, {.seed = 3}, -1, 1);
    BOOST_TEST(gives_whole(stream, x, layer(x)), T);
  }
  stream.reset();
  std::vector<float> y(8);
  BOOST_TEST(!stream.finish(std::span<float>(y)));  // without an input there is no sequence
  stream.reset();
  const std::vector<float> x(6, 0.5F);
  for (int t = 0; t < 5; ++t) (void)stream.feed(x, y);
  stream.reset(1);
  bool first = false;
  while (stream.finish(std::span<float>(y))) {
    first = first || stream.gave(0);
    BOOST_TEST(!stream.gave(1));
  }
  BOOST_TEST(first);
}

/// The check of tokens is not part of the value that a window reads.
BOOST_AUTO_TEST_CASE(tokens_that_are_ahead_stream) {
  struct Ahead final : nn::Layer {
    nn::Embedding table{{.vocabulary = 7, .features = 3}, {.seed = 1}};
    Ahead() { adopt("table", table); }
    std::string kind() const override { return "ahead"; }
    nn::StepInput step_input() const override { return table.step_input(); }
    Tensor forward(const Tensor& x, const nn::Context&) const override {
      return table(slice(x, 1, 1)) + table(slice(x, 1, 0, steps(x) - 1));
    }
    std::unique_ptr<nn::Layer> clone() const override {
      auto copy = std::make_unique<Ahead>();
      nn::copy_values(*this, *copy);
      return copy;
    }
  };
  const Ahead layer;
  const Tensor x = Tensor::from(std::vector<std::int64_t>{3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 0, 6}, {1, 12});
  const Tensor whole = layer(x);
  nn::Stream stream = layer.stream();
  Tensors rows;
  for (const std::int64_t token : x.to_vector<std::int64_t>()) {
    std::vector<float> y(3);
    if (stream.feed(std::array<std::int64_t, 1>{token}, y)) rows.push_back(Tensor::from(y, {3}));
  }
  BOOST_TEST(stream.delay() == 1);
  BOOST_TEST(identical(stack(std::span<const Tensor>(rows.data(), rows.size()), 0), select(whole, 0, 0)));
}

BOOST_AUTO_TEST_CASE(windows_that_no_stream_can_hold_are_refused) {
  const auto refused = [](const Written::Function& f, const char* why) {
    BOOST_CHECK_EXCEPTION((void)Written(f).stream(2), ValueError, says(why));
  };
  for (const std::int64_t g : {2, 3, 4, 6, 8, 12}) {  // the rest comes first, or waits for its group
    const Written::Function begins = [g](const Tensor& x, const Written&) {
      return reshape(slice(x, 1, steps(x) % g), {x.shape()[0], steps(x) / g, g * 3});
    };
    const Written::Function kept = [g](const Tensor& x, const Written&) {
      return slice(x, 1, (steps(x) - 1) % g, steps(x), g);
    };
    const Written::Function joined = [g](const Tensor& x, const Written&) {
      const Tensor y = pad(x, {0, 0, 0}, {0, 1, 0});
      return reshape(slice(y, 1, 0, steps(y) / g * g), {x.shape()[0], steps(y) / g, g * 3});
    };
    for (const Written::Function& f : {begins, kept, joined}) refused(f, "");
    refused([g](const Tensor& x, const Written&) { return turned(avg_pool1d(turned(x), {g}, {.ceil_mode = true})); },
            "");
  }
  refused(
      [](const Tensor& x, const Written&) {
        return turned(max_pool1d(turned(pad(x, {0, 1, 0}, {0, 0, 0})), {3}, {.ceil_mode = true}));
      },
      "reads other padding after the last step than before the first");
  refused(
      [](const Tensor& x, const Written&) {
        return turned(avg_pool1d(turned(x), {3}, {.padding = {1}, .count_include_pad = false}));
      },
      "differs from step to step");
  refused(
      [](const Tensor& x, const Written&) {
        return reshape(x, {x.shape()[0], 4, 3 * steps(x) / 4});
      },
      "reshape gives equally many steps for sequences of any length");
}

BOOST_AUTO_TEST_SUITE_END()
