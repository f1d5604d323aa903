// Oracles and samples of compile/scan.
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/compile/graph.h"
#include "ferrite/compile/scan/detail/operation.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/ops.h"

namespace oracles::scans {
namespace {

/// Returns one step of a stack.
Dense step_of(const Dense& stack, std::int64_t t) {
  Dense one({without_steps(stack.shape), stack.dtype});
  const auto n = static_cast<std::ptrdiff_t>(one.values.size());
  std::copy_n(stack.values.begin() + t * n, n, one.values.begin());
  return one;
}
void put_step(Dense& stack, std::int64_t t, const Dense& one) {
  std::copy(one.values.begin(), one.values.end(),
            stack.values.begin() + t * static_cast<std::ptrdiff_t>(one.values.size()));
}

/// Runs a body step by step; operands and results are those of the operation.
struct Walk {
  const Graph& body;
  const ScanSignature& s;
  std::int64_t steps;
  bool reverse;

  /// Runs all steps. `enter(n, carries)` is called before the n-th step in the order of execution and may change the
  /// carries.
  template <class Enter>
  void run(std::span<const Dense> in, std::span<Dense> out, const Enter& enter) const {
    std::vector<Dense> carries(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(s.carries));
    for (std::int64_t n = 0; n < steps; ++n) {
      const std::int64_t t = reverse ? steps - 1 - n : n;
      enter(n, carries);
      std::vector<Dense> operands = carries;
      for (std::size_t i = s.carries; i < body.inputs.size(); ++i)
        operands.push_back(i < s.carries + s.xs ? step_of(in[i], t) : in[i]);
      const std::vector<Dense> ends = evaluate(body, operands);
      for (std::size_t k = 0; k < s.carries; ++k) carries[k] = ends[k];
      for (std::size_t k = s.carries; k < ends.size(); ++k) {
        if (k >= s.carries + s.sums) {
          put_step(out[k], t, ends[k]);
        } else {
          for (std::size_t i = 0; i < ends[k].values.size(); ++i) out[k].values[i] += ends[k].values[i];
        }
      }
    }
    for (std::size_t k = 0; k < s.carries; ++k) out[k].values = carries[k].values;
  }
};

void nothing(std::int64_t, std::vector<Dense>&) {}

void scan_oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs) {
  const auto a = attrs.as<ScanAttrs>("scan");
  const ScanBody& body = ScanBody::of(attrs);
  Walk{body.graph(), body.signature(), a.steps, a.reverse}.run(in, out, nothing);
}

void checkpointed_scan_oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs) {
  const auto a = attrs.as<CheckpointedScanAttrs>("scan");
  const ScanBody& body = ScanBody::of(attrs);
  Walk{body.graph(), body.signature(), a.steps, a.reverse}.run(
      in, out, [&](std::int64_t n, const std::vector<Dense>& carries) {
        for (std::size_t k = 0; k < carries.size() && n % a.every == 0; ++k)
          put_step(out[body.graph().outputs.size() + k], n / a.every, carries[k]);
      });
}

/// Recomputes the steps from the saved carries, then runs the backward pass over everything that they save.
void checkpointed_scan_grad_oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs) {
  const auto a = attrs.as<CheckpointedGradAttrs>("scan_checkpointed_grad");
  const ScanBody& body = ScanBody::of(attrs);
  const auto saving = body.saving();
  const ScanSignature& s = body.signature();
  const ScanBack::Pass& pass = saving->back()->pass(checkpointed_request(attrs, body));
  std::vector<Dense> operands(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(body.graph().inputs.size()));
  for (std::size_t k = 0; k < s.carries; ++k) operands[k] = Dense(body.input(k));
  std::vector<Dense> results;
  for (std::size_t k = 0; k < saving->graph().outputs.size(); ++k) {
    const Spec spec = saving->output(k);
    results.emplace_back(k < s.carries ? spec : Spec{with_steps(a.steps, spec.shape), spec.dtype});
  }
  Walk{saving->graph(), saving->signature(), a.steps, a.reverse}.run(
      operands, results, [&](std::int64_t n, std::vector<Dense>& carries) {
        for (std::size_t k = 0; k < carries.size() && n % a.every == 0; ++k) carries[k] = step_of(in[k], n / a.every);
      });

  const ScanSignature& w = pass.body->signature();
  const std::size_t first = body.graph().inputs.size();
  std::vector<Dense> back(in.begin() + static_cast<std::ptrdiff_t>(first),
                          in.begin() + static_cast<std::ptrdiff_t>(first + w.carries));
  for (const std::size_t k : pass.saved) back.push_back(results[body.graph().outputs.size() + k]);
  for (const std::size_t k : pass.xs) back.push_back(in[s.carries + k]);
  for (const std::size_t dy : pass.arrived) back.push_back(in[first + w.carries + dy]);
  for (const std::size_t k : pass.captures) back.push_back(in[s.carries + s.xs + k]);
  Walk{pass.body->graph(), w, a.steps, !a.reverse}.run(back, out, nothing);
}

using Function = std::function<Tensors(const Tensors&)>;

/// A body and the types of its inputs: carries, one step of the xs, captures.
struct SampleBody {
  std::shared_ptr<const ScanBody> body;
  std::vector<Spec> inputs;

  SampleBody(const Function& f, std::vector<Spec> specs, const ScanSignature& s)
      : body(std::make_shared<const ScanBody>(trace(f, specs), s)), inputs(std::move(specs)) {}

  /// Returns the types of the operands; xs have the number of steps in front.
  std::vector<Spec> operands(std::int64_t steps) const {
    std::vector<Spec> list = inputs;
    const ScanSignature& s = body->signature();
    for (std::size_t i = s.carries; i < s.carries + s.xs; ++i) list[i].shape = with_steps(steps, list[i].shape);
    return list;
  }
};

/// h, c | x | W, b -> tanh(x + h W + b), c + h | h c.
SampleBody recurrence(Dtype dtype) {
  return {[](const Tensors& in) {
            const Tensor h = tanh(in[2] + matmul(in[0], in[3]) + in[4]);
            return Tensors{h, in[1] + h, h * in[1]};
          },
          {{{2, 3}, dtype}, {{2, 3}, dtype}, {{2, 3}, dtype}, {{3, 3}, dtype}, {{3}, dtype}},
          {.carries = 2, .xs = 1, .sums = 0}};
}

/// h | x, y -> h x | the sum of h y | x y, with a sum over all steps.
SampleBody sums(Dtype dtype) {
  return {[](const Tensors& in) {
            return Tensors{in[0] * in[1], in[0] * in[2], in[1] * in[2]};
          },
          {{{4}, dtype}, {{4}, dtype}, {{4}, dtype}},
          {.carries = 1, .xs = 2, .sums = 1}};
}

std::span<const Sample> scan_samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> list;
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      const SampleBody plain = recurrence(dtype), summing = sums(dtype);
      for (const bool reverse : {false, true})
        for (const auto& body : {plain.body, plain.body->saving()})
          list.push_back(
              {.inputs = plain.operands(4), .attrs = ScanBody::attrs_of(body, 4, reverse), .range = {-1, 1}});
      list.push_back({.inputs = plain.operands(0), .attrs = ScanBody::attrs_of(plain.body, 0, false)});
      list.push_back({.inputs = summing.operands(3), .attrs = ScanBody::attrs_of(summing.body, 3, false)});
    }
    return list;
  }();
  return all;
}

std::span<const Sample> checkpointed_scan_samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> list;
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const bool reverse : {false, true})
        for (const std::int64_t every : {1, 2, 7}) {
          const SampleBody b = recurrence(dtype);
          list.push_back(
              {.inputs = b.operands(5), .attrs = ScanBody::attrs_of(b.body, 5, reverse, every), .range = {-1, 1}});
        }
    return list;
  }();
  return all;
}

std::span<const Sample> checkpointed_scan_grad_samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> list;
    constexpr std::int64_t kSteps = 5, kEvery = 2;
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const bool everything : {true, false}) {
        const SampleBody b = recurrence(dtype);
        const std::vector<std::int64_t> wanted =
            everything ? std::vector<std::int64_t>{0, 1, 2, 3, 4} : std::vector<std::int64_t>{0, 1, 3};
        const std::vector<std::int64_t> arrive =
            everything ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{};
        const auto scan = ScanBody::attrs_of(b.body, kSteps, !everything, kEvery).as<CheckpointedScanAttrs>();
        Sample s{.inputs = b.operands(kSteps),
                 .attrs = CheckpointedGradAttrs{scan, Positions::of(wanted), Positions::of(arrive)},
                 .range = {-1, 1}};
        s.attrs.body = b.body;
        for (std::size_t k = 0; k < 2; ++k) s.inputs[k].shape = with_steps((kSteps + kEvery - 1) / kEvery, {2, 3});
        for (std::size_t k = 0; k < 2; ++k) s.inputs.push_back({{2, 3}, dtype});
        if (everything) s.inputs.push_back({{kSteps, 2, 3}, dtype});
        for (std::size_t k = 0; k < 2; ++k) s.inputs.push_back({{2, 3}, dtype});
        list.push_back(std::move(s));
      }
    return list;
  }();
  return all;
}

const Added added(
    {{.name = "scan", .evaluate = scan_oracle, .samples = scan_samples},
     {.name = "scan_checkpointed", .evaluate = checkpointed_scan_oracle, .samples = checkpointed_scan_samples},
     {.name = "scan_checkpointed_grad",
      .evaluate = checkpointed_scan_grad_oracle,
      .samples = checkpointed_scan_grad_samples}});

}  // namespace
}  // namespace oracles::scans
