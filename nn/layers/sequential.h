#pragma once
/// A chain of layers, as torch.nn.Sequential.
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// Layers applied one after another; the variables of a layer are named "<its name>.<variable>". Throws ValueError for
/// a context with an initial state: it would be the state of every recurrent layer.
class Sequential : public Layer {
 public:
  /// With a seed, layers without one are drawn when they are added.
  explicit Sequential(Init init = {}) : Layer(std::move(init), detail::OwnSteps()) {}

  /// Appends a layer under a name. Throws ValueError for a null layer or an empty or taken name.
  void add(std::string name, std::unique_ptr<Layer> layer);

  std::size_t size() const { return layers_.size(); }
  const Layer& operator[](std::size_t i) const& { return *layers_[i].layer; }
  const Layer& operator[](std::size_t i) const&& = delete;
  const std::string& name(std::size_t i) const& { return layers_[i].name; }
  std::string name(std::size_t i) const&& { return layers_[i].name; }
  /// The layer of that name; dots lead into chains within the chain: "encoder.gru". Throws ValueError for a name that
  /// there is not, naming those that there are.
  const Layer& layer(std::string_view name) const&;
  const Layer& layer(std::string_view name) const&& = delete;
#ifdef __cpp_rtti
  /// The same as what it is, net.layer<nn::Gru>("encoder.gru"). Throws ValueError for a layer of another class, too.
  /// Needs run-time type information: programs compiled with -fno-rtti do without.
  template <std::derived_from<Layer> L>
  const L& layer(std::string_view name) const& {
    const Layer& found = layer(name);
    if (const L* const as = dynamic_cast<const L*>(&found)) return *as;
    throw_other_class(name, found);
  }
  template <std::derived_from<Layer> L>
  const L& layer(std::string_view name) const&& = delete;
#endif

  std::string kind() const override { return "sequential"; }
  /// Whether all its layers are.
  bool causal() const override;
  bool streams() const override;
  bool reads_lengths() const override { return true; }
  Tensor forward(const Tensor& x, const Context& context) const override;
  StepInput step_input() const override;
  /// That of all its layers, one behind the other.
  Pace pace() const override;
  Tensor lengths_after(const Tensor& lengths) const override;
  /// Those of all its layers, "<layer>.<state>".
  std::vector<StepState> states(const StepRows& in) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;
  std::unique_ptr<Layer> clone() const override;

 protected:
  struct Item {
    std::string name;
    std::unique_ptr<Layer> layer;
  };
  void clone_into(Sequential& to) const;

 private:
  bool only_chains() const override { return true; }
  [[noreturn]] static void throw_other_class(std::string_view name, const Layer& found);

  std::vector<Item> layers_;
  std::unordered_set<std::string> names_;
};

/// x + f(x), f a chain (arXiv 1512.03385). Throws ShapeError when f changes the shape, the number of steps included: a
/// stream of it is refused with a PaceError.
class Residual final : public Sequential {
 public:
  using Sequential::Sequential;
  std::string kind() const override { return "residual"; }
  Tensor forward(const Tensor& x, const Context& context) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;
  std::unique_ptr<Layer> clone() const override;
};

/// A copy of a chain for evaluation, in which each batch norm (or instance norm with running numbers) that follows a
/// linear layer or a convolution of any kind is part of that layer: torch.nn.utils.fusion.fuse_conv_bn_eval, in nested
/// chains and residuals, too.
///
///   w' = w s,  b' = (b - running_mean) s + bias  with  s = weight / sqrt(running_var + epsilon)
///
/// The results differ from those of `chain` in evaluation by rounding alone; names of the other layers stay. Layers
/// with a computed parameter become plain ones. The copy is in evaluation: to train it would be to train another net.
/// Throws Error where a variable has no value yet.
std::unique_ptr<Sequential> fold_batch_norms(const Sequential& chain);

}  // namespace ferrite::nn
