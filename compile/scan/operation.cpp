/// The scan as an operation: its types, its evaluation, its gradient.
#include "ferrite/compile/scan/detail/operation.h"

#include "ferrite/compile/scan/detail/run.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::detail {

std::int64_t scan_multiply_adds(std::span<const Spec>, std::span<const Spec>, const Attrs& attrs) {
  return attrs.as<ScanAttrs>("scan").steps * cost_of(ScanBody::of(attrs).graph()).multiply_adds;
}

Specs infer_scan(Inputs in, const Attrs& attrs) {
  const ScanBody& body = ScanBody::of(attrs);
  const ScanSignature& s = body.signature();
  const std::int64_t steps = attrs.as<ScanAttrs>("scan").steps;
  if (steps < 0) throw ValueError("scan: the number of steps must not be negative, got " + std::to_string(steps));
  if (in.size() != body.graph().inputs.size())
    throw ValueError("scan: the body takes " + std::to_string(body.graph().inputs.size()) + " operands, got " +
                     std::to_string(in.size()));
  for (std::size_t i = 0; i < in.size(); ++i) {
    Spec wanted = body.input(i);
    const bool x = i >= s.carries && i < s.carries + s.xs;
    if (x) wanted.shape = with_steps(steps, wanted.shape);
    if (in[i].spec() != wanted)
      throw ShapeError("scan: operand " + std::to_string(i) + " must be " + wanted.str() + ", got " +
                       in[i].spec().str());
  }
  Specs out;
  for (std::size_t k = 0; k < body.graph().outputs.size(); ++k) {
    Spec spec = body.output(k);
    if (k >= s.carries + s.sums) spec.shape = with_steps(steps, spec.shape);
    out.push_back(spec);
  }
  return out;
}

ScanBack::Request request_of(const Vjp& v, const ScanSignature& s, std::size_t ys) {
  ScanBack::Request request;
  for (std::size_t k = 0; k < ys; ++k) request.ys.push_back(v.grad(s.carries + s.sums + k).defined());
  for (std::size_t i = 0; i < v.inputs(); ++i) request.inputs.push_back(i < s.carries || v.wants(i));
  return request;
}

Tensors by_input(const Vjp& v, const ScanSignature& s, const ScanBack::Request& request, const Tensors& grads) {
  Tensors all(v.inputs());
  std::size_t next = 0;
  const auto take = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      if (is_float(v.in_spec(i).dtype) && request.inputs[i]) all[i] = grads[next++];
  };
  take(0, s.carries);
  take(s.carries + s.xs, v.inputs());
  take(s.carries, s.carries + s.xs);
  return all;
}

namespace {

/// A scan as one operation, whatever the number of its steps is.
struct Scan {
  static Specs infer(const Primitive&, Inputs in, const Attrs& attrs) { return infer_scan(in, attrs); }

  static void eval(Inputs in, std::span<Tensor> out, const Attrs& attrs) {
    const auto a = attrs.as<ScanAttrs>("scan");
    ScanBody::of(attrs).program().run(in, out, a.steps, a.reverse);
  }

  static Tensors vjp(const Vjp& v) {
    const ScanBody& body = ScanBody::of(v.attrs);
    const ScanSignature& s = body.signature();
    const std::size_t first_y = s.carries + s.sums;
    const ScanBack* back = body.back();
    std::size_t ys = body.ys();
    InlineVector<Tensor, 16> saved;
    if (back) {
      const std::size_t own = ys - back->saved();
      bool arrives = false;  // at what was saved: then the saved values are results like others
      for (std::size_t k = own; k < ys; ++k) arrives |= v.grad(first_y + k).defined();
      if (arrives) {
        back = nullptr;
      } else {
        for (std::size_t k = own; k < ys; ++k) saved.push_back(v.out(first_y + k));
        ys = own;
      }
    }
    if (!back) {
      const std::shared_ptr<const ScanBody> saving = body.saving();
      ScanOperands operands;
      for (std::size_t i = 0; i < v.inputs(); ++i) operands.add(v.in(i));
      const Tensors all = apply(saving, v, operands, false);
      saved.clear();
      saved.append(all.begin() + body.graph().outputs.size(), all.end());
      back = saving->back();
    }
    return pull_back(*back, v, s, ys, saved);
  }

 private:
  static Tensors apply(const std::shared_ptr<const ScanBody>& body, const Vjp& v, const ScanOperands& operands,
                       bool back) {
    const auto a = v.attrs.as<ScanAttrs>("scan");
    return operands.apply(scan_primitive(), ScanBody::attrs_of(body, a.steps, a.reverse != back));
  }

  static Tensors pull_back(const ScanBack& back, const Vjp& v, const ScanSignature& s, std::size_t ys,
                           const InlineVector<Tensor, 16>& saved) {
    const ScanBack::Request request = request_of(v, s, ys);
    const ScanBack::Pass& pass = back.pass(request);
    ScanOperands operands;
    for (std::size_t k = 0; k < s.carries; ++k)
      if (is_float(v.in_spec(k).dtype)) operands.add(v.grad_or_zeros(k));
    for (const std::size_t k : pass.saved) operands.add(saved[k]);
    for (const std::size_t k : pass.xs) operands.add(v.in(s.carries + k));
    for (const std::size_t k : pass.ys) operands.add(v.grad(s.carries + s.sums + k));
    for (const std::size_t k : pass.captures) operands.add(v.in(s.carries + s.xs + k));
    for (const std::size_t k : pass.sums) operands.add(v.grad_or_zeros(s.carries + k));
    return by_input(v, s, request, apply(pass.body, v, operands, true));
  }
};

constexpr Primitive kScan = {.name = "scan",
                             .summary = "a body applied step by step, its carries going from each to the next",
                             .arity = -1,
                             .infer = Scan::infer,
                             .eval = Scan::eval,
                             .vjp = Scan::vjp,
                             .time = TimeRule::scan,
                             .reads = reads_all,
                             .stablehlo = "while",
                             .multiply_adds = scan_multiply_adds,
                             .attributes = &attr_fields<ScanAttrs>};

}  // namespace

const Primitive& scan_primitive() { return kScan; }

}  // namespace ferrite::detail
