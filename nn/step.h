#pragma once
/// One layer of a stream: a time step on plain rows of floats.
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

/// A product of one output: a column [K] and a number that is added, or null, of the type of the result.
struct SingleOutput {
  const void* column = nullptr;
  const void* bias = nullptr;
};
}  // namespace detail

/// Rows that go from one layer of a stream to the next: [batch, width], row-major.
struct StepRows {
  std::int64_t batch = 1;
  std::int64_t width = 1;
  Dtype dtype = Dtype::f32;
};

/// What a layer takes at each step: so many values a row; 0: any number, and where `keeps_width`, as many come out.
struct StepInput {
  std::int64_t width = 0;
  Dtype dtype = Dtype::f32;
  bool keeps_width = false;
};

/// When a layer gives its output steps (Layer::pace): output u with input delay + u stride, counted from 0.
struct Pace {
  std::int64_t stride = 1;
  std::int64_t delay = 0;
  std::int64_t after = 0;  ///< steps of padding behind the last input, of which further outputs are made
  bool operator==(const Pace&) const = default;

  /// Whether there is one step of output for each of the input.
  bool even() const { return stride == 1 && delay == 0; }
  /// Of a layer behind this one, seen from the inputs of this one.
  Pace then(const Pace& next) const;
};

/// A state that a layer carries from one step of a stream to the next (Layer::states).
struct StepState {
  std::string name;  ///< "taps": what errors call it
  Shape shape;       ///< with the rows of the batch: [B, 2, D]
  Dtype dtype = Dtype::f32;
  int rows = 0;  ///< the axis of the batch; 0 where the state grows
  /// 0: the step gives the next value, of the same shape. Above 0 the state grows: it holds what up to so many steps
  /// gave. The step sees [B, capacity, ...], zeros where no step has written yet, and gives its own entry [B, ...],
  /// which is appended. A step beyond the capacity throws CapacityError.
  std::int64_t capacity = 0;
  /// What it begins with, of its shape but for the axis of rows. Undefined: zeros.
  Parameter initial{};

  /// As a step sees it.
  Spec spec() const;
};

/// What one step of a layer gives.
struct StepResult {
  Tensor y;          ///< [B, N]
  Tensors states{};  ///< after the step, in the order of Layer::states; of one that grows the entry of this step
};

/// Where a state lies in memory between two steps: all that a stream needs to reset, save and restore it.
struct StateMemory {
  std::string_view name;       ///< "past": what errors call it
  Spec spec;                   ///< as `Stream::save` gives it
  int rows = 0;                ///< the axis of the batch
  std::byte* first = nullptr;  ///< the first element
  Shape parts{};               ///< the extents with axes cut as memory has them; of rank 0: those of `spec`
  Shape strides{};             ///< bytes from one element to the next, by part; of rank 0: row-major
  double fill = 0;             ///< what it begins with
  Tensor initial{};            ///< or this, of the same shape but for the axis of the batch
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  ///< of counts: they lie in 0..most, where that is less

  /// The axis of entries that steps leave, one behind the other; -1: there is none.
  int entries = -1;
  /// By row: so many of them mean something. The others are saved as zeros. Null: all do.
  const std::int64_t* made = nullptr;
  /// By row: where the first entry lies in a ring of `ring` bytes, counted from `first` and `behind`. Null: there is no
  /// ring.
  const std::int64_t* at = nullptr;
  std::int64_t behind = 0, ring = 0;
};

/// A stream that gives fewer steps than it takes is asked for one of each.
class PaceError : public Error {
 public:
  using Error::Error;
};

/// A state of a stream that grows is full.
class CapacityError : public Error {
 public:
  using Error::Error;
};

/// How errors and profiles name a layer's step.
struct LayerNames {
  LayerNames() = default;
  LayerNames(std::string_view path, std::string_view kind);
  Scope scope{};
  std::string_view steps{};  ///< "gru steps"; lives as long as the process
};

/// One step of a layer on plain rows: what a stream is made of. It holds handles to the model's variables, its own copy
/// of their values in the order in which its kernel reads them, and its states. Once made it allocates nothing and
/// takes no lock; what throws has changed nothing.
class Step {
 public:
  /// Which rows of a batch have a value: a byte for each, 0 where there is none.
  using Rows = const std::uint8_t*;

  virtual ~Step() = default;
  /// The rows of each input: one address of a step that takes one.
  using Inputs = const void* const*;
  /// The rows that `run` gives.
  virtual StepRows result() const = 0;
  /// When it gives them.
  virtual Pace pace() const { return {}; }
  /// Rows in, rows out; both may be read up to 64 bytes past their ends, and y written. The states stay what
  /// they are until `commit`, so that what throws behind it has changed none of them.
  virtual void run(Inputs x, void* y) = 0;
  /// The states become those after the last `run`.
  virtual void commit() {}
  /// Whether `run` and `commit` never throw. Asked once.
  virtual bool never_throws() const { return false; }
  /// `run` and `commit` in one; only of a step that never throws.
  virtual void advance(Inputs x, void* y) {
    run(x, y);
    commit();
  }
  /// Whether some steps give nothing, or nothing for some rows: such a step is run by `run_rows`. Asked once.
  virtual bool skips() const { return false; }
  /// `run` where only these rows of each input have an x, null where none has. Gives those that have a y, null where
  /// there is none; the others' mean nothing. What it points to stays until the next call.
  virtual Rows run_rows(const Rows* rows, Inputs x, void* y) {
    run(x, y);
    return rows[0];
  }
  /// `commit` after `run_rows` or `finish`: the states of other rows stay. Whoever overrides `commit` overrides this,
  /// too.
  virtual void commit_rows(Rows) {}
  /// How many calls of `finish` may give something behind the last input.
  virtual std::int64_t finishing() const { return 0; }
  /// As `run_rows`, in place of an input what a layer that looks ahead takes behind the last one: i of 0 to
  /// `finishing()` - 1, in order, each followed by `commit_rows`.
  virtual Rows finish(Rows, std::int64_t, void*) { return nullptr; }
  /// Whether `commit` does anything: asked once.
  virtual bool commits() const { return true; }
  /// How many steps `run_several` takes at most; 1: it is not to be called.
  virtual std::int64_t most_at_once() const { return 1; }
  /// How many of the next n steps surely do not throw, of a step that takes several: x [n, B, D], or null where the
  /// inputs are not known yet.
  virtual std::int64_t sure(std::int64_t n, Inputs) const { return n; }
  /// n steps with their commits, n at most `most_at_once` and `sure`: x [n, B, D] -> y [n, B, N], with the bits of
  /// single steps.
  virtual void run_several(std::int64_t, Inputs, void*) {}
  /// How a step takes several at once of a single row whose values stand channel by channel.
  enum class Channels : std::uint8_t { no, yes, faster };
  virtual Channels by_channel() const { return Channels::no; }
  /// `run_several` of such values: x [D, n] -> y [N, n]. Rows are whole packets of the instruction set in use.
  virtual void run_channels(std::int64_t, Inputs, void*) {}
  /// The function that the step is, where it is one of each element.
  virtual const detail::ElementFunction* elements() const { return nullptr; }
  /// Makes the function of the next layer a part of `run`; false where it does not.
  virtual bool join(const detail::ElementFunction&) { return false; }
  /// Whether the step is the sum of two values.
  virtual bool adds_two() const { return false; }
  /// Makes a further value the last term of the sum; false where it does not.
  virtual bool add_term() { return false; }
  /// Adds a last input to the result from now on; false where the step cannot. It may take over `of`, the step that
  /// makes that input, where it multiplies a number by factors: the input is that number then.
  virtual bool join_sum(std::unique_ptr<Step>*) { return false; }
  /// Of a step that only multiplies one number: its factors, of the type of its result. Else null.
  virtual const void* factors() const { return nullptr; }
  /// Of a step that only multiplies a single row by a column, up to kBlockK terms. Else null.
  virtual const detail::SingleOutput* single_output() const { return nullptr; }
  /// Makes a step with a `single_output` that reads this one a part of it, and takes it over; false where it does not.
  virtual bool join_output(std::unique_ptr<Step>&) { return false; }
  /// Takes the variables' present values; the states stay.
  virtual void refresh() {}
  /// Shows the steps that this one is made of, in order: itself, where there are no others.
  using StepVisitor = std::function<void(Step&)>;
  virtual void each(const StepVisitor& see) { see(*this); }
  /// What a step is made of (LayerReport::runs).
  enum class Runs : std::uint8_t { kernel, program, on_tensors };
  virtual Runs runs() const { return Runs::kernel; }
  /// Why a layer runs on tensors; empty for others.
  virtual std::string why() const { return {}; }
  using StateVisitor = std::function<void(const StateMemory&)>;
  /// Shows the states where they lie now, in the order in which they are saved: h before c.
  virtual void states(const StateVisitor&) {}
  /// Tells the step that its states were changed from outside, so that it drops what it derived from them.
  virtual void states_changed() {}
  virtual std::unique_ptr<Step> clone() const = 0;

  /// The layer whose step it is: errors and profiles name it.
  const Scope& scope() const& { return scope_; }
  Scope scope() const&& { return scope_; }
  void set_layer(const LayerNames& names) { scope_ = names.scope, names_ = names.steps; }
  /// The kind of the layer, "gru".
  std::string_view kind() const { return names_.substr(0, names_.size() - std::min<std::size_t>(names_.size(), 6)); }
  /// What a profile calls `run` and `run_several`: "gru step" and "gru steps".
  std::string_view step_name() const { return names_.substr(0, names_.size() - (names_.empty() ? 0 : 1)); }
  std::string_view steps_name() const { return names_; }

 protected:
  Step() = default;
  Step(const Step&) = default;
  Step& operator=(const Step&) = default;

 private:
  Scope scope_{};
  std::string_view names_;  ///< lives as long as the process
};

}  // namespace ferrite::nn
