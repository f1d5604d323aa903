// RTNeural's compile-time models on its own JSON files, as bench/compare/rtneural.py asks for them: "gru_16.json",
// "lstm_8.json" or "conv_4_3.json". Built once with each back end.
#include <RTNeural/RTNeural.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "stream_peer.h"

namespace {

using Process = std::function<void(const float*, float*, int)>;

/// Returns a function that runs the model in the file `path` sample by sample.
template <class Model>
Process run(const std::string& path) {
  const auto model = std::make_shared<Model>();
  std::ifstream file(path);
  model->parseJson(file);
  model->reset();
  return [model](const float* x, float* y, int n) {
    Model& m = *model;
    for (int i = 0; i < n; ++i) y[i] = m.forward(x + i);
  };
}

template <int C, int K, int D, int In = C>
using Convolution = RTNeural::Conv1DT<float, In, C, K, D>;
template <int C>
using Relu = RTNeural::ReLuActivationT<float, C>;
template <int C, int K>
using Convolutions =
    RTNeural::ModelT<float, 1, 1, Convolution<C, K, 1, 1>, Relu<C>, Convolution<C, K, 2>, Relu<C>, Convolution<C, K, 4>,
                     Relu<C>, Convolution<C, K, 8>, Relu<C>, Convolution<C, K, 16>, Relu<C>, Convolution<C, K, 32>,
                     Relu<C>, RTNeural::DenseT<float, C, 1>>;

template <int... H>
Process recurrent(const std::string& path, const std::string& name) {
  Process found;
  const auto one = [&]<int N>(std::integral_constant<int, N>) {
    using Dense = RTNeural::DenseT<float, N, 1>;
    if (name == "gru_" + std::to_string(N))
      found = run<RTNeural::ModelT<float, 1, 1, RTNeural::GRULayerT<float, 1, N>, Dense>>(path);
    if (name == "lstm_" + std::to_string(N))
      found = run<RTNeural::ModelT<float, 1, 1, RTNeural::LSTMLayerT<float, 1, N>, Dense>>(path);
  };
  (one(std::integral_constant<int, H>{}), ...);
  return found;
}

Process make(const std::string& path) {
  const std::size_t begin = path.rfind('/') + 1;
  const std::string name = path.substr(begin, path.rfind('.') - begin);
  if (name == "conv_4_3") return run<Convolutions<4, 3>>(path);
  if (name == "conv_8_3") return run<Convolutions<8, 3>>(path);
  if (name == "conv_16_3") return run<Convolutions<16, 3>>(path);
  if (name == "conv_32_3") return run<Convolutions<32, 3>>(path);
  if (name == "conv_64_3") return run<Convolutions<64, 3>>(path);
  if (name == "conv_16_8") return run<Convolutions<16, 8>>(path);
  return recurrent<8, 12, 16, 20, 24, 32, 40, 64>(path, name);
}

}  // namespace

int main(int count, char** words) {
  return serve(count, words, [](const char* path, int) { return make(path); });
}
