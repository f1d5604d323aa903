#pragma once
/// The stacked WaveNet of amplifier models: dilated causal convolutions with skip connections.
#include <array>
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
  std::optional<WavenetActivation> gate{};  ///< g of the second half of channels, by which the first is multiplied
  bool blends = false;                      ///< the gate blends: g f(z) + (1 - g) z of the first half z
};

/// What a condition makes of other channels (FiLM, arXiv 1709.07871): x becomes s x + t, s and t a product of the
/// condition.
struct WavenetFilm {
  bool shift = true;        ///< whether there is a t
  std::int64_t groups = 1;  ///< of the product
};
/// Where a film is applied: before and after the dilated convolution, the product of the condition and the activation,
/// and after the products for the next layer and for the head.
enum class FilmPlace : std::uint8_t {
  conv_pre,
  conv_post,
  mix_pre,
  mix_post,
  activation_pre,
  activation_post,
  layer1x1_post,
  head1x1_post
};
inline constexpr std::size_t kFilmPlaces = 8;

/// Layers of equal channels one after another.
struct WavenetArray {
  std::int64_t input_size = 1;
  std::int64_t condition_size = 1;
  std::int64_t channels = 0;
  std::int64_t bottleneck = 0;                                           ///< channels behind the activation
  std::int64_t groups = 1;                                               ///< of the dilated convolutions
  std::int64_t mix_groups = 1, layer1x1_groups = 1, head1x1_groups = 1;  ///< of the products
  std::array<std::optional<WavenetFilm>, kFilmPlaces> films{};           ///< of all layers, by FilmPlace
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

/// The layers after the last array, an activation and a causal convolution each.
struct WavenetHead {
  std::int64_t channels = 1;  ///< between the layers
  std::int64_t out_channels = 1;
  std::vector<std::int64_t> kernel_sizes{};  ///< by layer
  WavenetActivation activation{};
};

struct WavenetOptions {
  std::vector<WavenetArray> arrays{};
  double head_scale = 1;
  std::optional<WavenetHead> head{};
  std::vector<WavenetOptions> condition{};  ///< at most one: the net that makes the condition of the input

  /// Of the result.
  std::int64_t out_channels() const { return head ? head->out_channels : arrays.empty() ? 0 : arrays.back().head_size; }
};

/// The WaveNet of the Neural Amp Modeler (github.com/sdatkinson/NeuralAmpModelerCore, docs/wavenet_walkthrough.rst; the
/// idea: arXiv 1609.03499): x [B, T, D] -> [B, T, head_size of the last array], f32 or f64. The condition c is x, or
/// what another net makes of it. Of every array, h the input's channels and s the sum for the head, that of the array
/// before or nothing:
///
///   h = rechannel(h)
///   z = conv(h) + mix(c);  a = f(z), with a gate f(z[:C]) g(z[C:])
///   s = s + head1x1(a);    h = h + layer1x1(a)        for every layer
///   s = head(s)
///
/// and at the end y = head_scale s, followed by the layers of `options.head`. conv and head are CausalConv1d, the
/// others Linear, or CausalConv1d of one tap where they have groups; rechannel and mix have no bias. Films are applied
/// at the places that FilmPlace names. Parameters are named arrays.0.rechannel.weight, arrays.0.layers.0.conv.weight,
/// ..., arrays.0.layers.0.conv_pre_film.weight, ..., arrays.0.head.weight, head.0.weight and condition.arrays.0. ....
/// Before the first step every convolution sees zeros. Throws what CausalConv1d and Linear throw.
class Wavenet final : public LayerOf<Wavenet, WavenetOptions> {
 public:
  static constexpr auto name = "wavenet";
  /// Throws ValueError without arrays, for arrays without layers, sizes below 1 and sizes that do not fit from array to
  /// array, unknown activations, several conditions, blends without a gate and films of products that are not there.
  explicit Wavenet(const WavenetOptions& options, const Init& init = {});

  /// The product of the condition that a film is.
  struct Film {
    std::unique_ptr<Layer> product;  ///< null: there is none
    bool shift = true;
  };
  /// The layers that one layer of an array is made of.
  struct Unit {
    std::unique_ptr<CausalConv1d> conv;
    std::unique_ptr<Layer> mix;
    std::unique_ptr<Layer> activation, gate;   ///< gate: null without one
    std::unique_ptr<Layer> layer1x1, head1x1;  ///< null without one
    bool blends = false;
    std::array<Film, kFilmPlaces> films{};  ///< by FilmPlace
  };
  struct Array {
    std::unique_ptr<Linear> rechannel;
    std::vector<Unit> units;
    std::unique_ptr<CausalConv1d> head;
  };
  const std::vector<Array>& arrays() const& { return arrays_; }
  const std::vector<Array>& arrays() const&& = delete;
  /// A layer after the last array.
  struct HeadLayer {
    std::unique_ptr<Layer> activation;
    std::unique_ptr<CausalConv1d> conv;
  };
  const std::vector<HeadLayer>& head() const& { return head_; }
  const std::vector<HeadLayer>& head() const&& = delete;
  /// Null: the condition is the input.
  const Wavenet* condition() const& { return condition_.get(); }
  const Wavenet* condition() const&& = delete;
  /// What a film is called among the parameters, "conv_pre_film".
  static std::string name_of(FilmPlace place);
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

  std::unique_ptr<Wavenet> condition_;
  std::vector<Array> arrays_;
  std::vector<HeadLayer> head_;
};

extern template class LayerOf<Wavenet, WavenetOptions>;

}  // namespace ferrite::nn
