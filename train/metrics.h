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

/// The state of a metric, as numbers that a checkpoint holds.
using MetricState = std::vector<double>;

/// A number that says how good predictions are. It sees the batches of an epoch one by one and returns its value for
/// all of them together, so that the value does not depend on how an epoch is cut into batches. Steps of the target
/// after `Batch::target_lengths` and targets to ignore do not count; their predictions may be anything, even NaN. A
/// score that counts and is NaN predicts no class, so it is never right.
///
/// By name, in `fit`'s options and the command line: "accuracy", "top5" (any number), "f1", "precision" and "recall",
/// each also with the suffix "_micro", "_weighted" or "_binary", "mae", "rmse", "mse", "r2", "perplexity", "auc",
/// "edit_distance". Derive from this class for others.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual std::string name() const = 0;
  /// Returns whether larger values are better.
  virtual bool larger_is_better() const = 0;
  /// Forgets everything added, as at the beginning of an epoch.
  virtual void reset() = 0;
  /// Adds the prediction for a batch, whose second field is the target. Throws ShapeError or DtypeError when they do
  /// not fit; nothing is added then.
  virtual void add(const Tensor& prediction, const Batch& batch) = 0;
  /// Returns the value for everything added since `reset`; NaN when nothing was.
  virtual double value() const = 0;
  /// Returns everything added since `reset`, as numbers for a checkpoint.
  virtual MetricState state() const = 0;
  /// Restores what `state` returned. Throws ValueError for numbers that `state` cannot have returned.
  virtual void restore(const MetricState& state) = 0;
};

/// Returns a metric by its name. Throws ValueError for an unknown name, with a suggestion.
std::unique_ptr<Metric> metric(std::string_view name);

/// Returns the metric of the share of right predictions. A prediction [..., C] is right if its largest entry is that of
/// the target [...], an integer. A score [...] without classes is right if it is above 0 for target 1, else for target
/// 0. Targets equal to `ignore_index` do not count. A class out of range throws ShapeError, as does a float target that
/// is not a whole number.
std::unique_ptr<Metric> accuracy(std::int64_t ignore_index = -100);
/// Returns the metric of the share of predictions [..., C] whose k largest entries include the target's. Throws
/// ValueError for k < 1.
std::unique_ptr<Metric> top_k_accuracy(std::int64_t k, std::int64_t ignore_index = -100);

/// The way in which `precision`, `recall` and `f1` combine classes.
enum class Average : std::uint8_t { macro, micro, weighted, binary };
/// Returns the metric of the precision tp / (tp + fp) of classes. The value is the mean over classes (macro), that of
/// the counts of all classes together (micro), the mean weighted by how often a class is the target (weighted), or that
/// of class 1 alone (binary). Predictions are [..., C], or scores [...] that predict class 1 above 0. Classes that are
/// neither predicted nor a target do not count, and 0 / 0 is 0, as in sklearn.metrics.
std::unique_ptr<Metric> precision(Average average = Average::macro, std::int64_t ignore_index = -100);
/// Returns the metric of the recall tp / (tp + fn) of classes, with the rules of `precision`.
std::unique_ptr<Metric> recall(Average average = Average::macro, std::int64_t ignore_index = -100);
/// Returns the metric of F1 = 2 tp / (2 tp + fp + fn) of classes, with the rules of `precision`.
std::unique_ptr<Metric> f1(Average average = Average::macro, std::int64_t ignore_index = -100);
/// Returns the metric of the area under the receiver operating curve of scores [...] for targets 0 and 1 of the same
/// shape: the share of pairs of a positive and a negative whose scores are in the right order; ties count half. It
/// keeps all scores.
std::unique_ptr<Metric> auc();

/// Returns the metric of the mean absolute error over all elements, the mean of |y - t|.
std::unique_ptr<Metric> mae();
/// Returns the metric of the mean squared error over all elements, the mean of (y - t)^2.
std::unique_ptr<Metric> mse();
/// Returns the metric of the root of the mean squared error over all elements.
std::unique_ptr<Metric> rmse();
/// Returns the metric of the coefficient of determination over all elements, 1 - sum (y - t)^2 / sum (t - mean t)^2.
std::unique_ptr<Metric> r2();

/// Returns the metric of the perplexity: exp of the mean cross entropy of logits [..., C] and targets [...].
std::unique_ptr<Metric> perplexity(std::int64_t ignore_index = -100);

/// Returns the metric of the label error rate of CTC: the sum of the edit distances (Levenshtein) between greedy
/// decodings of logits [B, T, C], without repetitions and `blank`, and targets [B, S], divided by the sum of the
/// targets' lengths.
std::unique_ptr<Metric> edit_distance(std::int64_t blank = 0);
/// Returns the edit distance of two sequences of labels: the least number of insertions, removals and replacements that
/// turn one into the other.
std::int64_t levenshtein(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

/// Returns a metric of the user's: the mean of what `f` returns for each batch, weighted by the size of the batch.
/// Throws ValueError for a null function.
std::unique_ptr<Metric> mean_of(std::string name, std::function<double(const Tensor& prediction, const Batch&)> f,
                                bool larger_is_better = false);

}  // namespace ferrite::train
