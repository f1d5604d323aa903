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

/// An activation by name: the elementwise ones of `activation`, leaky_relu, or hardtanh.
struct WavenetActivation {
  std::string name = "tanh";
  double slope = 0.01;        ///< slope of negative elements, for leaky_relu
  double low = -1, high = 1;  ///< lowest and highest value, for hardtanh
};

/// The options of one layer of an array.
struct WavenetUnit {
  std::int64_t kernel_size = 3;
  std::int64_t dilation = 1;
  WavenetActivation activation{};
  std::optional<WavenetActivation> gate{};  ///< activation g of the second half of channels, a factor of the first half
  bool blends = false;                      ///< the gate blends: g f(z) + (1 - g) z of the first half z
};

/// A feature-wise modulation by the condition (FiLM, arXiv 1709.07871): x becomes s x + t, with s and t from a product
/// of the condition.
struct WavenetFilm {
  bool shift = true;        ///< whether there is a shift t
  std::int64_t groups = 1;  ///< groups of the product
};
/// The place where a film is applied: before or after the dilated convolution, the product of the condition, or the
/// activation, or after the product for the next layer or for the head.
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

/// The options of a sequence of layers with the same number of channels.
struct WavenetArray {
  std::int64_t input_size = 1;
  std::int64_t condition_size = 1;
  std::int64_t channels = 0;
  std::int64_t bottleneck = 0;                                           ///< number of channels after the activation
  std::int64_t groups = 1;                                               ///< groups of the dilated convolutions
  std::int64_t mix_groups = 1, layer1x1_groups = 1, head1x1_groups = 1;  ///< groups of the products
  std::array<std::optional<WavenetFilm>, kFilmPlaces> films{};           ///< films of all layers, by FilmPlace
  std::vector<WavenetUnit> units{};
  bool has_layer1x1 = true;       ///< if false, a layer passes its input on unchanged
  std::int64_t head1x1_size = 0;  ///< channels of the product for the head; 0: no product
  std::int64_t head_size = 1;
  std::int64_t head_kernel_size = 1;
  std::int64_t head_dilation = 1;
  bool head_bias = false;

  /// Returns the number of channels of the head's input.
  std::int64_t skip_size() const { return head1x1_size > 0 ? head1x1_size : bottleneck; }
};

/// The options of the layers after the last array, each an activation and a causal convolution.
struct WavenetHead {
  std::int64_t channels = 1;  ///< channels between the layers
  std::int64_t out_channels = 1;
  std::vector<std::int64_t> kernel_sizes{};  ///< kernel size of each layer
  WavenetActivation activation{};
};

/// Options of Wavenet: its arrays, head and condition.
struct WavenetOptions {
  std::vector<WavenetArray> arrays{};
  double head_scale = 1;
  std::optional<WavenetHead> head{};
  std::vector<WavenetOptions> condition{};  ///< at most one: the network that computes the condition from the input

  /// Returns the number of channels of the result.
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

  /// The product of the condition that makes up a film.
  struct Film {
    std::unique_ptr<Layer> product;  ///< null if there is no film
    bool shift = true;
  };
  /// The layers that make up one layer of an array.
  struct Unit {
    std::unique_ptr<CausalConv1d> conv;
    std::unique_ptr<Layer> mix;
    std::unique_ptr<Layer> activation, gate;   ///< gate: null if there is none
    std::unique_ptr<Layer> layer1x1, head1x1;  ///< null if there is none
    bool blends = false;
    std::array<Film, kFilmPlaces> films{};  ///< films of the layer, by FilmPlace
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
  /// Returns the network that computes the condition; null if the condition is the input.
  const Wavenet* condition() const& { return condition_.get(); }
  const Wavenet* condition() const&& = delete;
  /// Returns the name of a film's place among the parameters, "conv_pre_film".
  static std::string name_of(FilmPlace place);
  /// Returns the multiplier of the output, which is not trained.
  double head_scale() const { return options().head_scale; }
  /// Returns the number of input steps that an output depends on.
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
