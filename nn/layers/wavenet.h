#pragma once
/// The stacked WaveNet of amplifier models: dilated causal convolutions with skip connections.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/layers.h"

namespace ferrite::nn {

/// An activation by its name: those of `activation` that work element by element, leaky_relu, hardtanh.
struct WavenetActivation {
  std::string name = "tanh";
  double slope = 0.01;        ///< of leaky_relu
  double low = -1, high = 1;  ///< of hardtanh
};

/// One layer of an array.
struct WavenetUnit {
  std::int64_t kernel_size = 3;
  std::int64_t dilation = 1;
  WavenetActivation activation{};
  std::optional<WavenetActivation> gate{};  ///< of the second half of channels, by which the first is multiplied
};

/// Layers of equal channels one after another.
struct WavenetArray {
  std::int64_t input_size = 1;
  std::int64_t condition_size = 1;
  std::int64_t channels = 0;
  std::int64_t bottleneck = 0;  ///< channels behind the activation
  std::int64_t groups = 1;      ///< of the dilated convolutions
  std::vector<WavenetUnit> units{};
  bool has_layer1x1 = true;       ///< without, a layer hands on what it took
  std::int64_t head1x1_size = 0;  ///< channels that a product makes of what a layer gives to the head; 0: it has none
  std::int64_t head_size = 1;
  std::int64_t head_kernel_size = 1;
  std::int64_t head_dilation = 1;
  bool head_bias = false;

  /// Of the head's input.
  std::int64_t skip_size() const { return head1x1_size > 0 ? head1x1_size : bottleneck; }
};

struct WavenetOptions {
  std::vector<WavenetArray> arrays{};
  double head_scale = 1;
};

/// The WaveNet of the Neural Amp Modeler (github.com/sdatkinson/NeuralAmpModelerCore, docs/wavenet_walkthrough.rst; the
/// idea: arXiv 1609.03499): x [B, T, D] -> [B, T, head_size of the last array], f32 or f64. Of every array, h the
/// input's channels and s the sum for the head, that of the array before or nothing:
///
///   h = rechannel(h)
///   z = conv(h) + mix(x);  a = f(z), with a gate f(z[:C]) g(z[C:])
///   s = s + head1x1(a);    h = h + layer1x1(a)        for every layer
///   s = head(s)
///
/// and at the end y = head_scale s. conv and head are CausalConv1d, the others Linear, rechannel and mix without bias;
/// parameters are named arrays.0.rechannel.weight, arrays.0.layers.0.conv.weight, ..., arrays.0.head.weight. Before the
/// first step every convolution sees zeros. Throws what CausalConv1d and Linear throw.
class Wavenet final : public LayerOf<Wavenet, WavenetOptions> {
 public:
  static constexpr auto name = "wavenet";
  /// Throws ValueError without arrays, for arrays without layers, sizes below 1 and sizes that do not fit from array to
  /// array, unknown activations.
  explicit Wavenet(const WavenetOptions& options, const Init& init = {});

  /// The layers that one layer of an array is made of.
  struct Unit {
    std::unique_ptr<CausalConv1d> conv;
    std::unique_ptr<Linear> mix;
    std::unique_ptr<Layer> activation, gate;    ///< gate: null without one
    std::unique_ptr<Linear> layer1x1, head1x1;  ///< null without one
  };
  struct Array {
    std::unique_ptr<Linear> rechannel;
    std::vector<Unit> units;
    std::unique_ptr<CausalConv1d> head;
  };
  const std::vector<Array>& arrays() const& { return arrays_; }
  const std::vector<Array>& arrays() const&& = delete;
  /// The multiplier of the output, which training leaves.
  double head_scale() const { return options().head_scale; }
  /// Steps of the input that an output depends on.
  std::int64_t receptive_field() const;

  Tensor forward(const Tensor& x, const Context& context) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

 private:
  bool only_chains() const override { return true; }
  void adopt_all(const Array& array, const std::string& at);

  std::vector<Array> arrays_;
};

extern template class LayerOf<Wavenet, WavenetOptions>;

}  // namespace ferrite::nn
