#pragma once
/// Recorders, which observe what runs on a thread, and the frames that hold them.
#include <atomic>
#include <memory>
#include <span>

#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/profiled.h"
#include "ferrite/tensor/scope.h"

namespace ferrite {

class Variable;

/// An observer of everything that runs on this thread: a Tape or a Tracer. It sees applications through `record`, and
/// the variables that programs read and write, so that it can separate the state of a training step (parameters,
/// optimiser state, random counters) from its constants.
class Recorder {
 public:
  virtual ~Recorder() = default;

  /// Called after an application of an operation. The recorder may mark the results in `out` as its own (Tensor::mark).
  virtual void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) = 0;
  /// Called when a variable is read: `value` may be replaced (a tracer returns an abstract tensor) or marked (a tape).
  virtual void read(const Variable& variable, Tensor& value) = 0;
  /// Called when a variable is assigned. Returns true if the recorder keeps the assignment and the variable must not
  /// change now.
  virtual bool write(const Variable& variable, const Tensor& value) = 0;
  /// Called when a switch outside the tensors is read (whether a module trains): what runs may depend on it.
  virtual void flag(const std::shared_ptr<const std::atomic<bool>>&, bool) {}
  /// Returns whether this recorder knows a tensor as one that gradients may be asked for.
  virtual bool holds(const Tensor&) const { return false; }
  /// Returns whether applications are only recorded, not computed: results are abstract.
  virtual bool tracing() const { return false; }
  /// Returns whether what is recorded may be differentiated later: gradients are then made of operations that have
  /// gradients themselves.
  virtual bool differentiates() const { return false; }
  /// Returns whether composites are recorded as one application each, not as the operations that they are made of.
  virtual bool keeps_composites() const { return false; }
};

namespace detail {

/// The recorders that see what runs on this thread. Frames form a stack: an inner frame hides the outer ones.
struct Frame {
  InlineVector<Recorder*, 4> recorders;
  bool tracing = false;
  bool differentiated = false;
  bool keeps_composites = false;
  bool cut = false;  ///< nothing made here is part of a gradient
  Scope scope{};     ///< the layer that runs; known only while something is traced or profiled
  Frame* outer = nullptr;
};

/// Returns the innermost frame of this thread.
Frame& frame();

/// Returns whether something needs more than the results of what runs in this frame: a tracer records it instead, or a
/// profile needs its time and layer. For the library only.
[[gnu::always_inline]] inline bool observed(const Frame& f) {
  return __builtin_expect(static_cast<long>(f.tracing) | static_cast<long>(profiling()), 0) != 0;
}
/// Returns whether the innermost frame of this thread is traced or profiled.
bool observed();

/// Names the layer to which the operations that run on this thread belong, while it lives; set in the innermost Frame.
/// A tracer writes the layer to the nodes of its graph, a profile counts kernels by it, and a tape runs the gradient of
/// an operation in its layer.
class Scoped {
 public:
  explicit Scoped(Scope scope) : frame_(&frame()), before_(frame_->scope) { frame_->scope = scope; }
  ~Scoped() { frame_->scope = before_; }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

  /// Switches to another layer.
  void enter(Scope scope) { frame_->scope = scope; }
  /// Returns the layer that ran before.
  Scope before() const { return before_; }

 private:
  Frame* frame_;
  Scope before_;
};

/// Returns the value of a switch and reports it to the recorders.
bool read_flag(const std::shared_ptr<std::atomic<bool>>& flag);

}  // namespace detail

/// Puts a frame without recorders on the stack of this thread while it lives: nothing outside records what runs inside.
/// Tracers and gradient checks use it; other libraries call it "no grad".
class NewFrame {
 public:
  NewFrame();
  /// The same, but the frame holds this one recorder.
  explicit NewFrame(Recorder& only);
  ~NewFrame();
  NewFrame(const NewFrame&) = delete;
  NewFrame& operator=(const NewFrame&) = delete;

 protected:
  detail::Frame frame_;
};

/// Puts a frame on the stack while it lives, with those recorders of the innermost one that do not differentiate: what
/// runs inside is traced, but is part of no gradient.
class NoTapes : private NewFrame {
 public:
  NoTapes();
};

/// Adds a recorder to the innermost frame while this guard lives. Bound to its thread.
class Recording {
 public:
  explicit Recording(Recorder& recorder);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Recorder* recorder_;
};

/// Removes a recorder from the innermost frame while this guard lives; the others continue.
class Paused {
 public:
  explicit Paused(Recorder& recorder);
  ~Paused();
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;

 private:
  Recorder* recorder_;
  detail::Frame* frame_;
  bool was_there_;
};

}  // namespace ferrite
