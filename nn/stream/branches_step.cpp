/// The steps of layers side by side, and what joins their rows, a program.
#include <algorithm>

#include "ferrite/compile/open_scan.h"
#include "ferrite/nn/detail/steps.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::OpenScan;

std::int64_t bytes_of(const StepRows& r) { return r.batch * r.width * size_of(r.dtype); }

/// Branches of one pace: all give a row, or none does.
class BranchesStep final : public Step {
 public:
  BranchesStep(std::vector<std::unique_ptr<Step>> steps, const StepRows& in,
               const std::function<Tensor(const Tensors&)>& together)
      : steps_(std::move(steps)), room_(room_of(steps_)) {
    std::vector<Spec> rows;
    for (const auto& s : steps_) rows.push_back(spec_of(s->result()));
    const auto body = [&](const Tensors&, const Tensors& x) -> ScanStep { return {{}, {together(x)}}; };
    joined_ = std::make_unique<OpenScan>(body, std::vector<Spec>{}, rows);
    const Spec& y = joined_->y_spec(0);
    out_ = {in.batch, y.shape.numel() / in.batch, y.dtype};
  }
  BranchesStep(const BranchesStep& o)
      : Step(o), out_(o.out_), room_(o.room_), joined_(std::make_unique<OpenScan>(*o.joined_)) {
    for (const auto& s : o.steps_) steps_.push_back(s->clone());
  }

  StepRows result() const override { return out_; }
  bool skips() const override {
    return std::any_of(steps_.begin(), steps_.end(), [](const auto& s) { return s->skips(); });
  }
  void run(const void* x, void* y) override {
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      run_step(*steps_[k], x, room_.get());
      take(k);
    }
    join(y);
  }
  Rows run_rows(Rows rows, const void* x, void* y) override {
    Rows given = nullptr;
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      given = run_rows_of(*steps_[k], rows, x, room_.get());
      if (given) take(k);
    }
    if (given) join(y);
    return given;
  }
  void commit() override {
    for (const auto& s : steps_) s->commit();
  }
  void commit_rows(Rows rows) override {
    for (const auto& s : steps_) s->commit_rows(rows);
  }
  bool commits() const override {
    return std::any_of(steps_.begin(), steps_.end(), [](const auto& s) { return s->commits(); });
  }
  void refresh() override {
    for (const auto& s : steps_) s->refresh();
  }
  void reset() override {
    for (const auto& s : steps_) s->reset();
  }
  void reset_row(std::int64_t row) override {
    for (const auto& s : steps_) s->reset_row(row);
  }
  void save(std::vector<Tensor>& states) const override {
    for (const auto& s : steps_) s->save(states);
  }
  std::size_t restore(std::span<const Tensor> states) override {
    std::size_t used = 0;
    for (const auto& s : steps_) used += s->restore(states.subspan(used));
    return used;
  }
  std::size_t on_tensors() const override {
    std::size_t n = 0;
    for (const auto& s : steps_) n += s->on_tensors();
    return n;
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<BranchesStep>(*this); }

 private:
  /// Doubles for the largest rows, and one line more: a step may write whole packets.
  static std::int64_t room_of(const std::vector<std::unique_ptr<Step>>& steps) {
    std::int64_t most = 0;
    for (const auto& s : steps) most = std::max(most, bytes_of(s->result()));
    return (most + 127) / 64 * 8;
  }
  void take(std::size_t k) {
    std::copy_n(reinterpret_cast<const std::byte*>(room_.get()), bytes_of(steps_[k]->result()), joined_->x(k));
  }
  void join(void* y) {
    joined_->run();
    std::copy_n(joined_->y(0), bytes_of(out_), static_cast<std::byte*>(y));
  }

  std::vector<std::unique_ptr<Step>> steps_;
  StepRows out_;
  StepMemory<double> room_;
  std::unique_ptr<OpenScan> joined_;
};

}  // namespace

std::unique_ptr<Step> branches_step(std::vector<std::unique_ptr<Step>> steps, const StepRows& in,
                                    const std::function<Tensor(const Tensors&)>& together) {
  return std::make_unique<BranchesStep>(std::move(steps), in, together);
}

}  // namespace ferrite::nn::detail
