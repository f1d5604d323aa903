#pragma once
/// What the steps of streams share: their memory, and copies of a layer's weights.
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

/// Joins all steps of a layer into one.
std::unique_ptr<Step> step_of(const Layer& layer, const StepRows& in);

/// The step of a layer that is made of no others: its own, or else the layer itself on tensors.
std::unique_ptr<Step> own_step_of(const Layer& layer, const StepRows& in);

/// A step's x: [B, D], of tokens [B].
inline Spec spec_of(const StepRows& r) {
  return {is_integer(r.dtype) ? Shape{r.batch} : Shape{r.batch, r.width}, r.dtype};
}

/// Makes all n bytes at a place elements of this value; zeros of types that are no working floats.
void fill_values(Dtype dtype, double value, std::byte* at, std::int64_t n);
inline std::int64_t bytes_of(const Spec& s) { return s.shape.numel() * size_of(s.dtype); }
inline std::int64_t bytes_of(const StepRows& r) { return r.batch * r.width * size_of(r.dtype); }

/// What a tensor [B, D], or [B] of tokens, is as rows. Throws ShapeError for another rank.
StepRows rows_of(const Tensor& x);

/// The rows that a step of a layer with such states gives.
StepRows rows_after(const Layer& layer, const StepRows& in, const std::vector<StepState>& states);

/// How many steps of so many bytes go from layer to layer at once: enough to share the work around them, few enough to
/// stay near.
inline std::int64_t steps_at_once(std::int64_t bytes) {
  return std::clamp<std::int64_t>(64 * 1024 / std::max<std::int64_t>(bytes, 1), 1, 64);
}

/// What `most_at_once` says of a layer that carries nothing from one step to the next: any number.
constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();

/// How far apart the channels of so many steps are.
inline std::int64_t channel_pitch(Dtype dtype, std::int64_t n) {
  return dtype == Dtype::f64 ? ferrite::detail::padded<double>(n) : ferrite::detail::padded<float>(n);
}
/// What `by_channel` says of a step that gives such rows and does not care how they stand.
inline Step::Channels channels_of(const StepRows& rows) {
  return rows.batch == 1 && is_float(rows.dtype) ? Step::Channels::yes : Step::Channels::no;
}
/// y += x, n elements in whole packets.
template <class T>
void add(void* y, const T* x, std::int64_t n) {
  const std::array<const void*, 2> in{y, x};
  constexpr std::array<std::ptrdiff_t, 2> run{1, 1};
  ferrite::detail::ops::add->block(ferrite::dtype_of<T>)(in.data(), run.data(), y, n);
}

/// Marks a step that may write its result over an input of equal rows: each number depends only on those in its place.
class InPlace {
 public:
  virtual ~InPlace() = default;

 protected:
  InPlace() = default;
  InPlace(const InPlace&) = default;
  InPlace& operator=(const InPlace&) = default;
};

/// What follows, as events of a profile.
void run_profiled(Step& step, Step::Inputs x, void* y);
using RunSeveral = void (Step::*)(std::int64_t n, Step::Inputs x, void* y);
void run_profiled(Step& step, RunSeveral run, std::int64_t n, Step::Inputs x, void* y);

/// `run` of a layer's step; an Error that it throws names the layer.
[[gnu::always_inline]] inline void run_step(Step& step, Step::Inputs x, void* y) {
  if (ferrite::detail::profiling()) [[unlikely]]
    return run_profiled(step, x, y);
  ferrite::detail::in_layer(step.scope(), [&] { step.run(x, y); });
}

/// `run_rows` and `finish` likewise.
Step::Rows run_rows_of(Step& step, const Step::Rows* rows, Step::Inputs x, void* y);
Step::Rows finish_rows_of(Step& step, Step::Rows rows, std::int64_t i, void* y);

/// `run_several` of it.
[[gnu::always_inline]] inline void run_steps(Step& step, std::int64_t n, Step::Inputs x, void* y) {
  if (ferrite::detail::profiling()) [[unlikely]]
    return run_profiled(step, &Step::run_several, n, x, y);
  step.run_several(n, x, y);
}

/// `run_channels` of it.
inline void run_channel_steps(Step& step, std::int64_t n, Step::Inputs x, void* y) {
  if (ferrite::detail::profiling()) [[unlikely]]
    return run_profiled(step, &Step::run_channels, n, x, y);
  step.run_channels(n, x, y);
}

/// A copy of a layer that stands where the layer stands: errors and costs name the same path.
std::unique_ptr<Layer> copy_in_place_of(const Layer& layer);

/// The same in evaluation mode.
std::unique_ptr<Layer> evaluating_copy(const Layer& layer);

/// While it lives, a layer that would begin from zeros where a stream goes on is refused (Layer::operator()).
class SingleStep {
 public:
  SingleStep() : before_(std::exchange(in_single_step, true)) {}
  ~SingleStep() { in_single_step = before_; }
  SingleStep(const SingleStep&) = delete;
  SingleStep& operator=(const SingleStep&) = delete;

 private:
  bool before_;
};

/// The variables of a copy take the values of the model's.
template <class C>
void take_values(const std::vector<Named<C>>& from, const std::vector<Named<C>>& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i].variable.assign(from[i].variable.peek());
}

/// Memory of a step, kept for its life, zeros at first. A copy has its own.
template <class T>
class StepMemory {
 public:
  /// Of memory that is written before it is read: what is in it at first does not matter.
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

/// A pointwise operation of one value, literals in place of its other operands.
class ElementFunction {
 public:
  /// `literals` has those of all operands but one.
  ElementFunction(const Primitive& op, Dtype dtype, const Attrs& literals = {});
  /// Makes it a part of what a kernel does behind its sums; false: it is not one that they know.
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
  /// n elements from x to y, which may be the same, in whole packets.
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
  std::size_t operand_ = 0;  ///< that is no literal
  std::array<Line, kMost> literals_{};
};

/// Applies a function to each element.
std::unique_ptr<Step> elements_step(const ElementFunction& f, const StepRows& rows);

/// What a step of products has taken over from the steps after it: first a sum, then a function.
struct JoinedSteps {
  bool sums = false;                      ///< whether a last input is added
  std::optional<ElementFunction> then{};  ///< applied to the result

  bool join_sum() { return !then && !std::exchange(sums, true); }
  bool join(const ElementFunction& f) {
    if (then) return false;
    then = f;
    return true;
  }
  /// Both, where the kernel of the products knows nothing of them: y has n elements in whole packets.
  template <class T>
  void apply(Step::Inputs x, T* y, std::int64_t n) const {
    if (sums) add(y, static_cast<const T*>(x[1]), n);
    if (then) (*then)(y, y, n);
  }
};

/// x W + b.
std::unique_ptr<Step> linear_step(const Parameter& weight, const Parameter& bias, std::int64_t batch);

/// Steps in operations, and what they carry.
struct StepSource {
  std::string kind;
  std::vector<StepRows> inputs;
  std::vector<StepState> states;
  /// Computes n successive steps: x [n B, D] of every input -> y [n B, N].
  std::function<StepResult(const Tensors& x, const Tensors& states, std::int64_t n)> steps;
  /// The value that each state begins with; undefined for zeros.
  std::vector<Tensor> initial{};
  /// Computes `initial` again, for the variables' present values.
  std::function<std::vector<Tensor>()> begin{};
  /// Maps a variable that `steps` reads to the layer's own.
  std::function<Variable(const Variable&)> originals{};
  bool single = true;  ///< `steps` takes n = 1 alone
};

/// The step that a layer gives in operations (Layer::step).
StepSource source_of(const Layer& layer, const StepRows& in);

/// The step that is found in a layer's `forward`, traced over time: the steps of the layers that it calls, and programs
/// of what stands between them, with what they read of earlier steps. Throws ValueError that names the layer and
/// operation that look ahead or at all steps, or of which that is not known, and TraceError.
std::unique_ptr<Step> found_step(const Layer& layer, const StepRows& in);

/// Steps in operations as planned programs.
std::unique_ptr<Step> open_step(const StepSource& source);

/// Rows of a table.
std::unique_ptr<Step> embedding_step(const Parameter& weight, std::int64_t batch);

/// The step of a layer whose parameter `name` is computed by a function when the step is made and by `refresh`.
std::unique_ptr<Step> computed_step(const Layer& layer, const std::string& name, std::function<Tensor()> compute,
                                    const StepRows& in);

/// A step that is made of a copy of a layer, and follows the layer.
std::unique_ptr<Step> step_of_copy(const Layer& layer, std::unique_ptr<Layer> copy,
                                   std::function<std::unique_ptr<Step>(const Layer& copy)> make);

/// What makes an output of a window of inputs [B, taps, D]: a program, or code by hand. It allocates nothing.
class WindowFunction {
 public:
  WindowFunction() = default;
  virtual ~WindowFunction() = default;
  WindowFunction& operator=(const WindowFunction&) = delete;
  /// Where the window is written, and the output read.
  virtual std::byte* x() = 0;
  virtual const std::byte* y() const = 0;
  virtual StepRows result() const = 0;
  virtual Step::Runs runs() const { return Step::Runs::kernel; }
  virtual void run() = 0;
  /// How many steps of windows `run_several` takes at most: x [n, B, taps, D] -> y [n, B, N], with the bits of `run`.
  virtual std::int64_t most_at_once() const { return 1; }
  virtual void run_several(std::int64_t) { run(); }
  /// Takes the present values of variables.
  virtual void refresh() = 0;
  virtual std::unique_ptr<WindowFunction> clone() const = 0;

 protected:
  WindowFunction(const WindowFunction&) = default;
};

/// The program of a function of a window, whose variables are the layer's own.
std::unique_ptr<WindowFunction> window_program(const std::string& kind, const Spec& window,
                                               const std::function<Tensor(const Tensor&)>& f,
                                               const std::function<Variable(const Variable&)>& originals = {});

/// The program of `Windowed::over`.
std::unique_ptr<WindowFunction> program_of_window(const Windowed& layer, const StepWindow& window, const StepRows& in);

/// A window of inputs, and what makes an output of it.
std::unique_ptr<Step> window_step(const StepWindow& window, const StepRows& in,
                                  std::unique_ptr<WindowFunction> function);

/// By which variable of a layer one of its copy is replaced: the copy is traced, the stream follows the layer.
std::function<Variable(const Variable&)> originals_of(const Layer& layer, const Layer& copy);

// ---- steps of several values ---------------------------------------------------------------------------

/// Adds values of equal rows, from the first on: ((x + y) + z) + ...
std::unique_ptr<Step> sum_step(const StepRows& rows, std::size_t terms);

/// Concatenates the rows of all values.
std::unique_ptr<Step> concat_step(std::span<const StepRows> rows);

/// Takes `width` numbers of each row, from `first` on.
std::unique_ptr<Step> columns_step(const StepRows& rows, std::int64_t first, std::int64_t width);

/// Multiplies a value by a number.
std::unique_ptr<Step> scale_step(const StepRows& rows, double factor);

/// Multiplies two values, number by number.
std::unique_ptr<Step> product_step(const StepRows& rows);

/// Traces a function of several values once and runs the planned program.
std::unique_ptr<Step> program_of_values(std::span<const StepRows> rows,
                                        const std::function<Tensor(const Tensors&)>& together);

/// Runs a step whose values come at different times: early rows wait for the others, at most `most` of them.
std::unique_ptr<Step> aligned_step(std::unique_ptr<Step> step, std::span<const StepRows> rows, std::int64_t most);

// ---- states --------------------------------------------------------------------------------------------

/// Shows all states of a model's steps, in the order in which they are saved.
void each_state(Step& whole, const Step::StateVisitor& see);

/// Resets all rows. Allocates nothing.
void begin_states(Step& whole);

/// Resets one row. Allocates nothing.
void begin_states(Step& whole, std::int64_t row);

/// Copies all states, in order.
std::vector<Tensor> saved_states(Step& whole);

/// Takes over states that `saved_states` gave. Throws ValueError for another number of them and for counts that no step
/// leaves, ShapeError for other types; nothing has changed then.
void restore_states(Step& whole, std::span<const Tensor> states);

}  // namespace ferrite::nn::detail
