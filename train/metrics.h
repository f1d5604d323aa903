#pragma once
/// Metrics: how good predictions are, over all batches of an epoch.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// What a metric has seen so far, as numbers that a checkpoint holds.
using MetricState = std::vector<double>;

/// A number that says how good predictions are. It sees the batches of an epoch one by one and gives its value for all
/// of them together, so that it does not depend on how an epoch is cut into batches. Steps of the target count as far
/// as `Batch::target_lengths` reach. What does not count, by lengths or as a target to ignore, may be anything: NaN
/// there reaches no value. Scores that are NaN where they count predict no class, so they are never right.
///
/// By name, in `fit`'s options and the command line: "accuracy", "top5" (any number), "f1", "precision" and "recall",
/// each also with "_micro", "_weighted" or "_binary" at its end, "mae", "rmse", "mse", "r2", "perplexity", "auc",
/// "edit_distance". Others are derived from it.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual std::string name() const = 0;
  /// Whether larger values are better.
  virtual bool larger_is_better() const = 0;
  virtual void reset() = 0;
  /// Takes a batch in: what the model gave, and the batch whose second field is the target. Throws ShapeError and
  /// DtypeError for what does not fit; nothing is taken in then.
  virtual void add(const Tensor& prediction, const Batch& batch) = 0;
  /// Of all that was added since `reset`; NaN for nothing.
  virtual double value() const = 0;
  virtual MetricState state() const = 0;
  /// Throws ValueError for numbers that `state` never gave.
  virtual void restore(const MetricState& state) = 0;
};

/// The metric of that name. Throws ValueError for a name that there is not, saying which may be meant.
std::unique_ptr<Metric> metric(std::string_view name);

/// Share of predictions [..., C] whose largest entry stands at the target [...], integers; of scores [...] without
/// classes whose sign is that of the target, 0 or 1. Elements of the target `ignore_index` do not count. A float target
/// that is no whole number throws ShapeError, as a class that there is not.
std::unique_ptr<Metric> accuracy(std::int64_t ignore_index = -100);
/// Share of predictions [..., C] whose k largest entries hold the target.
std::unique_ptr<Metric> top_k_accuracy(std::int64_t k, std::int64_t ignore_index = -100);

enum class Average : std::uint8_t { macro, micro, weighted, binary };
/// Precision tp / (tp + fp), recall tp / (tp + fn) and F1 = 2 tp / (2 tp + fp + fn) of classes: their mean (macro), of
/// all counts together (micro), their mean weighted by how often the class is the target, or that of class 1 alone
/// (binary). Predictions [..., C], or scores [...] of class 1 above 0. Classes that are neither predicted nor a target
/// do not count, and 0 / 0 is 0, as in sklearn.metrics.
std::unique_ptr<Metric> precision(Average average = Average::macro, std::int64_t ignore_index = -100);
std::unique_ptr<Metric> recall(Average average = Average::macro, std::int64_t ignore_index = -100);
std::unique_ptr<Metric> f1(Average average = Average::macro, std::int64_t ignore_index = -100);
/// Area under the receiver operating curve of scores [...] against targets 0 and 1 of their shape: the share of pairs
/// of a positive and a negative whose scores stand in the right order, ties counting half. Keeps all scores.
std::unique_ptr<Metric> auc();

/// Mean |y - t|, mean (y - t)^2, its root, and 1 - sum (y - t)^2 / sum (t - mean t)^2 over all elements.
std::unique_ptr<Metric> mae();
std::unique_ptr<Metric> mse();
std::unique_ptr<Metric> rmse();
std::unique_ptr<Metric> r2();

/// exp of the mean cross entropy of logits [..., C] and targets [...].
std::unique_ptr<Metric> perplexity(std::int64_t ignore_index = -100);

/// Mean edit distance (Levenshtein) between the greedy decoding of CTC, logits [B, T, C] without repetitions and
/// `blank`, and the target [B, S], as share of the target's length: the label error rate.
std::unique_ptr<Metric> edit_distance(std::int64_t blank = 0);
/// The same of two sequences of labels: insertions, removals and replacements that make one the other.
std::int64_t levenshtein(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

/// A metric of a user's: the mean of what `f` gives for each batch, weighted by its examples.
std::unique_ptr<Metric> mean_of(std::string name, std::function<double(const Tensor& prediction, const Batch&)> f,
                                bool larger_is_better = false);

}  // namespace ferrite::train
