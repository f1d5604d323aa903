#pragma once
/// Layers whose output steps are functions of windows of their input steps.
#include <memory>
#include <optional>
#include <utility>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// The window of input steps that each output step of a layer sees (Windowed::window): output u sees the inputs
/// u stride - before + k dilation, k in 0..taps - 1, and `padding` in place of inputs that do not exist.
struct StepWindow {
  std::int64_t taps = 1;      ///< number of inputs in a window
  std::int64_t dilation = 1;  ///< steps from one tap to the next
  std::int64_t stride = 1;    ///< steps from one window to the next
  std::int64_t before = 0;    ///< steps of padding before the first input
  std::int64_t after = 0;     ///< steps of padding after the last input
  double padding = 0;         ///< the value of every element of the padding
  bool operator==(const StepWindow&) const = default;

  /// Returns the number of steps from the first tap to the last one.
  std::int64_t reach() const { return (taps - 1) * dilation; }
  /// Returns at which input steps a stream gives the outputs.
  Pace pace() const { return {stride, reach() - before, after}; }
};

class Windowed;

namespace detail {
class WindowFunction;
/// Returns the program of `Windowed::over`.
std::unique_ptr<WindowFunction> program_of_window(const Windowed& layer, const StepWindow& window, const StepRows& in);
}  // namespace detail

/// A layer each of whose output steps is a function of a window of input steps, also with strides. A stream holds these
/// inputs and runs the program of `over` when an output is due.
class Windowed : public Layer {
 protected:
  explicit Windowed(Init init = {}) : Layer(std::move(init)), program_(detail::program_of_window) {}
  Windowed(Init init, detail::OwnSteps own) : Layer(std::move(init), own) {}

 public:
  /// Returns which input steps each output step sees; nullopt if the windows are not over the steps of sequences.
  virtual std::optional<StepWindow> window() const = 0;
  /// Computes an output step from the inputs of its window: [B, taps, D] -> [B, N], with the bits of `forward`.
  virtual Tensor over(const Tensor& x) const = 0;
  /// Returns over(window), [B, taps, D] -> [B, N], run inside this module, so that traces, profiles and errors name it.
  /// The steps of a stream are traced from it.
  Tensor output_of(const Tensor& window) const {
    return inside([&] { return over(window); });
  }

  Pace pace() const override;
  /// Describes one state, the past inputs that later windows see; none with a stride or delay, or windows of one input.
  std::vector<StepState> states(const StepRows& in) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

 protected:
  bool looks_back(const Tensor& x) const override;

 private:
  /// Makes the program of `over`; null for layers with steps of their own, so that these do not link it.
  decltype(&detail::program_of_window) program_ = nullptr;
};

}  // namespace ferrite::nn
