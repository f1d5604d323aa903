// Recurrences without a product in their loop: answers lines "job size seconds" with microseconds, as
// bench/compare/linear.py asks for them. `sweep` reads two arrays and writes a third, the memory traffic of
// linear_scan; its gradient reads three and writes two. Training is the mean square of all outputs, gradients and Adam,
// compiled.
#include <ferrite/ferrite.h>

#include <functional>
#include <iostream>
#include <memory>

#include "timing.h"

using namespace ferrite;

namespace {

using Call = std::function<void()>;

/// Returns a job on data larger than the caches: 8 rows of 1,024 channels.
Call of_scan(const std::string& job, std::int64_t T) {
  const auto drawn = [&](std::uint64_t seed) { return uniform({8, T, 1024}, {.seed = seed}, 0, 1); };
  const Tensor a = drawn(1), b = drawn(2), h = drawn(3);
  const auto keep = std::make_shared<Tensor>();
  if (job == "sweep") return [=] { *keep = a + b; };
  if (job == "scan") return [=] { *keep = linear_scan(a, b); };
  struct Recorded {
    Tape tape;
    Tensor a, b, h;
  };
  const auto r = std::make_shared<Recorded>();
  r->a = r->tape.watch(a), r->b = r->tape.watch(b);
  r->h = linear_scan(r->a, r->b);
  return [=] { (void)r->tape.grad(r->h, {r->a, r->b}, {.retain = true}, h); };
}

template <class L>
Call training(std::shared_ptr<L> layer, std::int64_t T) {
  const Tensor x = uniform({64, T, layer->input_size()}, {.seed = 1}, -1, 1);
  const auto adam = std::make_shared<nn::Adam>(layer->parameters());
  auto step = compile([=](const Tensor& in) {
    Tape tape;
    const Tensor loss = mean(square((*layer)(in)));
    adam->step(tape.grad(loss, layer->parameters()));
    return loss;
  });
  return [=] { step(x); };
}

/// Returns a selective scan of the size of Mamba with d_model 16: 32 channels, 16 states.
Call selective(bool gradient, std::int64_t T) {
  const std::int64_t B = 8, D = 32, N = 16;
  const Tensor x = uniform({B, T, D}, {.seed = 1}, -1, 1), delta = uniform({B, T, D}, {.seed = 2}, 0.001, 0.1);
  const Tensor A = -uniform({D, N}, {.seed = 3}, 1, 16), b = uniform({B, T, N}, {.seed = 4}, -1, 1);
  const Tensor c = uniform({B, T, N}, {.seed = 5}, -1, 1), d = uniform({D}, {.seed = 6}, -1, 1);
  if (!gradient) return [=] { (void)selective_scan(x, delta, A, b, c, d); };
  return [=] {
    Tape tape;
    std::vector<Tensor> of;
    for (const Tensor& t : {x, delta, A, b, c, d}) of.push_back(tape.watch(t));
    (void)tape.grad(sum(selective_scan(of[0], of[1], of[2], of[3], of[4], of[5])), of);
  };
}

template <class L>
Call streamed(const L& layer, std::int64_t features) {
  struct Room {
    nn::Stream stream;
    std::vector<float> x, y;
  };
  const auto room = std::make_shared<Room>(
      Room{layer.stream(), std::vector<float>(static_cast<std::size_t>(features), 0.1F), std::vector<float>(64)});
  return [=] { room->stream.step(room->x, room->y); };
}

Call job(const std::string& name, std::int64_t n) {
  if (name == "sweep" || name == "scan" || name == "scan_grad") return of_scan(name, n);
  if (name == "train_min_gru") return training(std::make_shared<nn::MinGru>(10, 100, nn::Init{.seed = 1}), n);
  if (name == "train_min_lstm") return training(std::make_shared<nn::MinLstm>(10, 100, nn::Init{.seed = 1}), n);
  if (name == "train_gru") return training(std::make_shared<nn::Gru>(10, 100, nn::Init{.seed = 1}), n);
  if (name == "selective") return selective(false, n);
  if (name == "selective_grad") return selective(true, n);
  if (name == "stream_min_gru") return streamed(nn::MinGru(n, 64, nn::Init{.seed = 1}), n);
  if (name == "stream_gru") return streamed(nn::Gru(n, 64, nn::Init{.seed = 1}), n);
  return {};
}

}  // namespace

int main() {
  const FlushDenormals guard;
  std::cout << "Ferrite" << std::endl;
  std::string name;
  std::int64_t n = 0;
  double seconds = 0;
  while (std::cin >> name >> n >> seconds) {
    const Call call = job(name, n);
    if (!call) {
      std::cout << "none" << std::endl;
      continue;
    }
    std::cout << 1e6 * bench::interleaved_for({call}, seconds)[0] << std::endl;
  }
}
