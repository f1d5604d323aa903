// Streams whose steps are programs: from the first step on, and on any thread, they take no memory from the system or
// the pool, and no lock.
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "counted.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/exchange/program_stream.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/profiler.h"
#include "support/causal_layers.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

constexpr std::int64_t kFeatures = 5;

struct Asked {
  std::uint64_t system = 0, pool = 0, locks = 0;
};

/// Returns the allocations of the steps of x [B, T, D], which write to y [T, B, N].
Asked asked_by(nn::Stream& stream, const std::vector<float>& x, std::vector<float>& y, std::int64_t steps) {
  const std::int64_t apart = steps / 2;
  const auto cut = [&](auto& all, std::int64_t from, std::int64_t to) {
    const std::size_t row = all.size() / static_cast<std::size_t>(steps);
    return std::span(all).subspan(static_cast<std::size_t>(from) * row, static_cast<std::size_t>(to - from) * row);
  };
  const std::uint64_t locks = counted::counts().locks, requests = pool_counts().requests;
  Asked a;
  a.system = counted::during([&] {
    for (std::int64_t t = 0; t < apart; ++t) stream.step(cut(x, t, t + 1), cut(y, t, t + 1));
    stream.steps(steps - apart, cut(x, apart, steps), cut(y, apart, steps));
  });
  a.pool = pool_counts().requests - requests;
  a.locks = counted::counts().locks - locks;
  return a;
}

/// Streams three rows on this thread, then on a new one.
void try_net(const std::string& name, const dsl::Builder& words, std::int64_t units) {
  BOOST_TEST_CONTEXT(name) {
    const std::int64_t B = 3, T = 40;
    const dsl::Network net = words.build(1);
    net.eval();
    const Tensor x = uniform({B, T, kFeatures}, {6, 1, 0}, -1, 1), y = net(x);
    const std::vector<float> in = contiguous(permute(x, {1, 0, 2})).to_vector<float>();
    std::vector<float> out(static_cast<std::size_t>(T * B * units));
    nn::Stream stream = net.stream(B);
    BOOST_TEST(stream.on_tensors() == 0U);
    const auto try_here = [&](const Asked& a, const char* where) {
      BOOST_TEST(a.system == 0U, where);
      BOOST_TEST(a.pool == 0U, where);
      BOOST_TEST(a.locks == 0U, where);
      BOOST_TEST(identical(permute(Tensor::from(out, {T, B, units}), {1, 0, 2}), y), where);
    };
    try_here(asked_by(stream, in, out, T), "here");
    nn::Stream moved = net.stream(B);
    Asked there;
    std::thread([&] { there = asked_by(moved, in, out, T); }).join();
    try_here(there, "on another thread");
    BOOST_TEST(counted::during([&] { stream.reset(1), stream.reset(); }) == 0U);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(alloc)

/// The yardstick is a short filter and a GRU in a residual.
BOOST_AUTO_TEST_CASE(layers_of_a_user_stream_without_asking_for_anything) {
  const nn::Init init{.seed = 4};
  const auto words = [] { return dsl::sequence(kFeatures); };
  try_net("a filter and a gru in a residual",
          words().residual([&](dsl::Builder& b) { b.add(causal_layers::Fir(kFeatures, init)).gru(kFeatures); }),
          kFeatures);
  try_net("the same as one layer", words().add(causal_layers::FilteredGru(kFeatures, init)), kFeatures);
  try_net("attention", words().add(causal_layers::Attention(kFeatures, 64, init)), kFeatures);
  try_net("a cell", words().recurrent<nn::LayerNormGruCell>(17, {.layers = 2}), 17);
}

BOOST_AUTO_TEST_CASE(composed_layers_stream_without_asking_for_anything) {
  const auto words = [] { return dsl::sequence(kFeatures); };
  for (const std::string& name : nn::activation_names())
    try_net(name, words().linear(kFeatures).activation(name), kFeatures);
  try_net("layer_norm", words().layer_norm(), kFeatures);
  try_net("standardize", words().standardize({.skip_missing = true}), kFeatures);
  try_net("per_step", words().per_step("saturate", [](const Tensor& x) { return tanh(3 * x) / 3; }), kFeatures);
  try_net("mel_bands", words().linear(9).mel_bands(3, 8000, {.log_offset = 0.5}), 3);
  try_net("weight_norm", words().weight_norm([](dsl::Builder& b) { b.causal_conv1d(7, 3); }), 7);
  try_net("spectral_norm", words().spectral_norm([](dsl::Builder& b) { b.linear(7); }), 7);
  try_net("causal_conv1d", words().causal_conv1d(7, 3, {.dilation = 4}), 7);
  try_net("causal_conv1d by channel", words().causal_conv1d(kFeatures, 3, {.groups = kFeatures}), kFeatures);
  try_net("mlstm", words().mlstm({.num_heads = 2, .chunk = 1}), kFeatures);
  try_net("slstm", words().slstm({.num_heads = 1}), kFeatures);
  try_net("attention", words().linear(8).attention(2, {.causal = true, .capacity = 64}), 8);
  try_net("attention with positions",
          words().linear(8).attention(
              4, {.kv_heads = 2, .causal = true, .positions = nn::Positions::rotary, .capacity = 64}),
          8);
  try_net("a transformer",
          words().linear(8).positions().repeat(
              2,
              [](dsl::Builder& b) {
                b.transformer(2, {.dim_feedforward = 16, .norm_first = true, .causal = true, .capacity = 64});
              }),
          8);
  try_net("a network", words().linear(24).silu().gru(24).layer_norm().softmax().linear(3), 3);
}

/// Transforms use plans that the stream has made, also on a thread that has made none.
BOOST_AUTO_TEST_CASE(spectra_stream_without_asking_for_anything) {
  for (const std::int64_t n_fft : {16, 37}) {
    const auto net = dsl::sequence(2)
                         .stft(n_fft, {.hop_length = 5, .center = false})
                         .inverse_stft(n_fft, {.hop_length = 5, .center = false})
                         .build(1);
    nn::Stream stream = net.stream();
    std::uint64_t system = 1, pool = 1, locks = 1, given = 0;
    std::thread([&] {
      const std::vector<float> x(2, 0.5F);
      std::vector<float> y(10);
      const std::uint64_t requests = pool_counts().requests, taken = counted::counts().locks;
      system = counted::during([&] {
        for (int i = 0; i < 200; ++i)
          if (stream.feed(x, y)) ++given;
      });
      pool = pool_counts().requests - requests;
      locks = counted::counts().locks - taken;
    }).join();
    BOOST_TEST(given > 20U);
    BOOST_TEST(system == 0U);
    BOOST_TEST(pool == 0U);
    BOOST_TEST(locks == 0U);
  }
}

/// The program has planes, features and a recurrence.
BOOST_AUTO_TEST_CASE(steps_of_a_program_allocate_nothing) {
  const Tensor w = uniform({4, 1, 3, 3}, {.seed = 1}, -1, 1);
  const nn::Gru gru(32, 8, {}, {.seed = 2});
  const auto f = [&](const Tensors& in) {
    const std::int64_t T = in[0].shape()[2];
    const Tensor y = relu(conv2d(pad(in[0], {0, 0, 2, 1}, {0, 0, 0, 1}), w));
    return Tensors{gru(reshape(permute(y, {0, 2, 1, 3}), {1, T, 32}))};
  };
  exchange::ProgramStream stream(f, {{.step = {{1, 1, 1, 8}}, .time_axis = 2}});
  std::uint64_t asked = 1, locks = 1;
  std::thread([&] {
    const std::uint64_t before = counted::counts().locks;
    asked = counted::during([&] {
      for (int i = 0; i < 100; ++i) stream.step();
      stream.reset();
    });
    locks = counted::counts().locks - before;
  }).join();
  BOOST_TEST(asked == 0U);
  BOOST_TEST(locks == 0U);
}

/// Memory is reserved also for the operations after a check that refuses the zeros with which the memory was measured.
BOOST_AUTO_TEST_CASE(steps_behind_a_check_allocate_nothing) {
  const Tensor w = uniform({4, 1, 3, 3}, {.seed = 1}, -1, 1);
  const auto f = [&](const Tensors& in) {
    return Tensors{conv2d(pad(checked(in[0], 1, 2, "a share"), {0, 0, 2, 1}, {0, 0, 0, 1}), w)};
  };
  exchange::ProgramStream stream(f, {{.step = {{1, 1, 1, 8}}, .time_axis = 2}}, {.verify = false});
  std::ranges::fill(stream.input(0), 1.5F);
  std::uint64_t asked = 1;
  std::thread([&] {
    asked = counted::during([&] {
      for (int i = 0; i < 10; ++i) stream.step();
    });
  }).join();
  BOOST_TEST(asked == 0U);
}

/// Some operations work in memory of the pool, and the pool of a new thread is empty.
BOOST_AUTO_TEST_CASE(steps_on_a_new_thread_allocate_nothing) {
  const dsl::Network net = dsl::sequence(4).mamba().gru(4).build(1);
  const Tensor x = uniform({2, 40, 4}, {.seed = 3}, -1, 1);
  const std::vector<float> in = contiguous(transpose(x, 0, 1)).to_vector<float>();
  nn::Stream first = net.stream(2);
  std::array streams = {first.clone(), std::move(first)};
  for (nn::Stream& stream : streams) {
    std::vector<float> out(in.size());
    std::uint64_t asked = 1;
    std::thread([&] {
      asked = counted::during([&] {
        stream.steps(20, std::span(in).first(in.size() / 2), std::span(out).first(out.size() / 2));
        for (std::size_t t = 20; t < 40; ++t)
          stream.step(std::span(in).subspan(t * 8, 8), std::span(out).subspan(t * 8, 8));
      });
    }).join();
    BOOST_TEST(asked == 0U);
    BOOST_TEST(identical(contiguous(transpose(Tensor::from(out, {40, 2, 4}), 0, 1)), net(x)));
  }
}

/// A profile has its memory from the first steps on; when no profile runs any more, none of it remains.
BOOST_AUTO_TEST_CASE(a_profiled_step_allocates_nothing_after_the_first) {
  const dsl::Network net = dsl::sequence(kFeatures).linear(24).silu().gru(24).layer_norm().linear(3).build(1);
  nn::Stream stream = net.stream();
  const std::vector<float> x(kFeatures, 1);
  std::vector<float> y(3);
  stream.step(x, y);
  {
    const Profile profile({.trace_events = 1 << 10});
    stream.step(x, y);
    const std::uint64_t locks = counted::counts().locks;
    BOOST_TEST(counted::during([&] {
                 for (int i = 0; i < 400; ++i) stream.step(x, y);
               }) == 0U);
    BOOST_TEST(counted::counts().locks == locks);
    BOOST_TEST(profile.dropped() > 0);
  }
  BOOST_TEST(counted::during([&] { stream.step(x, y); }) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
