#pragma once
/// The loop of `fit`.
#include "ferrite/train/checkpoint.h"
#include "ferrite/train/detail/train_step.h"

namespace ferrite::train::detail {

/// The mean loss of several batches, each weighted by how many losses it holds.
struct MeanLoss {
  double sum = 0, weight = 0;
  /// A batch in which nothing counts has no mean, and adds nothing.
  void add(const Steps::Result& batch) {
    if (batch.weight == 0) return;
    sum += batch.loss * batch.weight;
    weight += batch.weight;
  }
  double value() const { return sum / weight; }
};

/// One call of `fit`.
class Fitting final : public Training {
 public:
  /// Throws ValueError for options that do not fit.
  Fitting(const Model& model, const DataLoader& data, const FitOptions& options);
  History run();

  const nn::Module& model() const override { return model_.module; }
  nn::Optimizer& optimizer() const override;
  const DataLoader& data() const override { return data_; }
  std::int64_t epoch() const override { return at_.epoch; }
  std::int64_t epochs() const override { return options_.epochs; }
  std::int64_t batch() const override { return at_.batch; }
  std::int64_t step() const override { return at_.step; }
  const Logs& logs() const override { return logs_; }
  const History& history() const override { return history_; }
  std::vector<Tensor> validated() const override;
  bool is_main() const override { return !parallel_ || parallel_->is_main(); }
  void log(std::string_view name, double value) override;
  void stop(std::string reason) override;

 private:
  template <class F>
  void tell(F f);
  void join();
  void agree_on_stop();
  void check_agreed(const Batch& first) const;
  void train_to_the_end();
  void run_epoch();
  void train_on(const Batch& batch, bool last);
  void validate();
  void end_epoch();
  void set_logs();
  void check_options() const;
  void check_names() const;

  TrainingParts parts() const;
  std::string callback_name(std::size_t i) const;
  void save();
  std::optional<Checkpoint> load();
  void resume();
  void take(const Checkpoint& saved);
  void resume_history(const Numbers& numbers);
  Fingerprint fingerprint() const;
  std::string where() const;

  Model model_;
  const DataLoader& data_;
  const FitOptions& options_;
  std::unique_ptr<ParallelRun> parallel_;
  bool thrown_by_all_ = false;  ///< whether an exception that passes is one that all processes have
  Steps steps_;
  Fingerprint fingerprint_;  ///< as training begins; empty without a checkpoint
  Position at_;
  MeanLoss loss_;  ///< of the epoch so far
  Logs logs_;
  History history_;
  std::string stopped_;
  std::vector<Tensor> validated_;  ///< what the validation of this epoch looked at
  bool ending_epoch_ = false;      ///< whether the running epoch stands in the history
};

/// Loss and metrics of a model over a loader, without changing its modes.
Logs evaluated(Steps& steps, const DataLoader& data, const std::vector<AnyMetric>& metrics, ParallelRun* parallel);

}  // namespace ferrite::train::detail
