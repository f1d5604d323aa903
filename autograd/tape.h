#pragma once
/// The tape: records what runs on a thread and computes gradients from it.
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/variable.h"

namespace ferrite {

class Tape;
struct GradOf;
struct GradOptions;

namespace detail {
class TapeRecord;
Tensors lenient_grad(Tape& tape, std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options);
Tensors push_forward(Tape& tape, std::span<const Tensor> of, std::span<const Tensor> wrt,
                     std::span<const Tensor> tangents);
}  // namespace detail

/// One of several tensors that are differentiated together, with its cotangent.
struct GradOf {
  Tensor of;
  Tensor cotangent{};  ///< has the shape of `of`; undefined: 1, if `of` has one element
};

/// Options of Tape::grad: whether the record is kept, and whether gradients are recorded themselves.
struct GradOptions {
  /// Keeps the tape's record, so that `grad` can be called again. By default the values saved for the backward pass are
  /// freed during the walk, and the tape records nothing more.
  bool retain = false;
  /// Records the gradients themselves, so that they can be differentiated again; implies retain.
  bool create_graph = false;
};

/// Records what runs on this thread while it lives, and walks the record backwards to compute gradients.
///
///   Tape tape;
///   const Tensor x = tape.watch(input);          // parameters are watched when they are read
///   const Tensor loss = f(x);
///   const Tensors g = tape.grad(loss, {x});
///
/// A parameter that is assigned while a tape watches it cannot be read again, except through `peek` or in a NewFrame:
/// one name would mean two variables. `grad` without `retain` or `create_graph` ends this: from then on the tape
/// records nothing and parameters are read as if there were no tape, so that a loop may evaluate after a step.
///
/// Only operations that depend on a watched tensor or a parameter are kept. A Tape inside another Tape joins its
/// record: the outer one sees what the inner one computes, including gradients, so gradients of gradients need nothing
/// else.
class Tape {
 public:
  /// Begins to record what this thread runs.
  Tape();
  /// Ends the tape, also on another thread than the one it records; that thread then continues without the tape.
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Makes x a variable of the tape and returns its handle; x itself is not watched. Throws DtypeError unless x is a
  /// float, and TapeError after a `grad` that ended the tape.
  Tensor watch(const Tensor& x);

  /// Returns d(of)/d(x) for every x in `wrt`, each with the shape of x; zeros if `of` does not depend on x. `of` must
  /// hold one element unless a cotangent of its shape is given. Throws TapeError for an `of` that is not on this tape
  /// (it was computed before the tape or after it ended, on another thread, from constants alone, or detached), for an
  /// x that was never watched, and when an earlier call has freed the entries; ShapeError for a wrong cotangent.
  Tensors grad(const Tensor& of, std::span<const Tensor> wrt, GradOptions options = {}, const Tensor& cotangent = {});
  Tensors grad(const Tensor& of, std::initializer_list<Tensor> wrt, GradOptions options = {},
               const Tensor& cotangent = {});
  /// Returns the gradients of several tensors together, that is, of the sum of each times its cotangent, in one walk.
  /// Cotangents of the same tensor are added in the order of the list. Throws ValueError for an empty list, otherwise
  /// as the gradient of one tensor does.
  Tensors grad(std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options = {});
  Tensors grad(std::initializer_list<GradOf> of, std::initializer_list<Tensor> wrt, GradOptions options = {});
  /// Returns the gradients with respect to parameters, undefined for a parameter not read under this tape. Also throws
  /// TapeError for an empty handle.
  Tensors grad(std::span<const GradOf> of, std::span<const Parameter> wrt, GradOptions options = {});
  Tensors grad(std::initializer_list<GradOf> of, const std::vector<Parameter>& wrt, GradOptions options = {});
  Tensors grad(const Tensor& of, std::span<const Parameter> wrt, GradOptions options = {},
               const Tensor& cotangent = {});
  Tensors grad(const Tensor& of, const std::vector<Parameter>& wrt, GradOptions options = {},
               const Tensor& cotangent = {});

  /// Returns the number of operations recorded so far.
  std::size_t size() const;

 private:
  friend Tensors detail::lenient_grad(Tape&, std::span<const GradOf>, std::span<const Tensor>, GradOptions);
  friend Tensors detail::push_forward(Tape&, std::span<const Tensor>, std::span<const Tensor>, std::span<const Tensor>);
  void check_on_tape(std::span<const GradOf> of) const;
  Tensors grad_of_tensors(std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options);
  Tensors walk_back(std::span<const GradOf> of, std::span<const std::uint32_t> slots, GradOptions options);

  std::shared_ptr<detail::TapeRecord> record_;
  bool nested_;
};

/// Returns the function x -> d f(x) / dx for an f that gives one element; grad(grad(f)) is its second derivative. The
/// gradient is zeros if f does not depend on x. Throws ValueError for a null function.
std::function<Tensor(const Tensor&)> grad(std::function<Tensor(const Tensor&)> f);

}  // namespace ferrite
