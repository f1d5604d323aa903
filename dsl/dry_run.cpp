/// Runs layers on types alone to find output shapes, steps and costs.
#include "ferrite/dsl/detail/dry_run.h"

#include <algorithm>
#include <functional>

#include "ferrite/tensor/recorder.h"

namespace ferrite::dsl::detail {

using ferrite::detail::checked_mul;

namespace {

/// A recorder that sees every application on shapes alone.
class Shapes : public Recorder {
 public:
  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable&, Tensor&) override {}
  bool write(const Variable&, const Tensor&) override { return true; }
  bool tracing() const override { return true; }
};

/// A recorder that also adds up the cost of the operations.
class Counter final : public Shapes {
 public:
  void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) override {
    Specs from, to;
    for (const Tensor& x : in) from.push_back(x.spec());
    for (const Tensor& x : out) to.push_back(x.spec());
    cost += cost_of(op, {from.data(), from.size()}, {to.data(), to.size()}, attrs);
  }
  Cost cost;
};

const SymbolicTrial& trial() {
  static const SymbolicTrial all({"B", "T"}, {2, 256});
  return all;
}

Spec output_of(const nn::Layer& layer, const Spec& input) {
  Shapes shapes;
  const NewFrame frame(shapes);
  return layer(Tensor::abstract(input)).spec();
}

/// Returns whether an extent does not depend on the number of steps.
bool is_steady(const SymbolicNumber& n) { return n.constant() || n == batch(); }

bool has_steps(const SymbolicSpec& spec) { return spec.shape.size() > 1 && spec.shape[1] == time(); }

bool fits(const SymbolicSpec& spec) {
  for (std::size_t axis = 0; axis < spec.shape.size(); ++axis)
    if (!is_steady(spec.shape[axis]) && !(axis == 1 && spec.shape[axis] == time())) return false;
  return true;
}

/// Returns the remaining steps as text: "T", "T - 2", "floor((T + 1)/2)".
std::string text_of(const StepsLeft& steps) {
  std::string text = "T";
  if (steps.offset != 0)
    text += (steps.offset < 0 ? " - " : " + ") + std::to_string(steps.offset < 0 ? -steps.offset : steps.offset);
  if (steps.stride == 1) return text;
  if (steps.offset != 0) text = "(" + text + ")";
  return "floor(" + text + "/" + std::to_string(steps.stride) + ")";
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

/// Number of steps of the first trial run; `steps_more` returns how many more the windows of a layer need.
constexpr std::int64_t kFirst = 256;
std::int64_t steps_more(const nn::Layer& layer, const Flow& in) {
  if (!has_steps(in.spec)) return 0;
  const nn::Pace pace = layer.pace();
  return std::max<std::int64_t>(0, pace.delay + pace.after + 1 - kFirst);
}

/// Returns the steps that remain after a layer according to its pace, or none if trial runs disagree.
std::optional<StepsLeft> steps_by_pace(const nn::Pace& pace, std::int64_t first,
                                       const std::function<std::int64_t(std::int64_t)>& left) {
  if (pace == nn::Pace{}) return {};
  const StepsLeft steps{pace.after - pace.delay - 1 + pace.stride, pace.stride};
  const std::int64_t grows = ceil_div(first + steps.offset, pace.stride) * pace.stride - steps.offset;
  for (const std::int64_t T : {first, grows, grows + pace.stride - 1, grows + pace.stride, grows + 1009})
    if (left(T) != floor_div(T + steps.offset, steps.stride)) return {};
  return steps;
}

/// Returns the steps that remain after a layer, from its pace or from where their number grows; none if they are not
/// floor((T + offset) / stride).
std::optional<StepsLeft> steps_after(const nn::Layer& layer, const Flow& in) {
  constexpr std::int64_t kMostStride = 256, kFar = 1009;
  const auto left = [&](std::int64_t T) {
    return output_of(layer, in.spec.at(std::vector<std::int64_t>{2, T})).shape[1];
  };
  if (const auto steps = steps_by_pace(layer.pace(), kFirst + steps_more(layer, in), left)) return steps;
  std::vector<std::int64_t> grows;  // step counts T whose output has one step more than that of T - 1
  std::int64_t before = left(kFirst);
  for (std::int64_t T = kFirst + 1; grows.size() < 2 && T <= kFirst + 2 * kMostStride; ++T) {
    const std::int64_t now = left(T);
    if (now != before && now != before + 1) return {};
    if (now != before) grows.push_back(T);
    before = now;
  }
  if (grows.size() < 2) return {};
  StepsLeft steps;
  steps.stride = grows[1] - grows[0];
  steps.offset = before * steps.stride - grows[1];
  for (const std::int64_t T : {kFirst, grows[1] + steps.stride - 1, grows[1] + steps.stride, kFar})
    if (left(T) != floor_div(T + steps.offset, steps.stride)) return {};
  return steps;
}

}  // namespace

std::string shape_of(const Flow& flow) {
  if (!has_steps(flow.spec)) return flow.spec.shape_str(trial().symbols());
  std::string text = "[";
  for (std::size_t axis = 0; axis < flow.spec.shape.size(); ++axis)
    text += (axis ? ", " : "") + (axis == 1 ? text_of(flow.steps) : flow.spec.shape[axis].str(trial().symbols()));
  return text + "]";
}
std::string text_of(const Flow& flow) { return std::string(name_of(flow.spec.dtype)) + shape_of(flow); }

Flow dry_run(const nn::Layer& layer, const Flow& in, const std::string& kind) {
  const std::int64_t more = steps_more(layer, in);
  std::vector<Spec> outputs;
  bool all_steps = true;
  for (std::vector<std::int64_t> sizes : trial().sizes()) {
    sizes[1] += more;
    outputs.push_back(output_of(layer, in.spec.at(sizes)));
    all_steps = all_steps && outputs.back().shape.rank() > 1 && outputs.back().shape[1] == sizes[1];
  }
  if (all_steps)
    for (Spec& y : outputs) y.shape[1] -= more;
  const auto as_it_is = [&]() -> std::optional<Flow> {
    const std::optional<SymbolicSpec> same = trial().spec(outputs);
    if (same && fits(*same)) return Flow{*same, 0, in.steps};
    return {};
  };
  const bool changes = layer.pace() != nn::Pace{};  // the trial sizes may be too close to each other to show it
  if (!changes)
    if (const std::optional<Flow> same = as_it_is()) return *same;
  if (has_steps(in.spec) && in.spec.shape.size() > 2 &&
      outputs[0].shape.rank() == static_cast<int>(in.spec.shape.size()))
    if (const std::optional<StepsLeft> left = steps_after(layer, in)) {
      std::vector<Spec> any = outputs;
      for (std::size_t i = 0; i < any.size(); ++i) any[i].shape[1] = trial().sizes()[i][1];
      const std::optional<SymbolicSpec> other = trial().spec(any);
      if (other && fits(*other))
        return {*other,
                0,
                {in.steps.offset + checked_mul(in.steps.stride, left->offset, kind),
                 checked_mul(in.steps.stride, left->stride, kind)}};
    }
  if (const std::optional<Flow> same = as_it_is()) return *same;
  throw ShapeError(kind + ": the output's size depends on the number of steps; use last_step or mean_over_time");
}

std::int64_t multiply_adds(const nn::Layer& layer, const Flow& in, const Flow& out) {
  const auto of_steps = [&](std::int64_t T) {
    Counter counter;
    const NewFrame frame(counter);
    // Two samples: a single one has no variance, which a layer may need while it trains.
    (void)layer(Tensor::abstract(in.spec.at(std::vector<std::int64_t>{2, T})));
    return counter.cost.multiply_adds / 2;
  };
  if (!has_steps(in.spec)) return of_steps(1);
  std::int64_t period = out.steps.stride / in.steps.stride;
  if (out.steps == in.steps) try {
      return ceil_div(of_steps(1), in.steps.stride);
    } catch (const ShapeError&) {
      period = 720;  // a multiple of most strides that the layer may contain
    }
  const std::int64_t first = kFirst + steps_more(layer, in);
  return ceil_div(of_steps(first + period) - of_steps(first), period * in.steps.stride);
}

}  // namespace ferrite::dsl::detail
