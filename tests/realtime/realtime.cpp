// Every streaming layer, random chains and random causal programs under RealtimeSanitizer: calls of streams run as
// functions that must not block, and the sanitizer ends the program at an allocation, a lock or a system call.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "dsl/layer_catalogue.h"
#include "ferrite/exchange/program_stream.h"
#include "ferrite/nn/stream/stream_slot.h"
#include "support/causal_chains.h"
#include "support/causal_programs.h"

using namespace ferrite;

namespace {

template <class F>
void must_not_block(const F& f) noexcept [[clang::nonblocking]] {
  f();
}

/// Runs a stream in blocks if each input gives a step, step by step, with a restarted row, and to the end.
template <class In, class Out>
void run(nn::Stream& s, const std::vector<In>& in, std::int64_t T, std::int64_t width) {
  const std::int64_t B = s.batch();
  const std::size_t step = in.size() / static_cast<std::size_t>(T);
  std::vector<Out> y(static_cast<std::size_t>(width * B * T));
  const auto out = std::span<Out>(y).first(static_cast<std::size_t>(width * B));
  const bool even = s.stride() == 1 && s.delay() == 0;
  if (even) must_not_block([&] { s.steps(T, std::span<const In>(in), std::span<Out>(y)); });
  s.reset();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t t = 0; t < static_cast<std::size_t>(T); ++t) {
      const auto now = std::span<const In>(in).subspan(t * step, step);
      must_not_block([&] {
        if (t == 3 && round == 1) s.reset(B - 1);
        if (even) s.step(now, out);
        if (!even) (void)s.feed(now, out);
      });
    }
    if (round == 0) s.reset();
  }
  bool more = true;
  while (more) must_not_block([&] { more = s.finish(out); });
}

void check(const std::string& words, const nn::Layer& net, const Tensor& x) {
  std::printf("%s\n", words.c_str());
  std::fflush(stdout);
  nn::Stream s = net.stream(x.shape()[0]);
  if (net.step_input().width == 0) {  // the first step makes the plan
    const std::vector<float> first(static_cast<std::size_t>(x.shape()[0] * x.shape()[2]));
    std::vector<float> out(first.size());
    (void)s.feed(first, out);  // layers of any width keep the first one
    s.reset();
  }
  const std::int64_t width = s.result().width;
  if (s.on_tensors() > 0) return;
  const auto on_new_thread = [&]<class In, class Out>(In, Out) {  // a new thread
    const std::vector<In> in = contiguous(transpose(x, 0, 1)).template to_vector<In>();
    std::thread([&] { run<In, Out>(s, in, x.shape()[1], width); }).join();
  };
  if (x.dtype() == Dtype::i64) return on_new_thread(std::int64_t(), float());
  if (x.dtype() == Dtype::f64) return on_new_thread(double(), double());
  on_new_thread(float(), float());
}

/// Checks a program with planes, features and a recurrence, which is not a chain of layers.
void check_program() {
  const Tensor w = uniform({4, 1, 3, 3}, {.seed = 1}, -1, 1);
  const nn::Gru gru(32, 8, {}, {.seed = 2});
  const auto f = [&](const Tensors& in) {
    const Tensor y = relu(conv2d(pad(in[0], {0, 0, 2, 1}, {0, 0, 0, 1}), w));
    return Tensors{gru(reshape(permute(y, {0, 2, 1, 3}), {1, -1, 32}))};
  };
  exchange::ProgramStream stream(f, {{.step = {{1, 1, 1, 8}}, .time_axis = 2}});
  std::puts("a program");
  std::thread([&] {
    must_not_block([&] {
      for (int i = 0; i < 20; ++i) stream.step();
      stream.reset();
    });
  }).join();
}

/// Checks a slot, whose streams are put by this thread: they have the slot's rate or another one.
void check_slot() {
  std::puts("a slot");
  const auto words = dsl::sequence(1).lstm(8).linear(1);
  const dsl::Network first = words.build(1), second = words.build(2);
  nn::StreamSlot slot(first.stream(), {.crossfade = 10, .lead = 5, .rate = 48000});
  std::atomic<bool> ended = false;
  std::thread audio([&] {
    std::vector<float> x(64, 0.5F);
    while (!ended.load()) must_not_block([&] { slot.steps(static_cast<std::int64_t>(x.size()), x, x); });
    must_not_block([&] { slot.reset(); });
  });
  for (int i = 0; i < 300; ++i) {
    slot.put((i % 2 ? first : second).stream(), i % 3 == 0 ? 44100 : 48000);
    while (!slot.settled()) std::this_thread::yield();
  }
  ended = true;
  audio.join();
}

}  // namespace

int main(int argc, char** argv) {
  check_program();
  check_slot();
  const std::uint64_t programs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 300;
  for (const auto& [word, nets] : layer_catalogue::catalogue(Dtype::f32))
    for (const layer_catalogue::Words& words : nets) {
      const dsl::Network net = words().build(1);
      check(word, net, layer_catalogue::input(net, 2, Dtype::f32));
    }
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    causal_chains::Maker maker(seed, seed % 3 == 0);
    const causal_chains::Chain chain = maker.chain();
    const dsl::Network net = chain.words.build(seed);
    const std::int64_t width = net.step_input().width;
    check(chain.text, net, uniform({2, 40, width > 0 ? width : 3}, {.seed = seed}, -1, 1));
    const causal_programs::Program program(seed, seed % 4 == 3 ? Dtype::f64 : Dtype::f32);
    check(program.text(), program,
          uniform({2, 40, program.width()}, {.seed = seed}, -1, 1, seed % 4 == 3 ? Dtype::f64 : Dtype::f32));
  }
  std::puts("realtime: no step blocked");
}
