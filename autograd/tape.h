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

/// One of several tensors that are differentiated together.
struct GradOf {
  Tensor of;
  Tensor cotangent{};  ///< of its shape; undefined: 1, for a tensor of one element
};

struct GradOptions {
  /// Keep the entries, so that `grad` can be called again. Without it the values saved for the backward pass are
  /// freed as it walks, and the tape records nothing more.
  bool retain = false;
  /// Record the gradients themselves, so that they can be differentiated again; implies retain.
  bool create_graph = false;
};

/// A record of what runs on this thread while it lives, read backwards for gradients.
///
///   Tape tape;
///   const Tensor x = tape.watch(input);          // parameters are watched by being read
///   const Tensor loss = f(x);
///   const Tensors g = tape.grad(loss, {x});
///
/// A parameter that is assigned while a tape watches it cannot be read again, except through `peek` or in a NewFrame:
/// there would be two variables of one name. `grad` without `retain` or `create_graph` ends that: from then on the tape
/// records nothing and parameters are read as if there were none, so that a loop may evaluate after a step.
///
/// Only operations that depend on a watched tensor or a parameter are kept. A Tape inside a Tape joins its
/// record: what it computes, gradients included, is seen outside, so gradients of gradients need no more words.
class Tape {
 public:
  Tape();
  /// May end on another thread than it began on; this one then goes on without it.
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Makes x a variable. The returned handle is the variable, not x. Throws DtypeError unless x is a float, and
  /// TapeError after a `grad` that ended the tape.
  Tensor watch(const Tensor& x);

  /// d(of)/d(x) for every x, each of x's shape. `of` must hold one element unless a cotangent of its shape is
  /// given. An x that `of` does not depend on gives zeros. Throws TapeError for an `of` that is not on this tape (it
  /// was computed before the tape or after it ended, on another thread, from constants alone, or detached), for an x
  /// that was never watched, and when the entries have been freed by an earlier call; ShapeError for a wrong cotangent.
  Tensors grad(const Tensor& of, std::span<const Tensor> wrt, GradOptions options = {}, const Tensor& cotangent = {});
  Tensors grad(const Tensor& of, std::initializer_list<Tensor> wrt, GradOptions options = {},
               const Tensor& cotangent = {});
  /// The gradient of several tensors together: of the sum of each times its cotangent, in one walk. Cotangents that
  /// meet in one tensor are added in the order of the list. Throws ValueError for an empty list, else as above.
  Tensors grad(std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options = {});
  Tensors grad(std::initializer_list<GradOf> of, std::initializer_list<Tensor> wrt, GradOptions options = {});
  /// The same for parameters; the entry of a parameter not read under this tape is undefined. Throws TapeError for an
  /// empty handle, too.
  Tensors grad(std::span<const GradOf> of, std::span<const Parameter> wrt, GradOptions options = {});
  Tensors grad(std::initializer_list<GradOf> of, const std::vector<Parameter>& wrt, GradOptions options = {});
  Tensors grad(const Tensor& of, std::span<const Parameter> wrt, GradOptions options = {},
               const Tensor& cotangent = {});
  Tensors grad(const Tensor& of, const std::vector<Parameter>& wrt, GradOptions options = {},
               const Tensor& cotangent = {});

  /// Number of applications recorded so far.
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

/// The function x -> d f(x) / dx for an f that gives one element: grad(grad(f)) is its second derivative. Zeros where f
/// does not depend on x. Throws ValueError for a null function.
std::function<Tensor(const Tensor&)> grad(std::function<Tensor(const Tensor&)> f);

}  // namespace ferrite
