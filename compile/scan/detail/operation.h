#pragma once
/// The parts that `scan` and `scan_checkpointed` share: operands, shape rule, wanted gradients.
#include "ferrite/compile/scan.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/tracer.h"

namespace ferrite::detail {

/// A scan's step, traced on tensors of some types, and the captures that it refers to.
struct TracedStep {
  Graph graph;
  std::vector<Tracer::Capture> captures;
  std::vector<TracedFlag> flags;
  std::size_t ys = 0;
};
/// Traces a step. Throws what the body throws, and ShapeError when it returns a wrong number of carries.
TracedStep trace_step(const ScanBodyFunction& f, std::span<const Spec> carries, std::span<const Spec> xs);

/// The operands of an application: allocates nothing but from the pool of tensors.
class ScanOperands {
 public:
  void add(const Tensor& t) { tensors_.push_back(t); }
  Tensors apply(const Primitive& op, const Attrs& attrs) const { return op.apply(OperandList(tensors_), attrs); }

 private:
  InlineVector<Tensor, 16> tensors_;
};

/// Returns the types of a scan's results. Throws ShapeError or ValueError for operands that do not fit the body.
Specs infer_scan(Inputs in, const Attrs& attrs);

/// Returns the gradients of a body that a vjp asks for, and the cotangents that arrive.
ScanBack::Request request_of(const Vjp& v, const ScanSignature& s, std::size_t ys);
/// Returns `grads`, the gradients in the order of a backward pass, by input of the body.
Tensors by_input(const Vjp& v, const ScanSignature& s, const ScanBack::Request& request, const Tensors& grads);

}  // namespace ferrite::detail
