#pragma once
/// Gradient hooks: functions that see gradients during the backward pass and may replace them.
#include <functional>
#include <memory>
#include <span>

#include "ferrite/tensor/variable.h"

namespace ferrite {

/// A function that receives a gradient and returns its replacement, of the same shape and dtype; an undefined tensor
/// leaves the gradient unchanged.
using GradientHookFunction = std::function<Tensor(const Tensor& gradient)>;

/// Returns x with a hook on its gradient. In each backward pass that reaches the result, the hook is called once with
/// the whole gradient of the result, summed over all its users, and what it returns is passed on to x.
///
///   const Tensor h = hook_gradient(layer(x), [&](const Tensor& g) { seen = g; return Tensor(); });   // observe
///   const Tensor r = hook_gradient(x, [](const Tensor& g) { return -g; });                           // reverse
///
/// Tensors are immutable: the result, not x, carries the hook (torch.Tensor.register_hook changes x). A hook written in
/// operations is differentiated with the gradient and becomes part of compiled functions and scans; there it must not
/// read values. Returns x itself when no tape or tracer listens. Throws ValueError for a null function. Taking
/// gradients throws ShapeError if the hook returns another shape or dtype.
Tensor hook_gradient(const Tensor& x, GradientHookFunction hook);

/// Passes the gradient of a parameter through a function for as long as this object lives: in every `Tape::grad` and
/// `value_and_grad`, on all threads, once as a whole, however often the parameter was read. Hooks of one parameter run
/// in the order in which they were made. A compiled function has the hooks that were set when it was traced.
///
///   const GradientHook clip(net.weight, [](const Tensor& g) { return clamp(g, -1, 1); });
///
/// The semantics are those of torch.Tensor.register_hook on a parameter. Taking gradients throws ShapeError if the hook
/// returns another shape or dtype.
class [[nodiscard]] GradientHook {
 public:
  /// Sets the hook on the parameter; the destructor removes it. Throws ValueError for a null function or an empty
  /// handle.
  GradientHook(const Parameter& parameter, GradientHookFunction hook);
  ~GradientHook();
  GradientHook(const GradientHook&) = delete;
  GradientHook& operator=(const GradientHook&) = delete;

 private:
  const void* entry_;
};

namespace detail {

/// Runs the hooks of the parameters on their gradients, in the order in which the hooks were set; skips undefined
/// gradients. Costs one load when no hook is set.
void run_parameter_hooks(std::span<const Parameter> parameters, Tensors& gradients);

}  // namespace detail
}  // namespace ferrite
