// A network whose stream gives, step by step, the bits of the whole sequence.
#include <ferrite/inference.h>

#include <cstdio>

int main() {
  using namespace ferrite;
  const auto net = dsl::sequence(1).gru(8).linear(1).build(/*seed=*/0);
  const Tensor x = full({1, 3, 1}, 0.5);
  const Tensor whole = net(x);
  nn::Stream stream = net.stream();
  float y = 0;
  for (int t = 0; t < 3; ++t) {
    const float input = 0.5F;
    stream.step({&input, 1}, {&y, 1});
  }
  std::printf("%g\n", double{y});
  return y == slice(whole, 1, 2, 3).item() ? 0 : 1;
}
