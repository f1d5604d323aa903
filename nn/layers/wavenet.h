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

/// An activation in the options of Wavenet: by name, an elementwise one of nn::activation_names(), "leaky_relu" or
/// "hardtanh".
struct WavenetActivation {
  std::string name = "tanh";
  double slope = 0.01;        ///< slope of negative elements, for leaky_relu
  double low = -1, high = 1;  ///< lowest and highest value, for hardtanh
};

/// The options of one layer of an array: its dilated convolution, activation and gate.
struct WavenetUnit {
  std::int64_t kernel_size = 3;
  std::int64_t dilation = 1;                ///< steps from one tap to the next
  WavenetActivation activation{};           ///< f of Wavenet's formula
  std::optional<WavenetActivation> gate{};  ///< g of Wavenet's formula, for the second half of the channels
  bool blends = false;  ///< gives g f(z) + (1 - g) z instead of g f(z); z: the first half, g: the gate's value
};

/// The options of a feature-wise modulation by the condition (FiLM, arXiv 1709.07871): x becomes s x + t, where s and t
/// are the condition times a learned matrix, plus a bias.
struct WavenetFilm {
  bool shift = true;        ///< whether t exists; false: x becomes s x
  std::int64_t groups = 1;  ///< number of groups of channels in the product that gives s and t
};
/// The place in a layer where a film is applied: before or after the dilated convolution (conv), the product of the
/// condition (mix) or the activation, or after the product for the next layer (layer1x1) or for the head (head1x1).
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
/// The number of FilmPlaces.
inline constexpr std::size_t kFilmPlaces = 8;

/// The options of an array of Wavenet: a sequence of layers with the same number of channels, and the head after them.
struct WavenetArray {
  std::int64_t input_size = 1;      ///< features of x, or from the second array on `channels` of the array before
  std::int64_t condition_size = 1;  ///< features of the condition
  std::int64_t channels = 0;        ///< channels of h in Wavenet's formula
  std::int64_t bottleneck = 0;      ///< number of channels after the activation
  std::int64_t groups = 1;          ///< groups of the dilated convolutions
  std::int64_t mix_groups = 1, layer1x1_groups = 1, head1x1_groups = 1;  ///< groups of mix, layer1x1 and head1x1
  std::array<std::optional<WavenetFilm>, kFilmPlaces> films{};  ///< films of every layer, by FilmPlace; unset: none
  std::vector<WavenetUnit> units{};                             ///< the layers in order
  bool has_layer1x1 = true;                                     ///< if false, every layer passes its input on unchanged
  std::int64_t head1x1_size = 0;      ///< channels of head1x1, each layer's product for the head; 0: no product
  std::int64_t head_size = 1;         ///< channels that the array's head gives
  std::int64_t head_kernel_size = 1;  ///< taps of the array's head, a causal convolution
  std::int64_t head_dilation = 1;     ///< steps from one tap of the head to the next
  bool head_bias = false;             ///< whether the head has a bias

  /// Returns the number of channels of s in Wavenet's formula, the input of the array's head.
  std::int64_t skip_size() const { return head1x1_size > 0 ? head1x1_size : bottleneck; }
};

/// The options of the layers that follow the last array's own head, each an activation and a causal convolution.
struct WavenetHead {
  std::int64_t channels = 1;                 ///< channels of every layer's result except the last one's
  std::int64_t out_channels = 1;             ///< channels of the last layer's result
  std::vector<std::int64_t> kernel_sizes{};  ///< kernel size of each layer; their number is that of the layers
  WavenetActivation activation{};            ///< activation before each convolution
};

/// Options of Wavenet: its arrays, head and condition.
struct WavenetOptions {
  std::vector<WavenetArray> arrays{};       ///< the arrays, in order; at least one
  double head_scale = 1;                    ///< factor, not trained, of what the last array's head gives
  std::optional<WavenetHead> head{};        ///< layers after that; unset: none
  std::vector<WavenetOptions> condition{};  ///< at most one: the network that computes the condition from the input

  /// Returns the number of channels of Wavenet's result.
  std::int64_t out_channels() const { return head ? head->out_channels : arrays.empty() ? 0 : arrays.back().head_size; }
};

/// The WaveNet of the Neural Amp Modeler (github.com/sdatkinson/NeuralAmpModelerCore, docs/wavenet_walkthrough.rst; the
/// idea: arXiv 1609.03499): x [B, T, D] -> [B, T, head_size of the last array], f32 or f64. The condition c is x, or
/// the output of another network for x. For every array, h has the input's channels, and s is the sum for the head,
/// which starts as that of the array before, or empty:
///
///   h = rechannel(h)
///   z = conv(h) + mix(c);  a = f(z), with a gate f(z[:C]) g(z[C:])
///   s = s + head1x1(a);    h = h + layer1x1(a)        for every layer
///   s = head(s)
///
/// and at the end y = head_scale s, followed by the layers of `options.head`. conv and head are CausalConv1d, the
/// others Linear, or CausalConv1d with one tap if they have groups; rechannel and mix have no bias. Films are applied
/// at the places that FilmPlace names. Parameters are named arrays.0.rechannel.weight, arrays.0.layers.0.conv.weight,
/// ..., arrays.0.layers.0.conv_pre_film.weight, ..., arrays.0.head.weight, head.0.weight and condition.arrays.0. ....
/// Before the first step every convolution sees zeros. Throws what CausalConv1d and Linear throw.
class Wavenet final : public LayerOf<Wavenet, WavenetOptions> {
 public:
  static constexpr auto name = "wavenet";
  /// Throws ValueError without arrays, for arrays without layers, sizes below 1 or that do not fit from array to array,
  /// unknown activations, several conditions, blends without a gate, and films of products that do not exist.
  explicit Wavenet(const WavenetOptions& options, const Init& init = {});

  /// A film: the layer that computes its s and t from the condition.
  struct Film {
    std::unique_ptr<Layer> product;  ///< null if there is no film
    bool shift = true;               ///< whether the product gives t after s
  };
  /// The layers that make up one layer of an array.
  struct Unit {
    std::unique_ptr<CausalConv1d> conv;
    std::unique_ptr<Layer> mix;
    std::unique_ptr<Layer> activation, gate;   ///< gate: null if there is none
    std::unique_ptr<Layer> layer1x1, head1x1;  ///< null if there is none
    bool blends = false;                       ///< as in WavenetUnit
    std::array<Film, kFilmPlaces> films{};     ///< films of the layer, by FilmPlace
  };
  /// The layers that make up an array; `head` is its own, applied to the sum for the head.
  struct Array {
    std::unique_ptr<Linear> rechannel;
    std::vector<Unit> units;
    std::unique_ptr<CausalConv1d> head;
  };
  /// Returns the arrays in the order in which they are applied.
  const std::vector<Array>& arrays() const& { return arrays_; }
  const std::vector<Array>& arrays() const&& = delete;
  /// A layer after the last array's own head.
  struct HeadLayer {
    std::unique_ptr<Layer> activation;
    std::unique_ptr<CausalConv1d> conv;
  };
  /// Returns the layers of `options.head`, which follow the last array's own head; empty if there are none.
  const std::vector<HeadLayer>& head() const& { return head_; }
  const std::vector<HeadLayer>& head() const&& = delete;
  /// Returns the network that computes the condition; null if the condition is the input.
  const Wavenet* condition() const& { return condition_.get(); }
  const Wavenet* condition() const&& = delete;
  /// Returns the name under which parameters of a film at this place are found in a layer: "conv_pre_film".
  static std::string name_of(FilmPlace place);
  /// Returns the factor, not trained, of what the last array's head gives; the layers of `head()` follow it.
  double head_scale() const { return options().head_scale; }
  /// Returns the number of input steps that an output step depends on, including its own.
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
