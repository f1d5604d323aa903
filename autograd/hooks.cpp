/// Hooks on gradients of tensors, as applications with a rule, and of parameters, as a global list.
#include "ferrite/autograd/hooks.h"

#include <atomic>
#include <list>
#include <mutex>
#include <vector>

#include "ferrite/autograd/detail/gradient_rule.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {
namespace {

struct Entry {
  Parameter parameter;
  GradientHookFunction hook;
};

/// The global list of hooks on parameters, never destroyed. Hooks are called without the lock.
struct Hooks {
  std::atomic<std::size_t> count{0};
  std::mutex mutex;
  std::list<std::shared_ptr<const Entry>> entries;
};

Hooks& hooks() {
  static auto* const all = new Hooks;
  return *all;
}

void pass(const std::string& who, const GradientHookFunction& hook, Tensor& gradient) {
  const Tensor g = hook(gradient);
  if (!g.defined()) return;
  if (!(g.spec() == gradient.spec()))
    throw ShapeError(who + ": the hook must give a gradient like the one that it was given: " + g.spec().str() +
                     " for " + gradient.spec().str());
  gradient = g;
}

}  // namespace

Tensor hook_gradient(const Tensor& x, GradientHookFunction hook) {
  if (!hook) throw ValueError("hook_gradient: the hook is null");
  if (detail::frame().recorders.empty()) return x;
  auto rule = std::make_shared<const detail::GradientRule>("hook_gradient",
                                                           [hook = std::move(hook)](const Vjp& v, std::size_t) {
                                                             Tensor g = v.grad();
                                                             pass("hook_gradient", hook, g);
                                                             return Tensors{g};
                                                           });
  return detail::with_rule(std::move(rule), {x}, {x}, detail::RuleReads::nothing)[0];
}

GradientHook::GradientHook(const Parameter& parameter, GradientHookFunction hook) {
  if (!parameter.defined()) throw ValueError("GradientHook: the parameter is an empty handle");
  if (!hook) throw ValueError("GradientHook: the hook on '" + parameter.name() + "' is null");
  const auto made = std::make_shared<const Entry>(Entry{parameter, std::move(hook)});
  Hooks& all = hooks();
  const std::lock_guard lock(all.mutex);
  all.entries.push_back(made);
  all.count.fetch_add(1, std::memory_order_relaxed);
  entry_ = made.get();
}

GradientHook::~GradientHook() {
  Hooks& all = hooks();
  const std::lock_guard lock(all.mutex);
  all.entries.remove_if([&](const auto& e) { return e.get() == entry_; });
  all.count.fetch_sub(1, std::memory_order_relaxed);
}

void detail::run_parameter_hooks(std::span<const Parameter> parameters, Tensors& gradients) {
  Hooks& all = hooks();
  if (all.count.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  std::vector<std::shared_ptr<const Entry>> now;
  {
    const std::lock_guard lock(all.mutex);
    now.assign(all.entries.begin(), all.entries.end());
  }
  for (const auto& e : now)
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (gradients[i].defined() && parameters[i] == e->parameter)
        pass("GradientHook on '" + e->parameter.name() + "'", e->hook, gradients[i]);
}

}  // namespace ferrite
