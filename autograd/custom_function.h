#pragma once
/// Functions with a hand-written gradient.
#include <concepts>
#include <functional>
#include <memory>
#include <string>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// Options of a function made by custom_function.
struct CustomFunctionOptions {
  /// Declares that `backward` is not written in differentiable operations: a gradient of the gradient throws TapeError
  /// instead of being wrong.
  bool once_differentiable = false;
};

/// A function with a hand-written gradient, made by `custom_function`. Copies share the functions inside; several
/// threads may call it if they may call these functions.
class CustomFunction {
 public:
  /// Computes the results; a tape records the whole call as one entry.
  using Forward = std::function<Tensors(const Tensors& inputs)>;
  /// Computes the gradient of every input, with the input's shape; undefined for an input without a gradient.
  /// `cotangents` holds one for each of the `outputs` of forward: zeros where none arrived, undefined for integers.
  using Backward = std::function<Tensors(const Tensors& inputs, const Tensors& outputs, const Tensors& cotangents)>;

  /// Makes the function as `custom_function` does.
  CustomFunction(std::string name, Forward forward, Backward backward, const CustomFunctionOptions& options = {});

  /// Calls `forward`. Throws what `forward` throws, and ValueError for an undefined result. While a tape or tracer
  /// records, throws TapeError if `forward` reads a parameter or a tensor on a tape that is not an input: no gradient
  /// would reach it.
  Tensors operator()(const Tensors& inputs) const;
  /// Calls a function that has one result. Throws ValueError for another number of results.
  template <class... T>
  requires(sizeof...(T) > 0 && (std::convertible_to<const T&, Tensor> && ...)) Tensor operator()(const T&... x) const {
    return single((*this)(Tensors{Tensor(x)...}));
  }

 private:
  Tensor single(const Tensors& results) const;

  struct State;
  std::shared_ptr<const State> state_;
};

/// Makes a function with a hand-written gradient. Use it where the gradient is better computed in another way
/// (logarithm of a sum), is deliberately not the derivative (straight-through estimator, clipped or reversed gradient),
/// or is known and cheap (implicit equation).
///
///   const auto round_through = custom_function(
///       "round_through", [](const Tensors& x) { return Tensors{my_round(x[0])}; },
///       [](const Tensors&, const Tensors&, const Tensors& g) { return Tensors{g[0]}; });
///   const Tensor y = round_through(x);
///
/// `forward` runs without tapes. If `backward` needs more than inputs and results, `forward` returns that as a further
/// result. If `backward` is written in operations, the gradient of the gradient is the derivative of `backward`; check
/// both with `gradcheck`. The function runs eagerly, under `trace`, in compiled functions (the operations of both parts
/// join the program and are fused as usual) and in scans. When `backward` is traced, it must not read values of
/// tensors.
///
/// The semantics are those of torch.autograd.Function. Throws ValueError for a null function or an empty name. Taking
/// gradients of a call throws ShapeError for a gradient whose shape or dtype differs from its input's, and ValueError
/// if the number of gradients is not the number of inputs.
CustomFunction custom_function(std::string name, CustomFunction::Forward forward, CustomFunction::Backward backward,
                               const CustomFunctionOptions& options = {});

}  // namespace ferrite
