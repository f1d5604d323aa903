#pragma once
/// What the operations `scan` and `scan_checkpointed` share: operands, shape rule, wanted gradients.
#include "ferrite/compile/scan.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/tracer.h"

namespace ferrite::detail {

/// A step, traced on tensors of some types, and what it refers to.
struct TracedStep {
  Graph graph;
  std::vector<Tracer::Capture> captures;
  std::vector<TracedFlag> flags;
  std::size_t ys = 0;
};
/// Throws what the body throws, and ShapeError where it gives another number of carries.
TracedStep trace_step(const ScanBodyFunction& f, std::span<const Spec> carries, std::span<const Spec> xs);

/// Operands of an application: no allocations beyond the pool of tensors.
class ScanOperands {
 public:
  void add(const Tensor& t) { tensors_.push_back(t); }
  Tensors apply(const Primitive& op, const Attrs& attrs) const { return op.apply(OperandList(tensors_), attrs); }

 private:
  InlineVector<Tensor, 16> tensors_;
};

/// The types of a scan's results. Throws ShapeError, ValueError for operands that are not those of the body.
Specs infer_scan(Inputs in, const Attrs& attrs);

/// Which gradients of a body are wanted.
ScanBack::Request request_of(const Vjp& v, const ScanSignature& s, std::size_t ys);
/// Gradients in the order of a backward pass, by input of the body.
Tensors by_input(const Vjp& v, const ScanSignature& s, const ScanBack::Request& request, const Tensors& grads);

}  // namespace ferrite::detail
