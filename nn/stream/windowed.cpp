/// Layers whose outputs are functions of windows of their inputs, and their steps: the inputs are in a ring, and the
/// function is a program.
#include "ferrite/nn/windowed.h"

#include <algorithm>
#include <numeric>

#include "ferrite/compile/open_scan.h"
#include "ferrite/nn/detail/input_ring.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/ops.h"

// ---- layers --------------------------------------------------------------------------------------------

namespace ferrite::nn {

Pace Windowed::pace() const {
  const std::optional<StepWindow> w = window();
  return w ? w->pace() : Pace{};
}

std::vector<StepState> Windowed::states(const StepRows& in) const {
  const std::optional<StepWindow> w = window();
  if (!w || !w->pace().even() || w->reach() == 0) return {};
  return {{.name = "past", .shape = {w->reach(), in.batch, in.width}, .dtype = in.dtype, .rows = 1}};
}

StepResult Windowed::step(const Tensor& x, const Tensors& states) const {
  const std::optional<StepWindow> w = window();
  if (!w) return Layer::step(x, states);
  Tensors taps, next;
  for (std::int64_t k = 0; k + 1 < w->taps; ++k) taps.push_back(select(states[0], 0, k * w->dilation));
  taps.push_back(x);
  if (!states.empty()) next.push_back(concat({slice(states[0], 0, 1), unsqueeze(x, 0)}, 0));
  return {over(stack(std::span<const Tensor>(taps.data(), taps.size()), 1)), next};
}

std::size_t Windowed::add_steps(StepGraph& graph, std::size_t x) const {
  const std::optional<StepWindow> w = window();
  if (!w || !program_ || !streams()) return Layer::add_steps(graph, x);
  return graph.add(*this, detail::window_step(*w, graph.rows(x), program_(*this, *w, graph.rows(x))), {x});
}

bool Windowed::looks_back(const Tensor& x) const {
  const std::optional<StepWindow> w = window();
  if (!w) return Layer::looks_back(x);
  const bool tiles = w->before == 0 && w->after == 0 && w->reach() < w->stride && x.shape()[1] % w->stride == 0;
  return !tiles && (!carried_states().empty() || w->reach() > 0 || w->stride > 1);
}

}  // namespace ferrite::nn

// ---- steps ---------------------------------------------------------------------------------------------

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::OpenScan;

class Program final : public WindowFunction {
 public:
  Program(const std::string& kind, const Spec& window, const std::function<Tensor(const Tensor&)>& f,
          const std::function<Variable(const Variable&)>& originals) {
    const auto body = [&](const Tensors&, const Tensors& x) -> ScanStep { return {{}, {f(x[0])}}; };
    scan_ = std::make_unique<OpenScan>(body, std::vector<Spec>{}, std::vector<Spec>{window}, originals);
    const Spec& y = scan_->y_spec(0);
    if (y.shape.rank() != 2 || y.shape[0] != window.shape[0])
      throw ShapeError("stream: " + kind + " gives " + y.str() + " for a window of " + std::to_string(window.shape[0]) +
                       " rows");
    out_ = {y.shape[0], y.shape[1], y.dtype};
  }
  Program(const Program& o) : WindowFunction(o), out_(o.out_), scan_(std::make_unique<OpenScan>(*o.scan_)) {}

  std::byte* x() override { return scan_->x(0); }
  const std::byte* y() const override { return scan_->y(0); }
  StepRows result() const override { return out_; }
  Step::Runs runs() const override { return Step::Runs::program; }
  void run() override { scan_->run(); }
  void refresh() override { scan_->refresh(); }
  std::unique_ptr<WindowFunction> clone() const override { return std::make_unique<Program>(*this); }

 private:
  StepRows out_;
  std::unique_ptr<OpenScan> scan_;
};

/// The step of a layer with windows. Each row has its own ring and step count, so that it may start over at any time;
/// then its outputs come at other steps than those of the others. An input is written before its step is committed, to
/// a place that only past windows read.
class WindowStep final : public Step {
 public:
  WindowStep(const StepWindow& window, const StepRows& in, std::unique_ptr<WindowFunction> function)
      : window_(window),
        pace_(window.pace()),
        in_(in),
        ring_(in, window),
        all_(static_cast<std::size_t>(in.batch), 1),
        due_(static_cast<std::size_t>(in.batch)),
        taken_(static_cast<std::size_t>(in.batch)),
        steps_(static_cast<std::size_t>(in.batch)),
        function_(std::move(function)),
        out_(function_->result()) {}
  WindowStep(const WindowStep& o)
      : Step(o),
        window_(o.window_),
        pace_(o.pace_),
        in_(o.in_),
        ring_(o.ring_),
        all_(o.all_),
        due_(o.due_),
        taken_(o.taken_),
        steps_(o.steps_),
        function_(o.function_->clone()),
        out_(o.out_) {}

  StepRows result() const override { return out_; }
  Runs runs() const override { return function_->runs(); }
  Pace pace() const override { return pace_; }
  bool skips() const override { return !pace_.even(); }
  void run(Inputs x, void* y) override {
    const Rows all = all_.data();
    WindowStep::run_rows(&all, x, y);
  }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    for (std::int64_t b = 0; b < in_.batch; ++b) {
      taken_[index(b)] = rows[0][b];
      if (taken_[index(b)]) ring_.write(b, static_cast<const std::byte*>(x[0]) + b * ring_.row_bytes());
    }
    return outputs(y);
  }
  std::int64_t most_at_once() const override { return pace_.even() ? function_->most_at_once() : 1; }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    const auto* from = static_cast<const std::byte*>(x[0]);
    std::byte* window = function_->x();
    for (std::int64_t t = 0; t < n; ++t)
      for (std::int64_t b = 0; b < in_.batch; ++b, from += ring_.row_bytes(), window += window_bytes()) {
        ring_.write(b, from);
        ring_.copy_window(b, window);
        begin_next(b);
      }
    function_->run_several(n);
    std::copy_n(function_->y(), n * out_.batch * out_.width * size_of(out_.dtype), static_cast<std::byte*>(y));
  }
  std::int64_t finishing() const override { return window_.after; }
  /// Runs a step whose input is padding.
  Rows finish(Rows rows, std::int64_t, void* y) override {
    for (std::int64_t b = 0; b < in_.batch; ++b) {
      taken_[index(b)] = rows[b];
      if (taken_[index(b)]) ring_.write_padding(b);
    }
    return outputs(y);
  }
  void commit() override { WindowStep::commit_rows(all_.data()); }
  void commit_rows(Rows) override {
    for (std::int64_t b = 0; b < in_.batch; ++b)
      if (taken_[index(b)]) begin_next(b);
  }
  void refresh() override { function_->refresh(); }
  /// Visits the inputs that later windows can see and, if not every input gives an output, the number of steps that
  /// each row has made.
  void states(const StateVisitor& see) override {
    if (window_.reach() > 0) see(ring_.past());
    if (counts())
      see({.name = "steps",
           .spec = {{in_.batch}, Dtype::i64},
           .first = reinterpret_cast<std::byte*>(steps_.data()),
           .most = kAnyNumber - 1});
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<WindowStep>(*this); }

 private:
  static std::size_t index(std::int64_t row) { return static_cast<std::size_t>(row); }
  bool counts() const { return pace_ != Pace{}; }
  std::int64_t window_bytes() const { return window_.taps * ring_.row_bytes(); }
  void begin_next(std::int64_t row) {
    ring_.advance(row);
    ++steps_[index(row)];
  }
  /// Computes the outputs that are due in the rows that have taken a step, and returns these rows, or null.
  Rows outputs(void* y) {
    bool any = false;
    for (std::int64_t b = 0; b < in_.batch; ++b) {
      const std::int64_t step = steps_[index(b)];
      due_[index(b)] = taken_[index(b)] && step >= pace_.delay && (step - pace_.delay) % window_.stride == 0;
      if (!due_[index(b)]) continue;
      any = true;
      ring_.copy_window(b, function_->x() + b * window_bytes());
    }
    if (!any) return nullptr;
    function_->run();
    std::copy_n(function_->y(), out_.batch * out_.width * size_of(out_.dtype), static_cast<std::byte*>(y));
    return due_.data();
  }
  StepWindow window_;
  Pace pace_;
  StepRows in_;
  InputRing ring_;
  std::vector<std::uint8_t> all_, due_, taken_;
  std::vector<std::int64_t> steps_;  ///< by row, the number of steps since it began
  std::unique_ptr<WindowFunction> function_;
  StepRows out_;
};

}  // namespace

std::unique_ptr<WindowFunction> window_program(const std::string& kind, const Spec& window,
                                               const std::function<Tensor(const Tensor&)>& f,
                                               const std::function<Variable(const Variable&)>& originals) {
  return std::make_unique<Program>(kind, window, f, originals);
}

std::unique_ptr<WindowFunction> program_of_window(const Windowed& layer, const StepWindow& window, const StepRows& in) {
  const std::unique_ptr<Layer> copy = evaluating_copy(layer);
  const auto& windowed = dynamic_cast<const Windowed&>(*copy);
  return window_program(
      layer.kind(), {{in.batch, window.taps, in.width}, in.dtype},
      [&](const Tensor& x) { return windowed.output_of(x); }, originals_of(layer, *copy));
}

std::unique_ptr<Step> window_step(const StepWindow& window, const StepRows& in,
                                  std::unique_ptr<WindowFunction> function) {
  const StepWindow& w = window;
  if (w.taps < 1 || w.dilation < 1 || w.stride < 1 || w.before < 0 || w.before > w.reach() || w.after < 0)
    throw ValueError("stream: a window of " + std::to_string(w.taps) + " taps, dilation " + std::to_string(w.dilation) +
                     ", stride " + std::to_string(w.stride) + " and padding " + std::to_string(w.before) + ", " +
                     std::to_string(w.after) +
                     " cannot be streamed: taps, dilation and stride must be positive, and the padding in front must "
                     "lie in 0..(taps - 1) dilation");
  return std::make_unique<WindowStep>(window, in, std::move(function));
}

}  // namespace ferrite::nn::detail
