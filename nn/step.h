#pragma once
/// Time steps of single layers on plain rows of numbers, of which streams are made.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/tensor/scope.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn {

namespace detail {
class ElementFunction;

/// A product with a single output: a column [K] and a number to add, or null, of the type of the result.
struct SingleOutput {
  const void* column = nullptr;
  const void* bias = nullptr;
};
}  // namespace detail

/// The type of the rows that go from one layer of a stream to the next at each step: [batch, width], row-major.
struct StepRows {
  std::int64_t batch = 1;
  std::int64_t width = 1;
  Dtype dtype = Dtype::f32;
};

/// The width and dtype of the rows that a layer takes at each step.
struct StepInput {
  std::int64_t width = 0;  ///< values per row; 0: any number
  Dtype dtype = Dtype::f32;
  bool keeps_width = false;  ///< whether the output has the width and dtype of the input
};

/// The times of a layer's output steps (Layer::pace): output u comes with input delay + u stride, counted from 0.
struct Pace {
  std::int64_t stride = 1;  ///< input steps from one output to the next
  std::int64_t delay = 0;   ///< number of the input step that gives the first output
  std::int64_t after = 0;   ///< steps of padding after the last input, which give further outputs
  bool operator==(const Pace&) const = default;

  /// Returns whether each input step gives one output step.
  bool even() const { return stride == 1 && delay == 0; }
  /// Returns the pace of this layer followed by a layer of pace `next`.
  Pace then(const Pace& next) const;
};

/// Describes a state that a layer carries from one step of a stream to the next (Layer::states).
struct StepState {
  std::string name;  ///< the name in error messages, "taps"
  Shape shape;       ///< the shape, including the rows of the batch: [B, 2, D]
  Dtype dtype = Dtype::f32;
  int rows = 0;  ///< the axis of `shape` that is the batch; 0 if the state grows
  /// Maximum number of entries of a state that grows; 0: it does not grow, and each step replaces it by a value of the
  /// same shape. A step sees a growing state as [B, capacity, ...], with zeros where no step has written yet, and
  /// returns its own entry [B, ...], which is appended. A step beyond the capacity throws CapacityError.
  std::int64_t capacity = 0;
  /// The first value, of the state's shape without the axis of rows; undefined: zeros.
  Parameter initial{};

  /// Returns the type that a step sees: [B, capacity, ...] of a state that grows, else [B, ...].
  Spec spec() const;
};

/// The output of one step of a layer, and its states after that step.
struct StepResult {
  Tensor y;          ///< the output [B, N]
  Tensors states{};  ///< in the order of Layer::states; a state that grows is given by this step's entry
};

/// Describes where a state lies in memory between two steps, by which a stream resets, saves and restores it.
struct StateMemory {
  std::string_view name;       ///< the name in error messages, "past"
  Spec spec;                   ///< the type that `Stream::save` gives it
  int rows = 0;                ///< the axis of the batch
  std::byte* first = nullptr;  ///< address of the first element
  Shape parts{};               ///< extents in memory, where an axis may be cut into several; rank 0: those of `spec`
  Shape strides{};             ///< bytes from one element to the next, by part; rank 0: row-major
  double fill = 0;             ///< the first value of all elements
  Tensor initial{};            ///< the first value in place of `fill`, of the same shape without the axis of the batch
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  ///< restored elements of an i64 state lie in 0..most

  /// The axis along which steps append entries; -1: there is none.
  int entries = -1;
  /// Numbers of valid entries, one for each row; the other entries are saved as zeros. Null: all are valid.
  const std::int64_t* made = nullptr;
  /// Start of each row's entries in its ring of `ring` bytes: the first one lies (at + behind) % ring bytes into the
  /// ring. Null: there is no ring.
  const std::int64_t* at = nullptr;
  std::int64_t behind = 0, ring = 0;  ///< in bytes
};

/// Thrown when one output per input is asked of a layer or stream with a stride or a delay, and when values of
/// different paces meet.
class PaceError : public Error {
 public:
  using Error::Error;
};

/// Thrown when a step would exceed the capacity of a state that grows.
class CapacityError : public Error {
 public:
  using Error::Error;
};

/// The names under which errors and profiles report a layer's step.
struct LayerNames {
  LayerNames() = default;
  LayerNames(std::string_view path, std::string_view kind);
  Scope scope{};
  std::string_view steps{};  ///< name of several steps, "gru steps"; lives as long as the process
};

/// One step of a layer on plain rows, of which streams are made. It holds handles to the model's variables, its own
/// copy of their values in the order in which its kernel reads them, and its states. Once made it allocates nothing and
/// takes no lock; a call that throws has changed nothing.
class Step {
 public:
  /// Address of one byte for each row of the batch, 0 if the row has no value at this step; null: no row has.
  using Rows = const std::uint8_t*;

  virtual ~Step() = default;
  /// The rows of each input: an address for each, of row-major elements [B, width]. Most steps have one input.
  using Inputs = const void* const*;
  /// Returns the batch, width and dtype of the rows y that `run` writes.
  virtual StepRows result() const = 0;
  /// Returns at which input steps the step gives outputs.
  virtual Pace pace() const { return {}; }
  /// Computes the rows y of the rows x; both may be read up to 64 bytes past their ends, and y written. The states do
  /// not change until `commit`, so that an error in a later step leaves all of them as they were.
  virtual void run(Inputs x, void* y) = 0;
  /// Makes the states those after the last `run`.
  virtual void commit() {}
  /// Returns whether `run` and `commit` never throw; asked once.
  virtual bool never_throws() const { return false; }
  /// Runs and commits one step; only for steps that never throw.
  virtual void advance(Inputs x, void* y) {
    run(x, y);
    commit();
  }
  /// Returns whether some steps give nothing, or nothing for some rows, so that `run_rows` runs them; asked once.
  virtual bool skips() const { return false; }
  /// Runs a step of which only some rows of each input have an x (null: none). Returns the rows that have a y, or null
  /// if none has; y is undefined in the others. The result stays valid until the next call.
  virtual Rows run_rows(const Rows* rows, Inputs x, void* y) {
    run(x, y);
    return rows[0];
  }
  /// Commits the given rows after `run_rows` or `finish`; the states of other rows stay. A step that overrides `commit`
  /// overrides this, too.
  virtual void commit_rows(Rows) {}
  /// Returns how many calls of `finish` may give outputs after the last input.
  virtual std::int64_t finishing() const { return 0; }
  /// Runs a step, like `run_rows`, on the i-th input that a layer which looks ahead assumes after the last one. i runs
  /// from 0 to `finishing()` - 1, in order; `commit_rows` follows each call.
  virtual Rows finish(Rows, std::int64_t, void*) { return nullptr; }
  /// Returns whether `commit` does anything; asked once.
  virtual bool commits() const { return true; }
  /// Returns the maximum number of steps that `run_several` takes; 1: it must not be called.
  virtual std::int64_t most_at_once() const { return 1; }
  /// Returns how many of the next n steps are certain not to throw, for `run_several`: x [n, B, D], or null where the
  /// inputs are not known yet.
  virtual std::int64_t sure(std::int64_t n, Inputs) const { return n; }
  /// Runs and commits n steps, n at most `most_at_once` and `sure`: x [n, B, D] -> y [n, B, N], with the bits of single
  /// steps.
  virtual void run_several(std::int64_t, Inputs, void*) {}
  /// Whether `run_channels` may be called, and whether it is faster than `run_several`.
  enum class Channels : std::uint8_t { no, yes, faster };
  /// Returns whether this step of a stream can run by `run_channels` on x [D, n], where the n steps of one feature (a
  /// channel) are adjacent, and whether that is faster than `run_several`.
  virtual Channels by_channel() const { return Channels::no; }
  /// Runs and commits n steps of a batch of 1, channel by channel: x [D, n] -> y [N, n]. Channels are padded to whole
  /// packets of the instruction set in use.
  virtual void run_channels(std::int64_t, Inputs, void*) {}
  /// Returns the function of the step if it computes each element by itself, else null.
  virtual const detail::ElementFunction* elements() const { return nullptr; }
  /// Makes the function of the next layer a part of `run`; returns false if the step cannot.
  virtual bool join(const detail::ElementFunction&) { return false; }
  /// Returns whether the step is the sum of two values.
  virtual bool adds_two() const { return false; }
  /// Makes a further value the last term of the sum; returns false if the step cannot.
  virtual bool add_term() { return false; }
  /// Adds a last input to the result from now on; returns false if the step cannot. It may take over the step that
  /// makes that input, if that multiplies a number by factors; then the input is that number.
  virtual bool join_sum(std::unique_ptr<Step>*) { return false; }
  /// Returns the factors, of the type of the result, of a step that only multiplies one number by them, else null.
  virtual const void* factors() const { return nullptr; }
  /// Returns the product of a step that only multiplies a single row by a column of up to kBlockK terms, else null.
  virtual const detail::SingleOutput* single_output() const { return nullptr; }
  /// Takes over a step with a `single_output` that reads this one, as a part of it; returns false if the step cannot.
  virtual bool join_output(std::unique_ptr<Step>&) { return false; }
  /// Copies the model's present values of parameters and buffers into the step; its states stay.
  virtual void refresh() {}
  using StepVisitor = std::function<void(Step&)>;
  /// Visits the steps of which this one is made, in order, or itself if there are none.
  virtual void each(const StepVisitor& see) { see(*this); }
  /// The ways in which a step runs (LayerReport::runs).
  enum class Runs : std::uint8_t { kernel, program, on_tensors };
  /// Returns in which of these ways the step runs.
  virtual Runs runs() const { return Runs::kernel; }
  /// Returns why the step `runs()` on tensors; empty if it does not.
  virtual std::string why() const { return {}; }
  using StateVisitor = std::function<void(const StateMemory&)>;
  /// Visits the states where they lie now, in the order in which they are saved: h before c.
  virtual void states(const StateVisitor&) {}
  /// Tells the step that its states were changed from outside, so that it drops what it derived from them.
  virtual void states_changed() {}
  virtual std::unique_ptr<Step> clone() const = 0;

  /// Returns the layer whose step this is, which errors and profiles name.
  const Scope& scope() const& { return scope_; }
  Scope scope() const&& { return scope_; }
  void set_layer(const LayerNames& names) { scope_ = names.scope, names_ = names.steps; }
  /// Returns the kind of the layer, "gru".
  std::string_view kind() const { return names_.substr(0, names_.size() - std::min<std::size_t>(names_.size(), 6)); }
  /// Returns the name of `run` in a profile, "gru step"; `steps_name` returns that of `run_several`, "gru steps".
  std::string_view step_name() const { return names_.substr(0, names_.size() - (names_.empty() ? 0 : 1)); }
  std::string_view steps_name() const { return names_; }

 protected:
  Step() = default;
  Step(const Step&) = default;
  Step& operator=(const Step&) = default;

 private:
  Scope scope_{};
  std::string_view names_;  ///< LayerNames::steps, "gru steps"; lives as long as the process
};

}  // namespace ferrite::nn
