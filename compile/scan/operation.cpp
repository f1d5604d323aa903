/// The scan as an operation: its body, types, evaluation and gradient.
#include "ferrite/compile/scan/detail/operation.h"

#include "ferrite/compile/passes.h"
#include "ferrite/compile/passes/gradient.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/scan/detail/run.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::detail {

// ---- bodies: checked, compared, prepared for gradients and for running ------------------------------------

namespace {

std::string count(std::size_t n, const char* what) { return std::to_string(n) + " " + what; }

Shape parts_of(const ScanSignature& s) {
  return {static_cast<std::int64_t>(s.carries), static_cast<std::int64_t>(s.xs), static_cast<std::int64_t>(s.sums)};
}

}  // namespace

ScanBody::ScanBody(Graph graph, const ScanSignature& signature) : graph_(std::move(graph)), signature_(signature) {
  graph_.validate();
  if (!graph_.reads.empty() || !graph_.writes.empty()) throw TraceError("scan: a body reads and writes no variables");
  if (graph_.inputs.size() < signature.carries + signature.xs ||
      graph_.outputs.size() < signature.carries + signature.sums)
    throw TraceError("scan: a body of " + count(graph_.inputs.size(), "inputs") + " and " +
                     count(graph_.outputs.size(), "outputs") + " cannot have " + count(signature.carries, "carries") +
                     ", " + count(signature.xs, "xs") + " and " + count(signature.sums, "sums"));
  passes::simplify(graph_);
  for (std::size_t k = 0; k < signature.carries; ++k)
    if (input(k) != output(k))
      throw ShapeError("scan: carry " + std::to_string(k) + " goes into a step as " + input(k).str() +
                       " and comes out as " + output(k).str() + "; both must be equal");
}

ScanBody::~ScanBody() = default;

void ScanBody::give(Attrs& attrs, Graph graph) {
  const Shape parts = attrs.as<ScanAttrs>("scan").parts;
  if (parts.rank() != 3 || parts[0] < 0 || parts[1] < 0 || parts[2] < 0)
    throw TraceError("scan: parts must be the numbers of carries, xs and sums, got " + parts.str());
  const auto at = [&](int i) { return static_cast<std::size_t>(parts[i]); };
  attrs.body = std::make_shared<const ScanBody>(std::move(graph), ScanSignature{at(0), at(1), at(2)});
}

Attrs ScanBody::attrs_of(std::shared_ptr<const ScanBody> body, std::int64_t steps, bool reverse) {
  Attrs attrs = ScanAttrs{parts_of(body->signature()), steps, reverse};
  attrs.body = std::move(body);
  return attrs;
}
Attrs ScanBody::attrs_of(std::shared_ptr<const ScanBody> body, std::int64_t steps, bool reverse, std::int64_t every) {
  Attrs attrs = CheckpointedScanAttrs{{parts_of(body->signature()), steps, reverse}, every};
  attrs.body = std::move(body);
  return attrs;
}

bool ScanBody::equals(const Subprogram& other) const {
  if (this == &other) return true;
  const auto* o = dynamic_cast<const ScanBody*>(&other);
  return o && signature_ == o->signature_ && same_graph(graph_, o->graph_);
}

std::shared_ptr<const ScanBody> ScanBody::saving() const {
  const std::lock_guard lock(mutex_);
  if (!saving_) {
    auto back = std::make_unique<const ScanBack>(*this);
    const auto forward = std::make_shared<ScanBody>(back->forward(), signature_);
    forward->back_ = std::move(back);
    forward->base_ = weak_from_this();
    saving_ = forward;
  }
  return saving_;
}

const ScanProgram& ScanBody::program() const {
  const std::lock_guard lock(mutex_);
  if (!program_) program_ = std::make_unique<const ScanProgram>(*this);
  return *program_;
}

// ---- the backward pass: the gradient of one step, run as a scan in the other direction --------------------

ScanBack::ScanBack(const ScanBody& body) : of_(body.signature()) {
  const Graph& step = body.graph();
  std::vector<char> given(step.inputs.size(), 1);  // stacks and captures are there; carries change from step to step
  std::fill_n(given.begin(), of_.carries, 0);
  gradient_ = std::make_unique<const GraphGradient>(step, given, step.outputs.size());
  for (const ValueId v : step.inputs) float_inputs_.push_back(is_float(step.values[v].dtype));
  for (const ValueId v : step.outputs) float_results_.push_back(is_float(step.values[v].dtype));
}

ScanBack::~ScanBack() = default;

Graph ScanBack::forward() const { return gradient_->forward(); }
std::size_t ScanBack::saved() const { return gradient_->residuals(); }

const ScanBack::Pass& ScanBack::pass(const Request& request) const {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<const Pass>& pass : passes_)
    if (pass->request == request) return *pass;
  passes_.push_back(std::make_unique<const Pass>(make(request)));
  return *passes_.back();
}

namespace {

/// Takes the inputs of a graph in the order of their kinds, leaving out those that are not read.
class UsedInputs {
 public:
  explicit UsedInputs(const Graph& g) : view_(g), from_(g.inputs) {}
  /// Takes the next inputs, one for each name in `of`. The names of those that are read are added to `which`, their
  /// values to `to`.
  void take(const std::vector<std::size_t>& of, std::vector<std::size_t>& which, std::vector<ValueId>& to) {
    for (const std::size_t name : of) {
      const ValueId v = from_[at_++];
      if (!view_.uses(v)) continue;
      which.push_back(name);
      to.push_back(v);
    }
  }
  /// Returns the next n inputs, read or not.
  std::vector<ValueId> take_all(std::size_t n) {
    const auto first = from_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += n;
    return {first, first + static_cast<std::ptrdiff_t>(n)};
  }

 private:
  GraphView view_;
  std::vector<ValueId> from_;
  std::size_t at_ = 0;
};

}  // namespace

ScanBack::Pass ScanBack::make(const Request& request) const {
  const std::size_t ends = of_.carries + of_.sums, inputs = float_inputs_.size();
  std::vector<char> arriving(float_results_.size(), 1);  // always at carries and sums
  std::copy(request.ys.begin(), request.ys.end(), arriving.begin() + static_cast<std::ptrdiff_t>(ends));
  Graph b = gradient_->backward(arriving, {request.inputs.data(), request.inputs.size()});

  const auto numbers = [](std::size_t begin, std::size_t end, const auto& counts) {
    std::vector<std::size_t> list;
    for (std::size_t i = begin; i < end; ++i)
      if (counts(i)) list.push_back(i - begin);
    return list;
  };
  const auto all = [](std::size_t) { return true; };
  const auto is_real = [&](std::size_t k) { return float_results_[k] && arriving[k]; };
  const auto has_gradient = [&](std::size_t i) { return float_inputs_[i] && request.inputs[i]; };
  const std::size_t carries = numbers(0, of_.carries, is_real).size();

  Pass pass;
  pass.request = request;
  UsedInputs used(b);
  std::vector<ValueId> saved, xs, captures, sums, ys;
  used.take(numbers(0, gradient_->residuals(), all), pass.saved, saved);
  used.take(numbers(of_.carries, of_.carries + of_.xs, all), pass.xs, xs);
  used.take(numbers(of_.carries + of_.xs, inputs, all), pass.captures, captures);
  b.inputs = used.take_all(carries);
  used.take(numbers(of_.carries, ends, is_real), pass.sums, sums);
  used.take(numbers(ends, float_results_.size(), is_real), pass.ys, ys);
  for (const std::size_t k : pass.ys)
    pass.arrived.push_back(static_cast<std::size_t>(
        std::count_if(request.ys.begin(), request.ys.begin() + k, [](char f) { return f != 0; })));
  for (const std::vector<ValueId>* list : {&saved, &xs, &ys, &captures, &sums})
    b.inputs.insert(b.inputs.end(), list->begin(), list->end());

  // Gradients come in the order of the inputs: those of xs, which become stacks, are moved after those that are summed.
  const auto first = b.outputs.begin() + static_cast<std::ptrdiff_t>(carries);
  const std::size_t stacks = numbers(of_.carries, of_.carries + of_.xs, has_gradient).size();
  std::rotate(first, first + static_cast<std::ptrdiff_t>(stacks), b.outputs.end());
  const std::size_t summed = b.outputs.size() - carries - stacks;
  pass.body = std::make_shared<const ScanBody>(std::move(b),
                                               ScanSignature{carries, saved.size() + xs.size() + ys.size(), summed});
  return pass;
}

// ---- the operation ----------------------------------------------------------------------------------------

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

/// A scan as one operation, for any number of steps.
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
      bool arrives = false;  // a cotangent arrives at a saved value: then saved values are results like others
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
