/// Cuts chains of layers where a layer strides or looks ahead.
#include "ferrite/exchange/freeze/frozen_stages.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

/// Returns the type of a step's output.
Spec output_of(const StepSource& s) {
  const NewFrame frame;
  std::vector<Spec> specs = s.inputs;
  for (const SourceState& state : s.states) specs.push_back(state.spec);
  const Graph g = trace(s.function, specs);
  return g.values[g.outputs[0]];
}

/// Returns one step after another as one.
StepSource chained(StepSource a, StepSource b) {
  StepSource both{.function = {},
                  .input_names = a.input_names,
                  .output_names = b.output_names,
                  .inputs = a.inputs,
                  .states = a.states};
  both.states.insert(both.states.end(), b.states.begin(), b.states.end());
  const auto returned = [](const StepSource& s) {
    std::size_t n = 0;
    for (const SourceState& state : s.states) n += state.counts ? 0 : 1;
    return n;
  };
  both.function = [f = a.function, g = b.function, na = a.states.size(), ra = returned(a)](const Tensors& in) {
    Tensors first(in.begin(), in.begin() + 1 + static_cast<std::ptrdiff_t>(na));
    Tensors y = f(first);
    Tensors second{y[0]};
    for (std::size_t k = 1 + na; k < in.size(); ++k) second.push_back(in[k]);
    const Tensors z = g(second);
    Tensors out{z[0]};
    for (std::size_t k = 0; k < ra; ++k) out.push_back(y[1 + k]);
    for (std::size_t k = 1; k < z.size(); ++k) out.push_back(z[k]);
    return out;
  };
  return both;
}

/// Returns the output of a window as a function of its last row and the past ones.
StepSource window_source(const nn::Windowed& layer, const nn::StepWindow& w, const nn::StepRows& rows) {
  StepSource s{.function = {},
               .input_names = {"x"},
               .output_names = {"y"},
               .inputs = {{{rows.batch, rows.width}, rows.dtype}},
               .states = {}};
  // Two past rows at least: of a single one, nothing would show that it is a line.
  const std::int64_t kept = std::max<std::int64_t>(w.reach(), 2);
  if (w.reach() > 0) {
    const Shape past{kept, rows.batch, rows.width};
    s.states.push_back({"past", {past, rows.dtype}, full(past, w.padding, rows.dtype)});
  }
  s.function = [&layer, w, kept](const Tensors& in) {
    Tensors taps, out;
    for (std::int64_t k = 0; k + 1 < w.taps; ++k) taps.push_back(select(in[1], 0, kept - w.reach() + k * w.dilation));
    taps.push_back(in[0]);
    out.push_back(layer.output_of(stack(std::span<const Tensor>(taps.data(), taps.size()), 1)));
    if (w.reach() > 0) out.push_back(concat({slice(in[1], 0, 1), unsqueeze(in[0], 0)}, 0));
    return out;
  };
  return s;
}

class Cutting {
 public:
  explicit Cutting(const nn::StepRows& rows) : rows_(rows) {}

  void add(const nn::Layer& layer) {
    if (layer.pace() == nn::Pace{}) return add_even(layer);
    const auto* const chain = dynamic_cast<const nn::Sequential*>(&layer);
    if (chain && !dynamic_cast<const nn::Residual*>(&layer)) {
      for (std::size_t i = 0; i < chain->size(); ++i) add((*chain)[i]);
      return;
    }
    const auto* const windowed = dynamic_cast<const nn::Windowed*>(&layer);
    const auto window = windowed ? windowed->window() : std::nullopt;
    if (!window)
      throw ExportError("freeze: " + layer.kind() + (layer.path().empty() ? "" : " '" + layer.path() + "'") +
                        " has a stride or a delay inside; only chains of such layers can be written");
    stages_.push_back({window_source(*windowed, *window, rows_), window});
    advance();
    even_ = false;
  }
  std::vector<Stage> stages() && { return std::move(stages_); }

 private:
  void add_even(const nn::Layer& layer) {
    StepSource s = step_source(layer, rows_, 0);
    if (even_) {
      stages_.back().source = chained(std::move(stages_.back().source), std::move(s));
    } else {
      stages_.push_back({std::move(s)});
    }
    even_ = true;
    advance();
  }
  /// Makes the rows those that the last stage gives.
  void advance() {
    const Spec y = output_of(stages_.back().source);
    rows_ = {rows_.batch, y.shape.numel() / rows_.batch, y.dtype};
  }

  nn::StepRows rows_;
  std::vector<Stage> stages_;
  bool even_ = false;  ///< whether the last stage takes further layers
};

}  // namespace

std::vector<Stage> stages_of(const nn::Layer& layer, const nn::StepRows& rows, std::int64_t block) {
  std::vector<Stage> stages;
  if (layer.pace() == nn::Pace{}) {
    stages.push_back({step_source(layer, rows, block)});
    return stages;
  }
  Cutting cutting(rows);
  cutting.add(layer);
  return std::move(cutting).stages();
}

}  // namespace ferrite::exchange::detail
