#pragma once
/// Functions with a gradient written by hand.
#include <concepts>
#include <functional>
#include <memory>
#include <string>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

struct CustomFunctionOptions {
  /// `backward` is not written in operations that have gradients themselves: a gradient of the gradient throws
  /// TapeError, instead of being wrong.
  bool once_differentiable = false;
};

/// A function whose gradient is not that of its operations but one written by hand. Copies share it; may be called by
/// several threads as far as its functions may. See `custom_function`.
class CustomFunction {
 public:
  /// The results of `forward`, as one entry on the tapes that listen.
  using Forward = std::function<Tensors(const Tensors& inputs)>;
  /// The inputs, what forward gave, and the cotangents of that (zeros where none arrived) -> the gradient of every
  /// input, of its shape; an undefined tensor for an input that has none.
  using Backward = std::function<Tensors(const Tensors& inputs, const Tensors& outputs, const Tensors& cotangents)>;

  /// See `custom_function`.
  CustomFunction(std::string name, Forward forward, Backward backward, const CustomFunctionOptions& options = {});

  /// Throws what `forward` throws; TapeError where it reads a parameter, or a tensor on a tape that is no input: no
  /// gradient would reach it.
  Tensors operator()(const Tensors& inputs) const;
  /// The same for a function with one result. Throws ValueError for another number of results.
  template <class... T>
  requires(sizeof...(T) > 0 && (std::convertible_to<const T&, Tensor> && ...)) Tensor operator()(const T&... x) const {
    return single((*this)(Tensors{Tensor(x)...}));
  }

 private:
  Tensor single(const Tensors& results) const;

  struct State;
  std::shared_ptr<const State> state_;
};

/// A function with a gradient written by hand: for one that is better computed otherwise (a logarithm of a sum), that
/// is not the derivative (a straight-through estimator, a clipped or reversed gradient), or where the gradient is known
/// and cheap (an implicit equation).
///
///   const auto round_through = custom_function(
///       "round_through", [](const Tensors& x) { return Tensors{my_round(x[0])}; },
///       [](const Tensors&, const Tensors&, const Tensors& g) { return Tensors{g[0]}; });
///   const Tensor y = round_through(x);
///
/// `forward` runs without tapes. What `backward` needs besides inputs and results, forward gives as a further result.
/// Where `backward` is written in operations, the gradient of the gradient is the derivative of `backward`; check both
/// with `gradcheck`. Runs eagerly, under `trace`, in compiled functions (the operations of both are part of the
/// program, fused as any others) and in scans. When backward is traced, too, it must not read values of tensors.
///
/// The semantics are those of torch.autograd.Function. Throws ValueError for a null function or an empty name. A call
/// throws ShapeError, when gradients are taken, for a gradient of another shape or dtype than its input's, and
/// ValueError for another number of gradients than inputs.
CustomFunction custom_function(std::string name, CustomFunction::Forward forward, CustomFunction::Backward backward,
                               const CustomFunctionOptions& options = {});

}  // namespace ferrite
