#pragma once
/// A chain of layers, as torch.nn.Sequential.
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// A layer made of layers applied in order; the variables of a layer are named "<its name>.<variable>". Throws
/// ValueError for a context with an initial state: it would be the state of every recurrent layer.
class Sequential : public Layer {
 public:
  /// Makes an empty chain. If `init` has a seed, `add` draws layers that have no seed themselves.
  explicit Sequential(Init init = {}) : Layer(std::move(init), detail::OwnSteps()) {}

  /// Appends a layer under a name. Throws ValueError for a null layer or an empty or taken name.
  void add(std::string name, std::unique_ptr<Layer> layer);

  /// Returns the number of layers.
  std::size_t size() const { return layers_.size(); }
  /// Returns the i-th layer.
  const Layer& operator[](std::size_t i) const& { return *layers_[i].layer; }
  const Layer& operator[](std::size_t i) const&& = delete;
  /// Returns the name of the i-th layer.
  const std::string& name(std::size_t i) const& { return layers_[i].name; }
  std::string name(std::size_t i) const&& { return layers_[i].name; }
  /// Returns the layer of a name; dots lead into chains within the chain: "encoder.gru". Throws ValueError for an
  /// unknown name, listing the known ones.
  const Layer& layer(std::string_view name) const&;
  const Layer& layer(std::string_view name) const&& = delete;
#ifdef __cpp_rtti
  /// Returns the layer of a name as its own class, net.layer<nn::Gru>("encoder.gru"). Throws ValueError for a layer of
  /// another class, too. Requires run-time type information: not available with -fno-rtti.
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
  /// Returns whether all its layers are causal.
  bool causal() const override;
  bool streams() const override;
  bool reads_lengths() const override { return true; }
  Tensor forward(const Tensor& x, const Context& context) const override;
  StepInput step_input() const override;
  /// Returns the times of the chain's output steps: the paces of all its layers combined (nn/step.h).
  Pace pace() const override;
  Tensor lengths_after(const Tensor& lengths) const override;
  /// Returns the states of all its layers, named "<layer>.<state>".
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

/// A residual connection x + f(x) around a chain f (arXiv 1512.03385). Throws ShapeError if f changes the shape or the
/// number of steps; a stream of such a chain throws PaceError.
class Residual final : public Sequential {
 public:
  using Sequential::Sequential;
  std::string kind() const override { return "residual"; }
  Tensor forward(const Tensor& x, const Context& context) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;
  std::unique_ptr<Layer> clone() const override;
};

/// Returns a copy of a chain for evaluation, in which each batch norm (or instance norm with running statistics) that
/// follows a linear layer or a convolution of any kind is merged into that layer, also in nested chains and residuals.
/// As torch.nn.utils.fusion.fuse_conv_bn_eval.
///
///   w' = w s,  b' = (b - running_mean) s + bias  with  s = weight / sqrt(running_var + epsilon)
///
/// The results differ from those of `chain` in evaluation only by rounding; the other layers keep their names. Layers
/// with a computed parameter become plain ones. The copy is in evaluation mode: to train it would be to train another
/// network. Throws Error if a variable has no value yet.
std::unique_ptr<Sequential> fold_batch_norms(const Sequential& chain);

}  // namespace ferrite::nn
