/// Layers run on types alone.
#include "ferrite/dsl/detail/dry_run.h"

#include "ferrite/tensor/recorder.h"

namespace ferrite::dsl::detail {
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

}  // namespace

std::string text_of(const SymbolicSpec& spec) { return spec.str(trial().symbols()); }
std::string shape_of(const SymbolicSpec& spec) { return spec.shape_str(trial().symbols()); }

SymbolicSpec dry_run(const nn::Layer& layer, const SymbolicSpec& input, const std::string& kind) {
  std::vector<Spec> outputs;
  for (const auto& sizes : trial().sizes()) outputs.push_back(output_of(layer, input.at(sizes)));
  const std::optional<SymbolicSpec> output = trial().spec(outputs);
  const auto fits = [&](std::size_t axis) {
    return is_steady(output->shape[axis]) || (axis == 1 && output->shape[axis] == time());
  };
  for (std::size_t axis = 0; !output || axis < output->shape.size(); ++axis)
    if (!output || !fits(axis))
      throw ShapeError(kind + ": the output's size depends on the number of steps; use last_step or mean_over_time");
  return *output;
}

std::int64_t multiply_adds(const nn::Layer& layer, const SymbolicSpec& input) {
  Counter counter;
  const NewFrame frame(counter);
  // Of two samples: one alone has no variance, which a layer may need while it trains.
  (void)layer(Tensor::abstract(input.at(std::vector<std::int64_t>{2, 1})));
  return counter.cost.multiply_adds / 2;
}

}  // namespace ferrite::dsl::detail
