/// The steps of chains of layers, with rows that go from one to the next in memory of the chain.
#include <algorithm>
#include <array>

#include "ferrite/nn/detail/steps.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::nn::detail {
namespace {

std::int64_t bytes_of(const StepRows& r) { return r.batch * r.width * size_of(r.dtype); }

class Chain final : public Step {
 public:
  Chain(std::vector<std::unique_ptr<Step>> steps, const StepRows& in, bool adds)
      : steps_(joined(std::move(steps))),
        in_(in),
        adds_(adds),
        half_(room_between(steps_)),
        at_once_(most_of(steps_)),
        room_(2 * at_once_ * half_ / 8) {
    find_committing();
    const StepRows out = result();
    if (adds_ && (out.width != in_.width || out.dtype != in_.dtype))
      throw ShapeError("residual: the chain changes the shape: " + std::to_string(in_.width) + " to " +
                       std::to_string(out.width) + " features");
  }
  Chain(const Chain& o) : Step(o), in_(o.in_), adds_(o.adds_), half_(o.half_), at_once_(o.at_once_), room_(o.room_) {
    for (const auto& s : o.steps_) steps_.push_back(s->clone());
    find_committing();
  }

  StepRows result() const override { return steps_.empty() ? in_ : steps_.back()->result(); }
  void run(const void* x, void* y) override {
    through(1, x, y, [](Step& s, const void* from, void* to) { run_step(s, from, to); });
  }
  std::int64_t most_at_once() const override { return at_once_; }
  void run_several(std::int64_t n, const void* x, void* y) override {
    through(n, x, y, [n](Step& s, const void* from, void* to) { run_steps(s, n, from, to); });
  }
  void commit() override {
    for (Step* const s : committing_) s->commit();
  }
  bool never_throws() const override {
    return std::all_of(steps_.begin(), steps_.end(), [](const auto& s) { return s->never_throws(); });
  }
  void advance(const void* x, void* y) override {
    if (ferrite::detail::profiling()) [[unlikely]]
      return Step::advance(x, y);
    through(1, x, y, [](Step& s, const void* from, void* to) { s.advance(from, to); });
  }
  bool skips() const override {
    return std::any_of(steps_.begin(), steps_.end(), [](const auto& s) { return s->skips(); });
  }
  Rows run_rows(Rows rows, const void* x, void* y) override {
    first_ = reached_ = 0;
    rows = onwards(rows, x, y);
    if (rows) add_up(1, x, y);
    return rows;
  }
  std::int64_t finishing() const override {
    std::int64_t n = 0;
    for (const auto& s : steps_) n += s->finishing();
    return n;
  }
  /// The inputs end at the first layer, then at the second one, and so on.
  Rows finish(Rows rows, std::int64_t i, void* y) override {
    for (first_ = 0; i >= steps_[first_]->finishing(); ++first_) i -= steps_[first_]->finishing();
    reached_ = first_ + 1;
    took_[first_] = rows;
    void* const to = place(first_, y);
    return onwards(finish_rows_of(*steps_[first_], rows, i, to), to, y);
  }
  void commit_rows(Rows) override {
    for (std::size_t k = first_; k < reached_; ++k)
      if (steps_[k]->commits()) steps_[k]->commit_rows(took_[k]);
  }
  bool commits() const override { return !committing_.empty(); }
  void refresh() override {
    for (const auto& s : steps_) s->refresh();
  }
  void states(const StateVisitor& see) override {
    for (const auto& s : steps_) s->states(see);
  }
  void states_changed() override {
    for (const auto& s : steps_) s->states_changed();
  }
  std::size_t on_tensors() const override {
    std::size_t n = 0;
    for (const auto& s : steps_) n += s->on_tensors();
    return n;
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<Chain>(*this); }

 private:
  /// n steps of one layer after the other, by run(layer, from, to).
  template <class F>
  void through(std::int64_t n, const void* x, void* y, F&& run) {
    const void* at = x;
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      void* const to = place(k, y);
      run(*steps_[k], at, to);
      at = to;
    }
    add_up(n, x, y);
  }
  /// Through the layers from the one that was reached.
  Rows onwards(Rows rows, const void* x, void* y) {
    for (; reached_ < steps_.size() && rows; ++reached_) {
      void* const to = place(reached_, y);
      took_[reached_] = rows;
      rows = run_rows_of(*steps_[reached_], rows, x, to);
      x = to;
    }
    return rows;
  }
  /// Where the rows of a layer go.
  void* place(std::size_t k, void* y) const {
    if (k + 1 == steps_.size()) return y;
    return reinterpret_cast<std::byte*>(room_.get()) + (k % 2 ? at_once_ * half_ : 0);
  }
  void add_up(std::int64_t n, const void* x, void* y) const {
    if (steps_.empty()) std::copy_n(static_cast<const std::byte*>(x), n * bytes_of(in_), static_cast<std::byte*>(y));
    if (adds_) add(n, x, y);
  }

  /// x + f(x), in the order of Residual.
  void add(std::int64_t n, const void* x, void* y) const {
    const Primitive* const op = ferrite::detail::ops::add;
    const std::array<const void*, 2> in = {x, y};
    const std::array<std::ptrdiff_t, 2> run = {1, 1};
    op->block(in_.dtype)(in.data(), run.data(), y, n * in_.batch * in_.width);
  }

  void find_committing() {
    took_.resize(steps_.size());
    for (const auto& s : steps_)
      if (s->commits()) committing_.push_back(s.get());
  }

  /// Pointwise operations become a part of the step before them, where it takes them.
  static std::vector<std::unique_ptr<Step>> joined(std::vector<std::unique_ptr<Step>> steps) {
    std::vector<std::unique_ptr<Step>> all;
    for (std::unique_ptr<Step>& s : steps) {
      const Primitive* const op = s->pointwise();
      if (!op || all.empty() || !all.back()->join(*op)) all.push_back(std::move(s));
    }
    return all;
  }
  /// Bytes for the largest rows that go from step to step, and one line more: a step may write whole packets.
  static std::int64_t room_between(const std::vector<std::unique_ptr<Step>>& steps) {
    std::int64_t most = 0;
    for (const auto& s : steps) most = std::max(most, bytes_of(s->result()));
    return (most + 127) / 64 * 64;
  }
  static std::int64_t most_of(const std::vector<std::unique_ptr<Step>>& steps) {
    std::int64_t most = steps_at_once(room_between(steps));
    for (const auto& s : steps) most = std::min(most, s->skips() ? 1 : s->most_at_once());
    return most;
  }

  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<Step*> committing_;
  std::vector<Rows> took_;               ///< by layer: the rows of the last `run_rows` or `finish`
  std::size_t first_ = 0, reached_ = 0;  ///< the first layer of it, and the one behind the last
  StepRows in_;
  bool adds_;
  std::int64_t half_;     ///< bytes of the rows between two layers
  std::int64_t at_once_;  ///< steps that there is room for
  StepMemory<double> room_;
};

}  // namespace

Step::Rows run_rows_of(Step& step, Step::Rows rows, const void* x, void* y) {
  std::optional<ferrite::detail::ProfileEvent> event;
  if (ferrite::detail::profiling()) event.emplace(step.step_name(), step.scope());
  Step::Rows given = nullptr;
  ferrite::detail::in_layer(step.scope(), [&] { given = step.run_rows(rows, x, y); });
  return given;
}

Step::Rows finish_rows_of(Step& step, Step::Rows rows, std::int64_t i, void* y) {
  std::optional<ferrite::detail::ProfileEvent> event;
  if (ferrite::detail::profiling()) event.emplace(step.step_name(), step.scope());
  Step::Rows given = nullptr;
  ferrite::detail::in_layer(step.scope(), [&] { given = step.finish(rows, i, y); });
  return given;
}

std::unique_ptr<Step> chain_step(std::vector<std::unique_ptr<Step>> steps, const StepRows& in, bool adds) {
  return std::make_unique<Chain>(std::move(steps), in, adds);
}

}  // namespace ferrite::nn::detail
