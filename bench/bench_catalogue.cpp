// Parts of the catalogue besides recurrent layers: optimisers, losses over alignments, Fourier transforms, gradients of
// indexing. Answers the questions of compare/catalogue.py: bench_catalogue reads lines "job a b c d seconds" and prints
// microseconds. The sizes a to d are, for an optimiser: tensors, rows, columns; for a sweep: states, tensors, elements;
// for a loss: T, B, C, S; for a transform: points, batch; for indexing: rows, columns, places.
#include <array>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ferrite/autograd/tape.h"
#include "ferrite/ferrite.h"
#include "ferrite/nn/losses/sequence.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/signal.h"
#include "machine.h"
#include "timing.h"

using namespace ferrite;

namespace {

using Sizes = std::array<std::int64_t, 4>;
using Call = std::function<void()>;

// ---- optimisers ------------------------------------------------------------------------------------------

template <class O, class Options>
Call steps(const Sizes& s, const Options& options) {
  std::vector<Parameter> parameters;
  auto grads = std::make_shared<Tensors>();
  for (std::int64_t i = 0; i < s[0]; ++i) {
    parameters.emplace_back("w" + std::to_string(i), ones({s[1], s[2]}));
    grads->push_back(uniform({s[1], s[2]}, {1, static_cast<std::uint64_t>(i), 1}, -1, 1));
  }
  const auto optimizer = std::make_shared<O>(std::move(parameters), options);
  return [=] { optimizer->step(*grads); };
}

const std::map<std::string, Call (*)(const Sizes&)> kOptimizers = {
    {"sgd", [](const Sizes& s) { return steps<nn::Sgd>(s, nn::SgdOptions{}); }},
    {"sgd_momentum", [](const Sizes& s) { return steps<nn::Sgd>(s, nn::SgdOptions{.momentum = 0.9}); }},
    {"sgd_nesterov",
     [](const Sizes& s) { return steps<nn::Sgd>(s, nn::SgdOptions{.momentum = 0.9, .nesterov = true}); }},
    {"sgd_dampening",
     [](const Sizes& s) { return steps<nn::Sgd>(s, nn::SgdOptions{.momentum = 0.9, .dampening = 0.1}); }},
    {"adam", [](const Sizes& s) { return steps<nn::Adam>(s, nn::AdamOptions{}); }},
    {"adam_amsgrad", [](const Sizes& s) { return steps<nn::Adam>(s, nn::AdamOptions{.amsgrad = true}); }},
    {"adamw", [](const Sizes& s) { return steps<nn::AdamW>(s, nn::AdamOptions{.weight_decay = 0.01}); }},
    {"nadam", [](const Sizes& s) { return steps<nn::NAdam>(s, nn::NAdamOptions{}); }},
    {"radam", [](const Sizes& s) { return steps<nn::RAdam>(s, nn::RAdamOptions{}); }},
    {"adamax", [](const Sizes& s) { return steps<nn::Adamax>(s, nn::AdamaxOptions{}); }},
    {"rmsprop", [](const Sizes& s) { return steps<nn::RmsProp>(s, nn::RmsPropOptions{}); }},
    {"rmsprop_centered",
     [](const Sizes& s) { return steps<nn::RmsProp>(s, nn::RmsPropOptions{.momentum = 0.9, .centered = true}); }},
    {"adagrad", [](const Sizes& s) { return steps<nn::Adagrad>(s, nn::AdagradOptions{}); }},
    {"adadelta", [](const Sizes& s) { return steps<nn::Adadelta>(s, nn::AdadeltaOptions{}); }},
    {"adafactor", [](const Sizes& s) { return steps<nn::Adafactor>(s, nn::AdafactorOptions{}); }},
    {"lion", [](const Sizes& s) { return steps<nn::Lion>(s, nn::LionOptions{}); }},
};

/// Returns the memory traffic of an update in place: reads w, g and the states, writes w and the states, with just
/// enough arithmetic that it is not optimised away.
Call sweep(const Sizes& s) {
  const std::int64_t n = s[2] / bench::kFloats * bench::kFloats;
  const auto arrays = std::make_shared<std::vector<std::vector<float>>>(
      static_cast<std::size_t>(s[1] * (s[0] + 2)), std::vector<float>(static_cast<std::size_t>(s[2]), 1.0F));
  return [=] {
    const auto written = static_cast<std::size_t>(s[0] + 1);
    for (std::size_t t = 0; t < arrays->size(); t += written + 1) {
      std::array<float*, 4> to{};
      for (std::size_t k = 0; k < written; ++k) to[k] = (*arrays)[t + k].data();
      const float* const g = (*arrays)[t + written].data();
      for (std::int64_t i = 0; i < n; i += bench::kFloats) {
        const bench::RawFloats share = bench::load_raw(g + i);
        for (std::size_t k = 0; k < written; ++k) bench::store_raw(to[k] + i, bench::load_raw(to[k] + i) + share);
      }
    }
  };
}

// ---- losses ----------------------------------------------------------------------------------------------

Tensor labels(std::int64_t B, std::int64_t S, std::int64_t C) {
  return Tensor::build<std::int64_t>({B, S}, [&](std::span<std::int64_t> y) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 1 + static_cast<std::int64_t>(i * 7 % 13) % (C - 1);
  });
}

template <class F>
Call with_gradient(const Tensor& x, const F& f, bool gradient) {
  if (!gradient) return [=] { bench::keep(f(x)); };
  const Tensor cotangent = ones(f(x).shape());
  return [=] {
    Tape tape;
    const Tensor watched = tape.watch(x);
    const Tensor y = f(watched);
    bench::keep(tape.grad({GradOf{y, cotangent}}, {watched}));
  };
}

Call ctc(const Sizes& s, bool gradient) {
  const Tensor scores = log_softmax(uniform({s[0], s[1], s[2]}, {1, 1, 1}, -2, 2), -1), y = labels(s[1], s[3], s[2]);
  return with_gradient(
      scores, [=](const Tensor& x) { return nn::ctc_loss(x, y); }, gradient);
}

Call rnnt(const Sizes& s, bool gradient) {
  const Tensor scores = uniform({s[1], s[0], s[3] + 1, s[2]}, {1, 1, 1}, -2, 2), y = labels(s[1], s[3], s[2]);
  return with_gradient(
      scores, [=](const Tensor& x) { return nn::rnnt_loss(x, y, {}, {}, {.blank = 0}); }, gradient);
}

// ---- transforms ------------------------------------------------------------------------------------------

Call transform(const std::string& job, const Sizes& s) {
  const std::int64_t n = s[0];
  if (job == "rfft")
    return with_gradient(
        uniform({s[1], n}, {1, 1, 1}, -1, 1), [](const Tensor& x) { return rfft(x); }, false);
  if (job == "irfft")
    return with_gradient(
        uniform({s[1], n / 2 + 1, 2}, {1, 1, 1}, -1, 1), [n](const Tensor& x) { return irfft(x, {.n = n}); }, false);
  if (job == "fft")
    return with_gradient(
        uniform({s[1], n, 2}, {1, 1, 1}, -1, 1), [](const Tensor& x) { return fft(x); }, false);
  const Tensor window = hann_window(512);
  return with_gradient(
      uniform({s[1], n}, {1, 1, 1}, -1, 1), [=](const Tensor& x) { return stft(x, 512, window, {.hop_length = 128}); },
      job == "stft_grad");
}

// ---- indexing --------------------------------------------------------------------------------------------

Call indexing(const std::string& job, const Sizes& s) {
  const Tensor x = uniform({s[0], s[1]}, {1, 1, 1}, -1, 1);
  const auto places = [&](const Shape& shape) {
    return Tensor::build<std::int64_t>(shape, [&](std::span<std::int64_t> at) {
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i * 7919) % s[0];
    });
  };
  if (job.starts_with("gather")) {
    const Tensor at = places({s[2], s[1]});
    return with_gradient(
        x, [=](const Tensor& t) { return gather(t, 0, at); }, job == "gather_grad");
  }
  const Tensor at = places({s[2]});
  if (job == "index_add") {
    const Tensor source = uniform({s[2], s[1]}, {1, 2, 1}, -1, 1);
    return [=] { bench::keep(index_add(x, 0, at, source)); };
  }
  return with_gradient(
      x, [=](const Tensor& t) { return index_select(t, 0, at); }, job == "index_select_grad");
}

Call call_of(const std::string& job, const Sizes& s) {
  if (const auto o = kOptimizers.find(job); o != kOptimizers.end()) return o->second(s);
  if (job == "sweep") return sweep(s);
  if (job.starts_with("ctc")) return ctc(s, job == "ctc_grad");
  if (job.starts_with("rnnt")) return rnnt(s, job == "rnnt_grad");
  if (job.find("fft") != std::string::npos || job.starts_with("stft")) return transform(job, s);
  return indexing(job, s);
}

}  // namespace

int main() {
  const FlushDenormals guard;
  std::cout << "ours" << std::endl;
  std::string job;
  Sizes s;
  double seconds = 0;
  while (std::cin >> job >> s[0] >> s[1] >> s[2] >> s[3] >> seconds)
    std::cout << 1e6 * bench::interleaved_for({call_of(job, s)}, seconds)[0] << std::endl;
}
