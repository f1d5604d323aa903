#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>

#include "ferrite/tensor/cell.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {

namespace detail {
class TapeRecord;
}

struct GradOptions {
  /// Keep the entries, so that `grad` can be called again. Without it the values saved for the backward pass are
  /// freed as it walks.
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
/// Only operations that depend on a watched tensor or a parameter are kept. A Tape inside a Tape joins its
/// record: what it computes, gradients included, is seen outside, so gradients of gradients need no more words.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Makes x a variable. The returned handle is the variable, not x. Throws DtypeError unless x is a float.
  Tensor watch(const Tensor& x);

  /// d(of)/d(x) for every x, each of x's shape. `of` must hold one element unless a cotangent of its shape is
  /// given. An x that `of` does not depend on gives zeros. Throws TapeError for an x that was never watched, or
  /// when the entries have been freed by an earlier call; ShapeError for a wrong cotangent.
  Tensors grad(const Tensor& of, std::span<const Tensor> wrt, GradOptions options = {}, const Tensor& cotangent = {});
  Tensors grad(const Tensor& of, std::initializer_list<Tensor> wrt, GradOptions options = {},
               const Tensor& cotangent = {});
  /// The same for parameters; the entry of a parameter not read under this tape is undefined.
  Tensors grad(const Tensor& of, std::span<const Parameter> wrt, GradOptions options = {},
               const Tensor& cotangent = {});
  Tensors grad(const Tensor& of, const std::vector<Parameter>& wrt, GradOptions options = {},
               const Tensor& cotangent = {});

  /// Number of applications recorded so far.
  std::size_t size() const;

 private:
  std::shared_ptr<detail::TapeRecord> record_;
  bool nested_;
};

/// The function x -> d f(x) / dx for an f that gives one element: grad(grad(f)) is its second derivative.
std::function<Tensor(const Tensor&)> grad(std::function<Tensor(const Tensor&)> f);

}  // namespace ferrite
