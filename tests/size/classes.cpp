// A plug-in's net, written with classes: weights from a safetensors file, then one step at a time.
#include <ferrite/inference.h>

#include <iostream>
#include <memory>

int main(int argc, char** argv) {
  using namespace ferrite;
  nn::Sequential net;
  net.add("gru", std::make_unique<nn::Gru>(1, 16));
  net.add("head", std::make_unique<nn::Linear>(nn::LinearOptions{.in_features = 16, .out_features = 1}));
  if (argc > 1) io::load(net, io::read_safetensors(argv[1]));
  nn::Stream stream(net, /*batch=*/1);
  float x[1] = {0.5f}, y[1] = {};
  stream.step(x, y);
  std::cout << y[0] << '\n';
}
