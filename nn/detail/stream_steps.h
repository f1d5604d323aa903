#pragma once
/// The steps of streams: their makers, their memory, their states, and copies of layers.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/nn/step.h"
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/kernel/stream_sums.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/profiled.h"

namespace ferrite::nn::detail {

/// Returns all steps of a layer, joined into one.
std::unique_ptr<Step> step_of(const Layer& layer, const StepRows& in);

/// Returns the step of a layer that is not made of others: its program, or else the layer itself on tensors.
std::unique_ptr<Step> own_step_of(const Layer& layer, const StepRows& in);

/// Returns the type of a step's x: [B, D], or [B] of tokens.
inline Spec spec_of(const StepRows& r) {
  return {is_integer(r.dtype) ? Shape{r.batch} : Shape{r.batch, r.width}, r.dtype};
}

/// Fills n bytes with elements of this value, or with zeros if the dtype is not f32 or f64.
void fill_values(Dtype dtype, double value, std::byte* at, std::int64_t n);
inline std::int64_t bytes_of(const Spec& s) { return s.shape.numel() * size_of(s.dtype); }
inline std::int64_t bytes_of(const StepRows& r) { return r.batch * r.width * size_of(r.dtype); }

/// Returns a tensor [B, D], or [B] of tokens, as rows. Throws ShapeError for another rank.
StepRows rows_of(const Tensor& x);

/// Returns the rows that a step of a layer with these states gives.
StepRows rows_after(const Layer& layer, const StepRows& in, const std::vector<StepState>& states);

/// Returns how many steps, of `bytes` each, go from layer to layer at once: enough to share the work around them, few
/// enough to stay in the cache.
inline std::int64_t steps_at_once(std::int64_t bytes) {
  return std::clamp<std::int64_t>(64 * 1024 / std::max<std::int64_t>(bytes, 1), 1, 64);
}

/// The `most_at_once` of a layer that carries nothing from one step to the next: any number.
constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();

/// Returns the number of elements from one channel of n steps to the next.
inline std::int64_t channel_pitch(Dtype dtype, std::int64_t n) {
  return dtype == Dtype::f64 ? ferrite::detail::padded<double>(n) : ferrite::detail::padded<float>(n);
}
/// Returns the `by_channel` of a step that gives these rows and works equally well in both layouts.
inline Step::Channels channels_of(const StepRows& rows) {
  return rows.batch == 1 && is_float(rows.dtype) ? Step::Channels::yes : Step::Channels::no;
}
/// Adds x to y, n elements in whole packets.
template <class T>
void add(void* y, const T* x, std::int64_t n) {
  const std::array<const void*, 2> in{y, x};
  constexpr std::array<std::ptrdiff_t, 2> run{1, 1};
  ferrite::detail::ops::add->block(ferrite::dtype_of<T>)(in.data(), run.data(), y, n);
}

/// Marks a step that may overwrite an input of equal rows with its result, because it works element by element.
class InPlace {
 public:
  virtual ~InPlace() = default;

 protected:
  InPlace() = default;
  InPlace(const InPlace&) = default;
  InPlace& operator=(const InPlace&) = default;
};

/// Runs a step, or several at once, as an event of a profile.
void run_profiled(Step& step, Step::Inputs x, void* y);
using RunSeveral = void (Step::*)(std::int64_t n, Step::Inputs x, void* y);
void run_profiled(Step& step, RunSeveral run, std::int64_t n, Step::Inputs x, void* y);

/// Calls `run` of a layer's step; an Error that it throws names the layer.
[[gnu::always_inline]] inline void run_step(Step& step, Step::Inputs x, void* y) {
  if (ferrite::detail::profiling()) [[unlikely]]
    return run_profiled(step, x, y);
  ferrite::detail::in_layer(step.scope(), [&] { step.run(x, y); });
}

/// Calls `run_rows` of a layer's step; an Error that it throws names the layer.
Step::Rows run_rows_of(Step& step, const Step::Rows* rows, Step::Inputs x, void* y);
/// Calls `finish` of a layer's step; an Error that it throws names the layer.
Step::Rows finish_rows_of(Step& step, Step::Rows rows, std::int64_t i, void* y);

/// Calls `run_several` of a layer's step.
[[gnu::always_inline]] inline void run_steps(Step& step, std::int64_t n, Step::Inputs x, void* y) {
  if (ferrite::detail::profiling()) [[unlikely]]
    return run_profiled(step, &Step::run_several, n, x, y);
  step.run_several(n, x, y);
}

/// Calls `run_channels` of a layer's step.
inline void run_channel_steps(Step& step, std::int64_t n, Step::Inputs x, void* y) {
  if (ferrite::detail::profiling()) [[unlikely]]
    return run_profiled(step, &Step::run_channels, n, x, y);
  step.run_channels(n, x, y);
}

/// Returns a copy of a layer with the layer's path, so that errors and costs name the same one.
std::unique_ptr<Layer> copy_in_place_of(const Layer& layer);

/// Returns a copy of a layer with the layer's path, in evaluation mode.
std::unique_ptr<Layer> evaluating_copy(const Layer& layer);

/// Refuses, while it lives, calls of layers that would begin from zeros in the middle of a stream (Layer::operator()).
class SingleStep {
 public:
  SingleStep() : before_(std::exchange(in_single_step(), true)) {}
  ~SingleStep() { in_single_step() = before_; }
  SingleStep(const SingleStep&) = delete;
  SingleStep& operator=(const SingleStep&) = delete;

 private:
  bool before_;
};

/// Assigns the values of the model's variables to those of a copy.
template <class C>
void take_values(const std::vector<Named<C>>& from, const std::vector<Named<C>>& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i].variable.assign(from[i].variable.peek());
}

/// Memory of a step, kept for its life, zeros at first. A copy has its own memory.
template <class T>
class StepMemory {
 public:
  /// Tag of memory that is written before it is read and need not be zeroed.
  struct Unset {};
  explicit StepMemory(std::int64_t n) : StepMemory(n, Unset()) { clear(); }
  StepMemory(std::int64_t n, Unset) : room_(std::max<std::int64_t>(n, 1)), n_(n), first_(room_.get()) {}
  StepMemory(const StepMemory& o) : StepMemory(o.n_, Unset()) { std::copy_n(o.get(), n_, get()); }
  StepMemory& operator=(const StepMemory&) = delete;
  T* get() const { return first_; }
  std::int64_t size() const { return n_; }
  void clear() { std::fill_n(get(), n_, T(0)); }

 private:
  ferrite::detail::Room<T> room_;
  std::int64_t n_;
  T* first_;
};

/// A pointwise operation of one value, with literals in place of its other operands.
class ElementFunction {
 public:
  /// Wraps an operation; `literals` has the values of all operands but one.
  ElementFunction(const Primitive& op, Dtype dtype, const Attrs& literals = {});
  /// Makes the function a part of what a kernel does after its sums; returns false if the kernels do not know it.
  template <class T>
  bool joins(ferrite::detail::BehindSums<T>& behind) const {
    using ferrite::detail::CheapFunction;
    if (op_ == ferrite::detail::ops::relu) behind.function = CheapFunction::relu;
    if (op_ == ferrite::detail::ops::leaky_relu && operand_ == 0) {
      behind.function = CheapFunction::leaky_relu;
      std::memcpy(&behind.slope, &literals_[1], sizeof(T));
    }
    return behind.function != CheapFunction::none;
  }
  /// Applies the function to n elements, from x to y, which may be the same, in whole packets.
  void operator()(const void* x, void* y, std::int64_t n) const {
    std::array<const void*, kMost> in{&literals_[0], &literals_[1], &literals_[2]};
    std::array<std::ptrdiff_t, kMost> run{};
    in[operand_] = x, run[operand_] = 1;
    block_(in.data(), run.data(), y, n);
  }

 private:
  static constexpr std::size_t kMost = ferrite::detail::Literals::kMost;
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };

  const Primitive* op_;
  ferrite::detail::Block block_;
  std::size_t operand_ = 0;  ///< position of the operand that is not a literal
  std::array<Line, kMost> literals_{};
};

/// Returns a step that applies a function to each element.
std::unique_ptr<Step> elements_step(const ElementFunction& f, const StepRows& rows);

/// The work that a step of products has taken over from the steps after it: first a sum, then a function.
struct JoinedSteps {
  bool sums = false;                      ///< whether a last input is added to the product
  std::optional<ElementFunction> then{};  ///< function that is applied to the result

  bool join_sum() { return !then && !std::exchange(sums, true); }
  bool join(const ElementFunction& f) {
    if (then) return false;
    then = f;
    return true;
  }
  /// Applies both to y, n elements in whole packets, after a kernel that does neither.
  template <class T>
  void apply(Step::Inputs x, T* y, std::int64_t n) const {
    if (sums) add(y, static_cast<const T*>(x[1]), n);
    if (then) (*then)(y, y, n);
  }
};

/// Returns a step that computes x W + b.
std::unique_ptr<Step> linear_step(const Parameter& weight, const Parameter& bias, std::int64_t batch);

/// A step in operations, and the states that it carries.
struct StepSource {
  std::string kind;
  std::vector<StepRows> inputs;
  std::vector<StepState> states;
  /// Computes n successive steps: x [n B, D] of every input -> y [n B, N].
  std::function<StepResult(const Tensors& x, const Tensors& states, std::int64_t n)> steps;
  /// The first value of each state; undefined for zeros.
  std::vector<Tensor> initial{};
  /// Computes `initial` again, for the variables' present values.
  std::function<std::vector<Tensor>()> begin{};
  /// Maps a variable that `steps` reads to the layer's own.
  std::function<Variable(const Variable&)> originals{};
  bool single = true;  ///< whether `steps` takes only n = 1
};

/// Returns the step that a layer defines in operations (Layer::step).
StepSource source_of(const Layer& layer, const StepRows& in);

/// Returns the step that is found in a layer's `forward`, traced over time: the steps of the layers that it calls, and
/// programs of the operations between them, with what these read of earlier steps. Throws TraceError, and ValueError
/// that names the layer and operation that look ahead or at all steps, or of which nothing is known.
std::unique_ptr<Step> found_step(const Layer& layer, const StepRows& in);

/// Returns a step that runs the planned program of a source.
std::unique_ptr<Step> open_step(const StepSource& source);

/// Returns a step that reads rows of a table.
std::unique_ptr<Step> embedding_step(const Parameter& weight, std::int64_t batch);

/// Returns the step of a layer whose parameter `name` a function computes when the step is made and in `refresh`.
std::unique_ptr<Step> computed_step(const Layer& layer, const std::string& name, std::function<Tensor()> compute,
                                    const StepRows& in);

/// Returns a step that is made of a copy of a layer and follows the values of the layer.
std::unique_ptr<Step> step_of_copy(const Layer& layer, std::unique_ptr<Layer> copy,
                                   std::function<std::unique_ptr<Step>(const Layer& copy)> make);

/// A function that makes an output of a window of inputs [B, taps, D]: a program, or hand-written code. It allocates
/// nothing.
class WindowFunction {
 public:
  WindowFunction() = default;
  virtual ~WindowFunction() = default;
  WindowFunction& operator=(const WindowFunction&) = delete;
  /// Returns where the caller writes the window; `y` returns where it reads the output.
  virtual std::byte* x() = 0;
  virtual const std::byte* y() const = 0;
  virtual StepRows result() const = 0;
  virtual Step::Runs runs() const { return Step::Runs::kernel; }
  virtual void run() = 0;
  /// Returns the maximum number of steps that `run_several` takes: x [n, B, taps, D] -> y [n, B, N], with the bits of
  /// `run`.
  virtual std::int64_t most_at_once() const { return 1; }
  virtual void run_several(std::int64_t) { run(); }
  /// Takes the present values of variables.
  virtual void refresh() = 0;
  virtual std::unique_ptr<WindowFunction> clone() const = 0;

 protected:
  WindowFunction(const WindowFunction&) = default;
};

/// Returns the program of a function of a window; `originals` maps the variables that it reads to the layer's own.
std::unique_ptr<WindowFunction> window_program(const std::string& kind, const Spec& window,
                                               const std::function<Tensor(const Tensor&)>& f,
                                               const std::function<Variable(const Variable&)>& originals = {});

/// Returns a step that keeps a window of inputs and makes outputs of it with a function. Throws ValueError for a window
/// that cannot be streamed.
std::unique_ptr<Step> window_step(const StepWindow& window, const StepRows& in,
                                  std::unique_ptr<WindowFunction> function);

/// Returns the map from the variables of a copy, which is traced, to those of the layer, which the stream follows.
std::function<Variable(const Variable&)> originals_of(const Layer& layer, const Layer& copy);

// ---- steps of several values ---------------------------------------------------------------------------

/// Returns a step that adds values of equal rows, from the first on: ((x + y) + z) + ...
std::unique_ptr<Step> sum_step(const StepRows& rows, std::size_t terms);

/// Returns a step that concatenates the rows of all values.
std::unique_ptr<Step> concat_step(std::span<const StepRows> rows);

/// Returns a step that takes `width` elements of each row, from `first` on.
std::unique_ptr<Step> columns_step(const StepRows& rows, std::int64_t first, std::int64_t width);

/// Returns a step that multiplies a value by a number.
std::unique_ptr<Step> scale_step(const StepRows& rows, double factor);

/// Returns a step that multiplies two values element by element.
std::unique_ptr<Step> product_step(const StepRows& rows);

/// Returns a step that runs the planned program of a function of several values, traced once.
std::unique_ptr<Step> program_of_values(std::span<const StepRows> rows,
                                        const std::function<Tensor(const Tensors&)>& together);

/// Returns a step whose values may come at different times: early rows wait for the others, at most `most` of them.
std::unique_ptr<Step> aligned_step(std::unique_ptr<Step> step, std::span<const StepRows> rows, std::int64_t most);

// ---- states --------------------------------------------------------------------------------------------

/// Visits all states of a model's steps, in the order in which they are saved.
void each_state(Step& whole, const Step::StateVisitor& see);

/// Resets the states of all rows. Allocates nothing.
void begin_states(Step& whole);

/// Resets the states of one row. Allocates nothing.
void begin_states(Step& whole, std::int64_t row);

/// Returns copies of all states, in order.
std::vector<Tensor> saved_states(Step& whole);

/// Restores states that `saved_states` returned. Throws ValueError for another number of them and for counts that no
/// step leaves, ShapeError for other types; nothing has changed then.
void restore_states(Step& whole, std::span<const Tensor> states);

}  // namespace ferrite::nn::detail
