/// Checkpointed scans: the backward pass recomputes the steps between saved carries, one segment at a time.
#include <algorithm>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/compile/scan/detail/operation.h"
#include "ferrite/compile/scan/detail/run.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {
namespace {

/// A segment: steps between two kept carries.
struct Segment {
  std::int64_t number, first, steps;  ///< first: in the order of the stacks
};

std::int64_t segments_of(std::int64_t steps, std::int64_t every) { return (steps + every - 1) / every; }

Segment segment(std::int64_t number, std::int64_t steps, std::int64_t every, bool reverse) {
  const std::int64_t begin = number * every, n = std::min(every, steps - begin);
  return {number, reverse ? steps - begin - n : begin, n};
}

/// Returns the steps of a segment in a stack.
Tensor part(const Tensor& stack, const Segment& s) {
  Shape shape = stack.shape();
  shape[0] = s.steps;
  return stack.view(shape, stack.strides(), s.first * stack.strides()[0]);
}
/// Returns one step of a stack.
Tensor slot(const Tensor& stack, std::int64_t i) {
  return stack.view(without_steps(stack.shape()), without_steps(stack.strides()), i * stack.strides()[0]);
}

void copy_into(Tensor to, const Tensor& from) { copy_to(Writer::raw(to), from); }

/// An application of a checkpointed scan: its constants, body and segments.
struct Call : CheckpointedScanAttrs {
  explicit Call(const Attrs& attrs)
      : CheckpointedScanAttrs(attrs.as<CheckpointedScanAttrs>("scan")),
        body(ScanBody::of(attrs)),
        s(body.signature()) {}
  const ScanBody& body;
  const ScanSignature& s;

  std::int64_t segments() const { return segments_of(steps, every); }
  Segment at(std::int64_t number) const { return segment(number, steps, every, reverse); }
};

/// The operands and results with which the body's program runs over a segment.
class Run {
 public:
  void in(const Tensor& t) { in_.push_back(t); }
  void out(const Tensor& t) { out_.push_back(t); }
  void run(const ScanProgram& p, std::int64_t steps, bool reverse, ScanSums& sums) {
    p.run(OperandList(in_), {out_.data(), out_.size()}, steps, reverse, sums);
  }

 private:
  InlineVector<Tensor, 16> in_, out_;
};

// ---- forward -------------------------------------------------------------------------------------------

struct Checkpointed {
  static Specs infer(const Primitive&, Inputs in, const Attrs& attrs) {
    const Call c(attrs);
    if (c.every < 1) throw ValueError("scan: checkpoint_every must be positive, got " + std::to_string(c.every));
    Specs out = infer_scan(in, attrs);
    for (std::size_t k = 0; k < c.s.carries; ++k)
      out.push_back({with_steps(c.segments(), c.body.input(k).shape), c.body.input(k).dtype});
    return out;
  }

  static void eval(Inputs in, std::span<Tensor> out, const Attrs& attrs) {
    const Call c(attrs);
    const std::size_t ys = c.body.ys(), carries = c.s.carries;
    const ScanProgram& p = c.body.program();
    ScanSums sums(p.parts().terms);
    Tensors carry;
    for (std::size_t k = 0; k < carries; ++k) carry.push_back(dense(in[k]));
    for (std::int64_t j = 0; j < c.segments(); ++j) {
      const Segment s = c.at(j);
      Run run;
      for (std::size_t k = 0; k < carries; ++k) {
        const Tensor kept = slot(out[carries + ys + k], j);
        copy_into(kept, carry[k]);
        run.in(kept);
      }
      for (std::size_t i = carries; i < in.size(); ++i) run.in(i < carries + c.s.xs ? part(in[i], s) : in[i]);
      for (std::size_t k = 0; k < carries; ++k) run.out(out[k]);
      for (std::size_t k = 0; k < ys; ++k) run.out(part(out[carries + k], s));
      run.run(p, s.steps, c.reverse, sums);
      for (std::size_t k = 0; k < carries; ++k) carry[k] = out[k];
    }
    if (c.steps == 0)
      for (std::size_t k = 0; k < carries; ++k) copy_into(out[k], carry[k]);
  }

  static Tensors vjp(const Vjp& v);
  static Tensors reference(Inputs in, const Attrs& attrs) {
    const Call c(attrs);
    const auto body = std::static_pointer_cast<const ScanBody>(attrs.body);
    return scan_primitive().apply(in, ScanBody::attrs_of(body, c.steps, c.reverse));
  }
};

// ---- backward ------------------------------------------------------------------------------------------

/// The operation of the gradient: kept carries, xs, captures, cotangents of the float carries, then of the ys that have
/// one, the first carries -> gradients as a backward pass gives them. The first carries are there for the gradient of
/// this gradient. Its constants say which gradients are wanted (`inputs`) and which cotangents arrive (`ys`).
struct CheckpointedGrad {
  static Positions positions(const ScanBack::Request::Flags& flags) {
    std::vector<std::int64_t> list;
    for (std::size_t i = 0; i < flags.size(); ++i)
      if (flags[i]) list.push_back(static_cast<std::int64_t>(i));
    return Positions::of(list);
  }
  static ScanBack::Request::Flags flags(const Positions& positions, std::string_view name, std::size_t count) {
    ScanBack::Request::Flags f;
    for (std::size_t i = 0; i < count; ++i) f.push_back(false);
    std::int64_t before = -1;
    for (const std::int64_t at : positions.list()) {
      if (at <= before || at >= static_cast<std::int64_t>(count))
        throw TraceError("scan_checkpointed_grad: '" + std::string(name) + "' must be ascending positions below " +
                         std::to_string(count) + ", got " + positions.str());
      f[static_cast<std::size_t>(at)] = true;
      before = at;
    }
    return f;
  }
  static ScanBack::Request request_of(const Attrs& attrs, const ScanBody& body) {
    const auto a = attrs.as<CheckpointedGradAttrs>("scan_checkpointed_grad");
    return {flags(a.ys, "ys", body.ys()), flags(a.inputs, "inputs", body.graph().inputs.size())};
  }

  static Specs infer(const Primitive&, Inputs in, const Attrs& attrs) {
    const Call c(attrs);
    const ScanBack::Pass& pass = c.body.saving()->back()->pass(request_of(attrs, c.body));
    const ScanSignature& s = pass.body->signature();
    if (c.every < 1) throw ValueError("scan: checkpoint_every must be positive, got " + std::to_string(c.every));
    check_operands(in, c, pass.request);
    Specs out;
    for (std::size_t k = 0; k < pass.body->graph().outputs.size(); ++k) {
      Spec spec = pass.body->output(k);
      if (k >= s.carries + s.sums) spec.shape = with_steps(c.steps, spec.shape);
      out.push_back(spec);
    }
    return out;
  }

  static void eval(Inputs in, std::span<Tensor> out, const Attrs& attrs) { CheckpointedGrad(in, out, attrs).run(); }

  /// Computes the gradient from the tape of the plain scan, which reads no kept carry.
  static Tensors reference(Inputs in, const Attrs& attrs) {
    const Call c(attrs);
    const ScanBack::Request request = request_of(attrs, c.body);
    const std::size_t inputs = request.inputs.size(), first = in.size() - c.s.carries;
    Tape tape;
    std::vector<Tensor> operands, variables;
    std::vector<std::size_t> variable_of(inputs, inputs);
    for (std::size_t i = 0; i < inputs; ++i) {
      operands.push_back(i < c.s.carries ? in[first + i] : in[i]);
      if (!request.inputs[i] || !is_float(operands[i].dtype())) continue;
      operands[i] = tape.watch(operands[i]);
      variable_of[i] = variables.size();
      variables.push_back(operands[i]);
    }
    const auto body = std::static_pointer_cast<const ScanBody>(attrs.body);
    const Tensors results = scan_primitive().apply(OperandList(operands), ScanBody::attrs_of(body, c.steps, c.reverse));
    InlineVector<GradOf, 8> arrived;
    std::size_t next = inputs;
    for (std::size_t k = 0; k < c.s.carries; ++k)
      if (is_float(results[k].dtype())) arrived.push_back({results[k], in[next++]});
    for (std::size_t k = 0; k < request.ys.size(); ++k)
      if (request.ys[k]) arrived.push_back({results[c.s.carries + k], in[next++]});
    const Tensors found = lenient_grad(tape, {arrived.data(), arrived.size()}, variables);
    Tensors out;
    const auto give = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        if (variable_of[i] < inputs) out.push_back(found[variable_of[i]]);
    };
    give(0, c.s.carries);
    give(c.s.carries + c.s.xs, inputs);
    give(c.s.carries, c.s.carries + c.s.xs);
    return out;
  }

  /// Returns the multiply-adds of running the steps once more, and of the backward pass.
  static std::int64_t multiply_adds(std::span<const Spec>, std::span<const Spec>, const Attrs& attrs) {
    const Call c(attrs);
    const auto saving = c.body.saving();
    const ScanBack::Pass& pass = saving->back()->pass(request_of(attrs, c.body));
    return c.steps * (cost_of(saving->graph()).multiply_adds + cost_of(pass.body->graph()).multiply_adds);
  }

  CheckpointedGrad(Inputs in, std::span<Tensor> out, const Attrs& attrs)
      : c_(attrs),
        in_(in),
        out_(out),
        saving_(c_.body.saving()),
        pass_(saving_->back()->pass(request_of(attrs, c_.body))),
        sums_(pass_.body->program().parts().terms) {}

  void run() {
    const ScanSignature& w = pass_.body->signature();
    const std::size_t first = c_.body.graph().inputs.size();  // index of the first cotangent
    for (std::size_t k = 0; k < w.carries; ++k) d_.push_back(dense(in_[first + k]));
    first_dy_ = first + w.carries;
    for (std::size_t k = 0; k < saving_->graph().outputs.size(); ++k) {
      Spec spec = saving_->output(k);
      if (k >= c_.s.carries) spec.shape = with_steps(std::min(c_.every, c_.steps), spec.shape);
      again_.push_back(Tensor::empty(spec));
    }
    for (std::int64_t j = c_.segments(); j-- > 0;) {
      const Segment s = c_.at(j);
      compute_again(s);
      go_back(s);
    }
    for (std::size_t k = 0; k < w.carries; ++k) copy_into(out_[k], d_[k]);
    sums_.give(out_.subspan(w.carries, w.sums));
  }

 private:
  static void check_operands(Inputs in, const Call& c, const ScanBack::Request& request) {
    Specs wanted;
    const auto stack = [](std::int64_t n, const Spec& s) { return Spec{with_steps(n, s.shape), s.dtype}; };
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      const Spec& s = c.body.input(i);
      wanted.push_back(i < c.s.carries ? stack(c.segments(), s) : i < c.s.carries + c.s.xs ? stack(c.steps, s) : s);
    }
    for (std::size_t k = 0; k < c.s.carries; ++k)
      if (is_float(c.body.input(k).dtype)) wanted.push_back(c.body.input(k));
    for (std::size_t k = 0; k < request.ys.size(); ++k)
      if (request.ys[k]) wanted.push_back(stack(c.steps, c.body.output(c.s.carries + k)));
    for (std::size_t k = 0; k < c.s.carries; ++k) wanted.push_back(c.body.input(k));
    if (in.size() != wanted.size())
      throw ShapeError("scan_checkpointed_grad: takes " + std::to_string(wanted.size()) + " operands, got " +
                       std::to_string(in.size()));
    for (std::size_t i = 0; i < in.size(); ++i)
      if (in[i].spec() != wanted[i])
        throw ShapeError("scan_checkpointed_grad: operand " + std::to_string(i) + " must be " + wanted[i].str() +
                         ", got " + in[i].spec().str());
  }

  Tensor operand(std::size_t i, const Segment& s) const {
    if (i < c_.s.carries) return slot(in_[i], s.number);
    return i < c_.s.carries + c_.s.xs ? part(in_[i], s) : in_[i];
  }
  /// Returns the first steps of a stack that holds a segment.
  Tensor held(std::size_t k, const Segment& s) const {
    return k < c_.s.carries ? again_[k] : part(again_[k], {0, 0, s.steps});
  }

  void compute_again(const Segment& s) {
    Run run;
    for (std::size_t i = 0; i < c_.body.graph().inputs.size(); ++i) run.in(operand(i, s));
    for (std::size_t k = 0; k < again_.size(); ++k) run.out(held(k, s));
    const ScanProgram& p = saving_->program();
    ScanSums none(p.parts().terms);
    run.run(p, s.steps, c_.reverse, none);
  }

  void go_back(const Segment& s) {
    const ScanSignature& w = pass_.body->signature();
    Run run;
    for (const Tensor& d : d_) run.in(d);
    for (const std::size_t k : pass_.saved) run.in(held(c_.body.graph().outputs.size() + k, s));
    for (const std::size_t k : pass_.xs) run.in(operand(c_.s.carries + k, s));
    for (const std::size_t dy : pass_.arrived) run.in(part(in_[first_dy_ + dy], s));
    for (const std::size_t k : pass_.captures) run.in(in_[c_.s.carries + c_.s.xs + k]);
    Tensors next;
    for (const Tensor& d : d_) next.push_back(Tensor::empty(d.spec()));
    for (const Tensor& d : next) run.out(d);
    for (std::size_t k = 0; k < w.sums; ++k) run.out(out_[w.carries + k]);
    for (std::size_t k = w.carries + w.sums; k < out_.size(); ++k) run.out(part(out_[k], s));
    run.run(pass_.body->program(), s.steps, !c_.reverse, sums_);
    d_ = std::move(next);
  }

  const Call c_;
  Inputs in_;
  std::span<Tensor> out_;
  std::shared_ptr<const ScanBody> saving_;
  const ScanBack::Pass& pass_;
  ScanSums sums_;
  Tensors d_;
  InlineVector<Tensor, 16> again_;  ///< results of the saving body over a segment
  std::size_t first_dy_ = 0;
};

/// The record of the gradient. Its own gradient is that of its reference.
constexpr Primitive kCheckpointedGrad = {.name = "scan_checkpointed_grad",
                                         .summary = "the gradient of scan_checkpointed",
                                         .arity = -1,
                                         .infer = CheckpointedGrad::infer,
                                         .eval = CheckpointedGrad::eval,
                                         .reads = reads_inputs,
                                         .reference = CheckpointedGrad::reference,
                                         .multiply_adds = CheckpointedGrad::multiply_adds,
                                         .second_order_by_reference = true,
                                         .attributes = &attr_fields<CheckpointedGradAttrs>};

constexpr Primitive kCheckpointed = {.name = "scan_checkpointed",
                                     .summary = "a scan that keeps its carries every few steps for the gradient",
                                     .arity = -1,
                                     .infer = Checkpointed::infer,
                                     .eval = Checkpointed::eval,
                                     .vjp = Checkpointed::vjp,
                                     .reads = reads_all,
                                     .reference = Checkpointed::reference,
                                     .multiply_adds = scan_multiply_adds,
                                     .second_order_by_reference = true,
                                     .attributes = &attr_fields<CheckpointedScanAttrs>};

Tensors Checkpointed::vjp(const Vjp& v) {
  const Call c(v.attrs);
  const std::size_t ys = c.body.ys();
  const ScanBack::Request request = request_of(v, c.s, ys);
  ScanOperands operands;
  for (std::size_t k = 0; k < c.s.carries; ++k) operands.add(v.out(c.s.carries + ys + k));
  for (std::size_t i = c.s.carries; i < v.inputs(); ++i) operands.add(v.in(i));
  for (std::size_t k = 0; k < c.s.carries; ++k)
    if (is_float(v.in_spec(k).dtype)) operands.add(v.grad_or_zeros(k));
  for (std::size_t k = 0; k < ys; ++k)
    if (request.ys[k]) operands.add(v.grad(c.s.carries + k));
  for (std::size_t k = 0; k < c.s.carries; ++k) operands.add(v.in(k));
  Attrs attrs =
      CheckpointedGradAttrs{c, CheckpointedGrad::positions(request.inputs), CheckpointedGrad::positions(request.ys)};
  attrs.body = v.attrs.body;
  return by_input(v, c.s, request, operands.apply(kCheckpointedGrad, attrs));
}

}  // namespace

ScanBack::Request checkpointed_request(const Attrs& attrs, const ScanBody& body) {
  return CheckpointedGrad::request_of(attrs, body);
}

const Primitive& scan_checkpointed_primitive() { return kCheckpointed; }

std::span<const Primitive* const> scan_operations() {
  static const Primitive* const all[] = {&scan_primitive(), &kCheckpointed, &kCheckpointedGrad};
  return all;
}

const Primitive* find_scan(std::string_view name) {
  for (const Primitive* p : scan_operations())
    if (p->name == name) return p;
  return nullptr;
}

}  // namespace ferrite::detail
