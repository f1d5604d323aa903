/// The steps of layers side by side, and what joins their rows, a program.
#include <algorithm>

#include "ferrite/compile/open_scan.h"
#include "ferrite/nn/detail/steps.h"
#include "ferrite/nn/detail/waiting_rows.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::OpenScan;

std::int64_t bytes_of(const StepRows& r) { return r.batch * r.width * size_of(r.dtype); }

/// Branches that give their rows together, or of which some look further ahead than others: then rows wait until each
/// branch has given its own.
class BranchesStep final : public Step {
 public:
  BranchesStep(std::vector<std::unique_ptr<Step>> steps, const StepRows& in, const Pace& latest,
               const std::function<Tensor(const Tensors&)>& together)
      : steps_(std::move(steps)), room_(room_of(steps_)), ready_(static_cast<std::size_t>(in.batch)) {
    std::vector<Spec> rows;
    for (const auto& s : steps_) rows.push_back(spec_of(s->result()));
    // A branch is ahead by what another gives later for the same inputs, and once more by what it gives at the end.
    const std::int64_t most = (latest.delay + latest.after) / latest.stride + 2;
    if (latest.after > 0)
      for (const auto& s : steps_) waiting_.emplace_back(s->result(), most);
    const auto body = [&](const Tensors&, const Tensors& x) -> ScanStep { return {{}, {together(x)}}; };
    joined_ = std::make_unique<OpenScan>(body, std::vector<Spec>{}, rows);
    const Spec& y = joined_->y_spec(0);
    out_ = {in.batch, y.shape.numel() / in.batch, y.dtype};
  }
  BranchesStep(const BranchesStep& o)
      : Step(o),
        waiting_(o.waiting_),
        out_(o.out_),
        room_(o.room_),
        ready_(o.ready_),
        joined_(std::make_unique<OpenScan>(*o.joined_)) {
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
    join_rows(y);
  }
  Rows run_rows(Rows rows, const void* x, void* y) override {
    Rows given = nullptr;
    finished_ = -1;
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      given = run_rows_of(*steps_[k], rows, x, room_.get());
      if (!waiting_.empty()) {
        waiting_[k].add(given, room_.get());
      } else if (given) {
        take(k);
      }
    }
    if (!waiting_.empty()) return join_ready(y);
    if (given) join_rows(y);
    return given;
  }
  std::int64_t finishing() const override {
    std::int64_t most = 0;
    for (const auto& s : steps_) most = std::max(most, s->finishing());
    return most;
  }
  Rows finish(Rows rows, std::int64_t i, void* y) override {
    finished_ = i;
    for (std::size_t k = 0; k < steps_.size(); ++k)
      waiting_[k].add(steps_[k]->finishing() > i ? finish_rows_of(*steps_[k], rows, i, room_.get()) : nullptr,
                      room_.get());
    return join_ready(y);
  }
  void commit() override {
    for (const auto& s : steps_) s->commit();
  }
  void commit_rows(Rows rows) override {
    for (const auto& s : steps_)
      if (s->finishing() > finished_) s->commit_rows(rows);
    for (WaitingRows& w : waiting_) w.commit(ready_.data());
  }
  bool commits() const override {
    return std::any_of(steps_.begin(), steps_.end(), [](const auto& s) { return s->commits(); });
  }
  void refresh() override {
    for (const auto& s : steps_) s->refresh();
  }
  void states(const StateVisitor& see) override {
    for (const auto& s : steps_) s->states(see);
    for (WaitingRows& w : waiting_) w.states(see);
  }
  void states_changed() override {
    for (const auto& s : steps_) s->states_changed();
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
  /// Of the rows that every branch has given.
  Rows join_ready(void* y) {
    bool any = false;
    for (std::size_t b = 0; b < ready_.size(); ++b) {
      ready_[b] = std::all_of(waiting_.begin(), waiting_.end(), [b](const WaitingRows& w) { return w.any(b); });
      if (!ready_[b]) continue;
      any = true;
      for (std::size_t k = 0; k < waiting_.size(); ++k)
        std::copy_n(waiting_[k].front(b), waiting_[k].bytes(),
                    joined_->x(k) + static_cast<std::int64_t>(b) * waiting_[k].bytes());
    }
    if (!any) return nullptr;
    join_rows(y);
    return ready_.data();
  }
  void join_rows(void* y) {
    joined_->run();
    std::copy_n(joined_->y(0), bytes_of(out_), static_cast<std::byte*>(y));
  }

  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<WaitingRows> waiting_;  ///< by branch, where some look ahead
  StepRows out_;
  StepMemory<double> room_;
  std::vector<std::uint8_t> ready_;  ///< by row: whether all branches have given one
  std::int64_t finished_ = -1;       ///< which `finish` the last one was; -1 after `run_rows`
  std::unique_ptr<OpenScan> joined_;
};

}  // namespace

std::unique_ptr<Step> branches_step(std::vector<std::unique_ptr<Step>> steps, const StepRows& in, const Pace& latest,
                                    const std::function<Tensor(const Tensors&)>& together) {
  return std::make_unique<BranchesStep>(std::move(steps), in, latest, together);
}

}  // namespace ferrite::nn::detail
