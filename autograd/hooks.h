#pragma once
/// Functions that see gradients on their way and may replace them.
#include <functional>
#include <memory>
#include <span>

#include "ferrite/tensor/variable.h"

namespace ferrite {

/// Is given a gradient and gives what takes its place, of the same shape and dtype; an undefined tensor leaves it as it
/// is.
using GradientHookFunction = std::function<Tensor(const Tensor& gradient)>;

/// x, whose gradient passes the hook: with that of all that reads the result, added up, it is called once in each
/// backward pass that reaches the result, and what it gives passes on to x.
///
///   const Tensor h = hook_gradient(layer(x), [&](const Tensor& g) { seen = g; return Tensor(); });   // observe
///   const Tensor r = hook_gradient(x, [](const Tensor& g) { return -g; });                           // reverse
///
/// Tensors are immutable: the result, not x, carries the hook (torch.Tensor.register_hook changes x). A hook written in
/// operations is differentiated with the gradient, and is part of compiled functions and scans; there it must not read
/// values. x as it is where no tape and no tracer listens. Throws ValueError for a null function; ShapeError, when
/// gradients are taken, for a gradient of another shape or dtype.
Tensor hook_gradient(const Tensor& x, GradientHookFunction hook);

/// While it lives, every gradient of a parameter that `Tape::grad` and `value_and_grad` give passes the function: the
/// whole gradient, once, however often the parameter was read. On all threads; hooks of one parameter run in the order
/// in which they were made. A compiled function has the hooks that were set when it was traced.
///
///   const GradientHook clip(net.weight, [](const Tensor& g) { return clamp(g, -1, 1); });
///
/// As torch.Tensor.register_hook on a parameter. The constructor throws ValueError for a null function or an empty
/// handle; a gradient of another shape or dtype than its parameter's throws ShapeError where gradients are taken.
class [[nodiscard]] GradientHook {
 public:
  GradientHook(const Parameter& parameter, GradientHookFunction hook);
  ~GradientHook();
  GradientHook(const GradientHook&) = delete;
  GradientHook& operator=(const GradientHook&) = delete;

 private:
  const void* entry_;
};

namespace detail {

/// Runs the hooks of the parameters on their gradients, in the order in which they were set; undefined ones are passed
/// by. One load where no hook is set.
void run_parameter_hooks(std::span<const Parameter> parameters, Tensors& gradients);

}  // namespace detail
}  // namespace ferrite
