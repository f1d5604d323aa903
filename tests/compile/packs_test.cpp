// Packed copies of weights in replayed programs.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {61, stream, 0}, -1, 1); }

/// A kind of recurrent layer whose weights are made of a number: its outputs and last states.
struct Kind {
  std::string name;
  std::function<Tensors(const Tensor& x, const Tensor& scale)> outputs;
};

constexpr std::int64_t H = 4, P = 2;  // units, and size of a projection

std::vector<Kind> kinds() {
  const SequenceOptions options{.batch_first = true};
  const Tensor h0 = zeros({2, H}), p0 = zeros({2, P});
  const auto weights = [=](std::int64_t gates, const Tensor& scale, std::int64_t state = H) {
    RecurrentWeights<Tensor> w{draw({3, gates * H}, 2) * scale, sin(draw({state, gates * H}, 3) * scale)};
    w.bias_ih = draw({gates * H}, 4) * scale;
    w.bias_hh = sin(draw({gates * H}, 5) * scale);
    if (state != H) w.weight_hr = sin(draw({H, state}, 6) * scale);
    return w;
  };
  const auto step = [](const Tensors& carry, const Tensors& x, const Tensor& w_ih, const Tensor& w_hh) {
    const Tensor h = tanh(matmul(x[0], w_ih) + matmul(carry[0], w_hh));
    return ScanStep{{h}, {h}};
  };
  return {
      {"gru", [=](auto& x, auto& s) { return gru_sequence(x, weights(3, s), h0, options); }},
      {"gru, reset before", [=](auto& x, auto& s) { return gru_sequence(x, weights(3, s), h0, options, false); }},
      {"lstm",
       [=](auto& x, auto& s) {
         return lstm_sequence(x, weights(4, s), {h0, h0}, options);
       }},
      {"lstm, projected",
       [=](auto& x, auto& s) {
         return lstm_sequence(x, weights(4, s, P), {p0, h0}, options);
       }},
      {"rnn", [=](auto& x, auto& s) { return rnn_sequence(x, weights(1, s), h0, false, options); }},
      {"rnn, relu", [=](auto& x, auto& s) { return rnn_sequence(x, weights(1, s), h0, true, options); }},
      {"scan",
       [=](auto& x, auto& s) {
         const Tensor w_ih = draw({3, H}, 2) * s, w_hh = sin(draw({H, H}, 3) * s);
         const auto body = [&](const Tensors& carry, const Tensors& in) { return step(carry, in, w_ih, w_hh); };
         return scan(body, {h0}, {contiguous(permute(x, {1, 0, 2}))}).y;
       }},
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(compiled_packs)

/// Weights that are computed inside share memory with other values of this run and the next. Many lengths are tried, so
/// that the kernel's own memory is as large as a forgotten pack at some of them.
BOOST_AUTO_TEST_CASE(weights_made_inside_are_never_stale) {
  for (const Kind& kind : kinds())
    for (std::int64_t T = 4; T < 40; ++T) {
      const Tensor x = draw({2, T, 3}, 1);
      // The values are results, which leave the run's memory to the weights alone, or operands of another kernel.
      for (const bool are_results : {true, false}) {
        const auto f = [&](const Tensor& scale) {
          const Tensors all = kind.outputs(x, scale);
          return are_results ? all : Tensors{all[0] * 2};
        };
        const auto compiled = compile(f);
        for (int k = 0; k < 3; ++k) {
          const Tensor scale = full({}, 0.5 + k, Dtype::f32);
          const Tensors got = compiled(scale), wanted = f(scale);
          for (std::size_t i = 0; i < wanted.size(); ++i)
            BOOST_TEST(identical(got[i], wanted[i]), kind.name << ", T " << T << ", run " << k << ", result " << i);
        }
      }
    }
}

BOOST_AUTO_TEST_CASE(a_run_keeps_the_packs_of_what_it_reads) {
  const nn::Gru gru(3, 4, {.seed = 1});
  const auto fast = gru.compiled();
  const Tensor x = draw({2, 9, 3}, 1);
  const Tensor y = fast(x);
  const auto* const packs = gru.weights().weight_hh.peek().impl()->storage->packs.load();
  BOOST_TEST(packs != nullptr);
  for (int k = 0; k < 3; ++k) BOOST_TEST(identical(fast(x), y));
  BOOST_TEST(gru.weights().weight_hh.peek().impl()->storage->packs.load() == packs);
  BOOST_TEST(identical(gru(x), y));
}

BOOST_AUTO_TEST_CASE(two_threads_run_one_program_on_one_pack) {
  const nn::Gru gru(3, 33, {.seed = 1});
  const auto fast = gru.compiled();
  const Tensor x = draw({2, 9, 3}, 1);
  const Tensor wanted = gru(x);
  Tensors results(4);
  {
    std::vector<std::jthread> threads;
    for (Tensor& y : results)
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) y = fast(x);
      });
  }
  for (const Tensor& y : results) BOOST_TEST(identical(y, wanted));
}

BOOST_AUTO_TEST_SUITE_END()
