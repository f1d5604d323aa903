// The GRU: microseconds a sequence, forward and with gradients of all parameters, fused and unrolled.
//   bench_gru                a table
//   bench_gru --serve        answers lines "forward H T B", "train H T B", "unrolled_forward H T B" and "unrolled_train
//                            H T B" with microseconds, for bench/compare
#include <cstdio>
#include <iostream>
#include <string>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/gru.h"
#include "timing.h"

using namespace ferrite;

namespace {

double microseconds(const std::string& mode, std::int64_t H, std::int64_t T, std::int64_t B, int samples) {
  const nn::Form form = mode.starts_with("unrolled") ? nn::Form::unrolled : nn::Form::fused;
  const nn::Gru gru(H, H, {.form = form}, {.seed = 1});
  const Tensor x = uniform({B, T, H}, {1, 1, 1}, -1, 1);
  const std::vector<Parameter> parameters = gru.parameters();
  const auto forward = [&] { bench::keep(gru(x)); };
  const auto train = [&] {
    Tape tape;
    const Tensor y = gru(x);
    bench::keep(tape.grad(sum(y * y), parameters));
  };
  return 1e6 *
         bench::interleaved({mode.ends_with("forward") ? std::function<void()>(forward) : train}, samples, 5e-3)[0];
}

void serve() {
  std::string mode;
  std::int64_t H = 0, T = 0, B = 0;
  while (std::cin >> mode >> H >> T >> B) std::cout << microseconds(mode, H, T, B, 3) << std::endl;
}

void table() {
  std::printf("%5s %5s %5s %12s %12s %12s %12s\n", "H", "T", "B", "forward", "with grads", "unrolled", "with grads");
  for (const std::int64_t B : {1, 32})
    for (const std::int64_t H : {16, 32, 64, 128, 256})
      std::printf("%5ld %5d %5ld %12.1f %12.1f %12.1f %12.1f\n", static_cast<long>(H), 100, static_cast<long>(B),
                  microseconds("forward", H, 100, B, 9), microseconds("train", H, 100, B, 9),
                  microseconds("unrolled_forward", H, 100, B, 9), microseconds("unrolled_train", H, 100, B, 9));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--serve") {
    serve();
  } else {
    table();
  }
}
