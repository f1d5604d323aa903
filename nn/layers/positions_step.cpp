/// One step of learned positions for streams: the row of each row's own step.
#include <algorithm>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/tokens.h"
#include "ferrite/nn/step_graph.h"

namespace ferrite::nn {
namespace {

template <class T>
class LearnedPositionsStep final : public Step {
 public:
  LearnedPositionsStep(const Parameter& weight, std::int64_t batch)
      : weight_(weight), batch_(batch), steps_(static_cast<std::size_t>(batch)) {
    LearnedPositionsStep::refresh();
  }

  StepRows result() const override { return {batch_, table_.shape()[1], dtype_of<T>}; }
  void run(Inputs x, void* y) override { add(nullptr, x, y); }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    add(rows[0], x, y);
    return rows[0];
  }
  std::int64_t most_at_once() const override { return detail::kAnyNumber; }
  std::int64_t sure(std::int64_t n, Inputs) const override {
    return std::min(n, table_.shape()[0] - *std::max_element(steps_.begin(), steps_.end()));
  }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    const std::int64_t bytes = detail::bytes_of(result());
    for (std::int64_t t = 0; t < n; ++t, LearnedPositionsStep::commit_rows(nullptr)) {
      const void* const from = static_cast<const std::byte*>(x[0]) + t * bytes;
      add(nullptr, &from, static_cast<std::byte*>(y) + t * bytes);
    }
  }
  void commit() override { LearnedPositionsStep::commit_rows(nullptr); }
  void commit_rows(Rows rows) override {
    for (std::int64_t b = 0; b < batch_; ++b) step(b) += takes(rows, b) ? 1 : 0;
  }
  void refresh() override { table_ = contiguous(weight_.peek()); }
  void states(const StateVisitor& see) override {
    see({.name = "steps",
         .spec = {{batch_}, Dtype::i64},
         .first = reinterpret_cast<std::byte*>(steps_.data()),
         .most = table_.shape()[0]});
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<LearnedPositionsStep>(*this); }

 private:
  void add(Rows rows, Inputs x, void* y) {
    const std::int64_t D = table_.shape()[1];
    for (std::int64_t b = 0; b < batch_; ++b)
      if (takes(rows, b) && step(b) >= table_.shape()[0]) throw_beyond(step(b));
    const auto* from = static_cast<const T*>(x[0]);
    auto* to = static_cast<T*>(y);
    for (std::int64_t b = 0; b < batch_; ++b, from += D, to += D) {
      if (!takes(rows, b)) continue;
      const T* const at = table_.data<T>() + step(b) * D;
      for (std::int64_t i = 0; i < D; ++i) to[i] = from[i] + at[i];
    }
  }
  static bool takes(Rows rows, std::int64_t row) { return !rows || rows[row]; }
  std::int64_t& step(std::int64_t row) { return steps_[static_cast<std::size_t>(row)]; }
  /// In the words of the whole sequence.
  [[noreturn]] void throw_beyond(std::int64_t step) const {
    throw ShapeError("learned_positions: step " + std::to_string(step) + " lies outside 0.." +
                     std::to_string(table_.shape()[0] - 1));
  }

  Parameter weight_;
  std::int64_t batch_;
  std::vector<std::int64_t> steps_;  ///< by row, since it began
  Tensor table_;                     ///< immutable: the snapshot needs no copy
};

}  // namespace

std::size_t LearnedPositions::add_steps(StepGraph& graph, std::size_t x) const {
  const StepRows in = graph.rows(x);
  if (in.dtype == Dtype::f64)
    return graph.add(*this, std::make_unique<LearnedPositionsStep<double>>(weight, in.batch), {x});
  return graph.add(*this, std::make_unique<LearnedPositionsStep<float>>(weight, in.batch), {x});
}

}  // namespace ferrite::nn
