/// Times a net, and shows where the time goes.
#include "bench.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iomanip>
#include <ostream>

#include "classic_numbers.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/threads.h"
#include "subject.h"

namespace ferrite::tools {
namespace {

using Seconds = std::chrono::duration<double>;

Tensor train(const nn::Layer& net, nn::Adam& adam, const Tensor& x) {
  Tape tape;
  const Tensor loss = mean(square(net(x)));
  adam.step(tape.grad(loss, adam.parameters()));
  return loss;
}

/// Returns a function that runs one call of a stream for every step of the input.
template <class In>
std::function<void()> streamed(const Subject& s, const Tensor& by_step) {
  const auto stream = std::make_shared<nn::Stream>(s.net->stream(s.x.shape()[0]));
  const auto x = std::make_shared<std::vector<In>>(by_step.to_vector<In>());
  const Tensor y = (*s.net)(s.x);
  const auto out =
      std::make_shared<std::vector<float>>(static_cast<std::size_t>(y.rank() == 3 ? y.numel() / s.steps : y.numel()));
  const auto row = x->size() / static_cast<std::size_t>(s.steps);
  return [=, steps = s.steps] {
    for (std::int64_t t = 0; t < steps; ++t)
      stream->step(std::span<const In>(*x).subspan(static_cast<std::size_t>(t) * row, row), std::span<float>(*out));
  };
}

std::function<void()> run_of(const Subject& s, const std::string& run) {
  if (run == "train" || run == "compiled-train") {
    const auto adam = std::make_shared<nn::Adam>(s.net->parameters());
    const auto step = [s, adam](const Tensor& x) { return train(*s.net, *adam, x); };
    if (run == "train") return [=] { (void)step(s.x); };
    return [f = compile(step), x = s.x] { (void)f(x); };
  }
  s.net->eval();
  if (run == "eager") return [=] { (void)(*s.net)(s.x); };
  if (run == "compiled") return [f = s.net->compiled(), x = s.x, net = s.net] { (void)f(x); };
  if (run != "stream")
    throw ValueError("bench: --run must be eager, compiled, stream, train or compiled-train, got '" + run + "'");
  if (s.x.rank() < 2 || s.steps != s.x.shape()[1]) throw ValueError("bench: only nets on sequences or tokens stream");
  const Tensor by_step = contiguous(transpose(s.x, 0, 1));
  if (is_integer(s.x.dtype())) return streamed<std::int64_t>(s, by_step);
  return streamed<float>(s, by_step);
}

std::vector<Seconds> times_of(const std::function<void()>& run, std::int64_t calls) {
  constexpr Seconds kWhole{0.3};
  constexpr std::int64_t kFewest = 5;
  std::vector<Seconds> times;
  Seconds all{};
  while (calls ? static_cast<std::int64_t>(times.size()) < calls
               : all < kWhole || static_cast<std::int64_t>(times.size()) < kFewest) {
    const auto begun = std::chrono::steady_clock::now();
    run();
    times.emplace_back(std::chrono::steady_clock::now() - begun);
    all += times.back();
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

ProfileBy rows_by(const std::string& text) {
  if (text == "kernel-and-layer") return ProfileBy::kernel_and_layer;
  if (text == "kernel") return ProfileBy::kernel;
  if (text == "layer") return ProfileBy::layer;
  throw ValueError("bench: --by must be kernel-and-layer, kernel or layer, got '" + text + "'");
}

void bench(const std::string& net, const BenchOptions& o, std::ostream& out) {
  const ClassicNumbers classic(out);
  if (o.batch < 1 || o.steps < 1 || o.calls < 0)
    throw ValueError("bench: batch and steps must be positive, calls not negative, got " + std::to_string(o.batch) +
                     ", " + std::to_string(o.steps) + " and " + std::to_string(o.calls));
  set_threads(o.threads);
  const Subject subject = subject_of(net, o.batch, o.steps);
  const std::function<void()> run = run_of(subject, o.run);
  for (int i = 0; i < 3; ++i) run();  // these calls make plans and pack weights
  const std::vector<Seconds> times = times_of(run, o.calls);
  const auto us = [&](Seconds t) { return 1e6 * t.count(); };
  out << o.run << " on " << subject.x.spec().str() << ": " << std::fixed << std::setprecision(2) << us(times[0])
      << " us a call at least, median " << us(times[times.size() / 2]) << " us, " << times.size() << " calls, "
      << thread_count() << (thread_count() == 1 ? " thread\n" : " threads\n");
  if (!o.profile && o.trace.empty()) return;
  Profile profile;
  for (std::size_t i = 0; i < times.size(); ++i) run();
  profile.stop();
  if (o.profile) out << '\n' << profile.table(o.by);
  if (o.trace.empty()) return;
  std::ofstream file(o.trace);
  profile.chrome_trace(file);
  file.close();
  if (!file) throw IoError(o.trace.string() + ": cannot write the trace");
  out << o.trace.string() << ": open it with ui.perfetto.dev or chrome://tracing\n";
}

}  // namespace ferrite::tools
