// A user's program: trains a GRU, saves it under a name that is not ASCII, loads it into another net and streams that.
#include <ferrite/ferrite.h>

#include <filesystem>
#include <iostream>
#include <vector>

using namespace ferrite;

int main() {
  const auto words = dsl::sequence(1).gru(16).linear(2);
  const auto net = words.build(/*seed=*/0), same = words.build(/*seed=*/1);
  const Tensor slope = uniform({64, 1, 1}, {.seed = 1}, -1, 1);  // rising or falling?
  const Tensor x = slope * reshape(linspace(0, 1, 10), {1, 10, 1});
  const Tensor y = cast(gt(reshape(slope, {64}), 0), Dtype::i64);
  const auto last = [&](const auto& of) { return select(of(x), 1, -1); };

  nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
  for (int step = 0; step < 60; ++step) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(last(net), y);
    adam.step(tape.grad(loss, net.parameters()));
  }
  std::cout << "accuracy " << nn::accuracy(last(net), y) << '\n';

  const std::filesystem::path file = std::filesystem::path(u8"stéigend.safetensors");
  io::save(net, file);
  io::load(same, file);
  const Tensor whole = net(slice(x, 0, 0, 1));  // [1, 10, 2]
  nn::Stream stream = same.stream();
  bool equal = true;
  for (std::int64_t t = 0; t < 10; ++t) {
    const std::vector<float> in = {select(select(x, 0, 0), 0, t).to_vector<float>()};
    std::vector<float> out(2);
    stream.step(in, out);
    equal = equal && out == select(select(whole, 0, 0), 0, t).to_vector<float>();
  }
  std::filesystem::remove(file);
  std::cout << (equal ? "the stream has the bits of the sequence\n" : "the stream differs from the sequence\n");
  return equal && nn::accuracy(last(net), y) > 0.95 ? 0 : 1;
}
