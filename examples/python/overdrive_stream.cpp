// Plays a sound through the network that overdrive.ipynb trained, sample by sample, as a plug-in would.
#include <ferrite/ferrite.h>

#include <exception>
#include <iostream>
#include <span>
#include <vector>

using namespace ferrite;

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: overdrive_stream overdrive.safetensors dry.npy played.npy\n";
    return 2;
  }
  const auto net = dsl::sequence(1).gru(16).linear(1).build();  // the notebook's words
  io::load(net, argv[1]);
  nn::Stream stream = net.stream();

  const std::vector<float> dry = io::read_npy(argv[2]).to_vector<float>();
  std::vector<float> played(dry.size());
  for (std::size_t t = 0; t < dry.size(); ++t)  // in a plug-in: stream.steps for each block of the host
    stream.step(std::span(&dry[t], 1), std::span(&played[t], 1));
  io::write_npy(argv[3], Tensor::from(played, {static_cast<std::int64_t>(played.size())}));
} catch (const std::exception& e) {
  std::cerr << "overdrive_stream: " << e.what() << '\n';
  return 1;
}
