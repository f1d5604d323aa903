// Ferrite's answers to bench/compare/onnx_nets.py: bench_onnx whole|step MODEL NAME=SHAPE:TYPE... prints "ready", then
// for every line that it reads the least time of a call in microseconds, on one thread. `step` times a frame of a
// stream whose axis of time is the dimension "S" of the file; for Silero VAD a call with its states. Inputs are random
// numbers in -1..1; integers are 16000 (a sample rate) and the same in all calls.
#include <chrono>
#include <iostream>
#include <string>

#include "ferrite/compile/compile.h"
#include "ferrite/exchange/onnx_stream.h"
#include "ferrite/tensor/ops.h"

using namespace ferrite;

namespace {

struct Input {
  std::string name;
  Shape shape;
  bool floats = true;
};

Input parsed(const std::string& word) {
  Input in;
  in.name = word.substr(0, word.find('='));
  std::string rest = word.substr(in.name.size() + 1);
  in.floats = rest.substr(rest.find(':') + 1) == "f32";
  rest.resize(rest.find(':'));
  for (std::size_t at = 0; at < rest.size();) {
    const std::size_t comma = std::min(rest.find(',', at), rest.size());
    in.shape.push_back(std::stoll(rest.substr(at, comma - at)));
    at = comma + 1;
  }
  return in;
}

template <class F>
void answer(const F& call) {
  for (int i = 0; i < 5; ++i) call();
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    using Clock = std::chrono::steady_clock;
    Clock::duration least = Clock::duration::max();
    for (const auto end = Clock::now() + std::chrono::milliseconds(100); Clock::now() < end;) {
      const auto begun = Clock::now();
      call();
      least = std::min(least, Clock::now() - begun);
    }
    std::cout << std::chrono::duration<double, std::micro>(least).count() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw ValueError("bench_onnx whole|step MODEL NAME=SHAPE:TYPE...");
  onnx::ReadOptions options{.frozen = true};
  onnx::StreamOptions stream;
  Tensors x;
  for (int i = 3; i < argc; ++i) {
    const Input in = parsed(argv[i]);
    if (!in.floats) options.constants[in.name] = full(in.shape, 16000, Dtype::i64);
    if (in.floats) x.push_back(uniform(in.shape, {.seed = static_cast<std::uint64_t>(i)}, -1, 1));
    if (in.floats) stream.steps[in.name] = in.shape;
  }
  const onnx::Model model = onnx::read(argv[2], options);
  if (std::string(argv[1]) == "whole") {
    const auto compiled = compile([&](const Tensors& in) { return model.run(in); });
    answer([&] { (void)compiled(x); });
    return 0;
  }
  if (stream.steps.contains("state"))
    stream.states = {{"state", "stateN"}};
  else
    stream.time = "S";
  onnx::Stream steps(model, stream);
  answer([&] { steps.step(); });
  return 0;
} catch (const std::exception& e) {
  std::cout << "none " << e.what() << std::endl;
  return 1;
}
