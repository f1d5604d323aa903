/// Layers run on types alone.
#include "ferrite/dsl/detail/dry_run.h"

#include "ferrite/tensor/recorder.h"

namespace ferrite::dsl::detail {

using ferrite::detail::checked_mul;

namespace {

/// Sees every application on shapes alone.
class Shapes : public Recorder {
 public:
  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable&, Tensor&) override {}
  bool write(const Variable&, const Tensor&) override { return true; }
  bool tracing() const override { return true; }
};

/// Also adds up what the operations cost.
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

/// Whether an extent is the same for all numbers of steps.
bool is_steady(const SymbolicNumber& n) { return n.constant() || n == batch(); }

bool has_steps(const SymbolicSpec& spec) { return spec.shape.size() > 1 && spec.shape[1] == time(); }

bool fits(const SymbolicSpec& spec) {
  for (std::size_t axis = 0; axis < spec.shape.size(); ++axis)
    if (!is_steady(spec.shape[axis]) && !(axis == 1 && spec.shape[axis] == time())) return false;
  return true;
}

/// "T", "T - 2", "floor((T + 1)/2)".
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

/// How many steps a layer leaves, from where their number grows; none where that is not floor((T + offset) / stride).
std::optional<StepsLeft> steps_after(const nn::Layer& layer, const SymbolicSpec& input) {
  constexpr std::int64_t kFirst = 256, kMostStride = 256, kFar = 1009;
  const auto left = [&](std::int64_t T) {
    return output_of(layer, input.at(std::vector<std::int64_t>{2, T})).shape[1];
  };
  std::vector<std::int64_t> grows;  // the numbers of steps that leave one more than the number before
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
  std::vector<Spec> outputs;
  for (const auto& sizes : trial().sizes()) outputs.push_back(output_of(layer, in.spec.at(sizes)));
  if (const std::optional<SymbolicSpec> same = trial().spec(outputs); same && fits(*same)) return {*same, 0, in.steps};
  if (has_steps(in.spec) && in.spec.shape.size() > 2 &&
      outputs[0].shape.rank() == static_cast<int>(in.spec.shape.size()))
    if (const std::optional<StepsLeft> left = steps_after(layer, in.spec)) {
      for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].shape[1] = trial().sizes()[i][1];
      const std::optional<SymbolicSpec> other = trial().spec(outputs);
      if (other && fits(*other))
        return {*other,
                0,
                {in.steps.offset + checked_mul(in.steps.stride, left->offset, kind),
                 checked_mul(in.steps.stride, left->stride, kind)}};
    }
  throw ShapeError(kind + ": the output's size depends on the number of steps; use last_step or mean_over_time");
}

std::int64_t multiply_adds(const nn::Layer& layer, const Flow& in, const Flow& out) {
  const auto of_steps = [&](std::int64_t T) {
    Counter counter;
    const NewFrame frame(counter);
    // Of two samples: one alone has no variance, which a layer may need while it trains.
    (void)layer(Tensor::abstract(in.spec.at(std::vector<std::int64_t>{2, T})));
    return counter.cost.multiply_adds / 2;
  };
  if (!has_steps(in.spec)) return of_steps(1);
  std::int64_t period = out.steps.stride / in.steps.stride;
  if (out.steps == in.steps) try {
      return ceil_div(of_steps(1), in.steps.stride);
    } catch (const ShapeError&) {
      period = 720;  // a multiple of most strides that may be inside
    }
  return ceil_div(of_steps(256 + period) - of_steps(256), period * in.steps.stride);
}

}  // namespace ferrite::dsl::detail
