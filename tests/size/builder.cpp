// A plug-in's net, made by the builder: weights from any file that the library reads, then one step at a time.
#include <ferrite/inference.h>

#include <iostream>

int main(int argc, char** argv) {
  using namespace ferrite;
  const auto net = dsl::sequence(1).gru(16).linear(1).build(/*seed=*/0);
  if (argc > 1) io::load(net, argv[1]);
  auto stream = net.stream();
  float x[1] = {0.5f}, y[1] = {};
  stream.step(x, y);
  std::cout << y[0] << '\n';
}
