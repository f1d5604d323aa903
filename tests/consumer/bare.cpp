// A program without exceptions and without run-time type information (-fno-exceptions -fno-rtti): builds a net and
// streams it. An exception of the library would end the program.
#include <ferrite/ferrite.h>

#include <cmath>
#include <cstdio>

int main() {
  using namespace ferrite;
  const dsl::Network net = dsl::sequence(1).gru(8).linear(1).build(/*seed=*/1);
  const Tensor x = uniform({1, 20, 1}, {.seed = 2}, -1, 1), whole = net(x);
  nn::Stream stream = net.stream();
  float y = 0;
  for (std::size_t t = 0; t < 20; ++t) {
    stream.step(x.values<float>().subspan(t, 1), {&y, 1});
    if (y != whole.values<float>()[t]) return std::printf("step %zu: %g\n", t, double{y}), 1;
  }
  Tape tape;
  const Tensor loss = mean(square(net(x)));
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  sgd.step(tape.grad(loss, net.parameters()));
  return mean(square(net(x))).item() < loss.item() ? 0 : 1;
}
