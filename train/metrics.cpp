/// Metrics of classes, of numbers and of sequences, the elements of a batch that count, and metrics by name.
#include "ferrite/train/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "ferrite/io/suggest.h"
#include "ferrite/tensor/normalization.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train::detail {
namespace {

/// The target classes of a batch, in row-major order, and whether each counts.
struct Targets {
  std::vector<std::int64_t> classes{};
  std::vector<bool> count{};
};

/// Predictions and targets of a batch as f64, in row-major order, and whether each counts.
struct Numbers {
  std::vector<double> prediction{}, target{};
  std::vector<bool> count{};
};

// ---- elements that count -------------------------------------------------------------------------------

std::string shapes(const Tensor& prediction, const Tensor& target) {
  return prediction.spec().str() + " and " + target.spec().str();
}

/// Returns whether each element of the target lies within the lengths, in row-major order.
std::vector<bool> within_lengths(const Batch& batch) {
  const Tensor& y = batch.y();
  std::vector<bool> count(static_cast<std::size_t>(y.numel()), true);
  const Tensor lengths = batch.target_lengths();
  if (!lengths.defined() || y.numel() == 0) return count;
  const std::int64_t T = y.shape()[1], inner = y.numel() / y.shape()[0] / T;
  const std::vector<std::int64_t> of = lengths.to_vector<std::int64_t>();
  std::size_t at = 0;
  for (const std::int64_t length : of)
    for (std::int64_t t = 0; t < T; ++t)
      for (std::int64_t i = 0; i < inner; ++i) count[at++] = t < length;
  return count;
}

/// Returns whether a prediction has one score for each target and no classes.
bool is_score(const Tensor& prediction, const Batch& batch) {
  const Shape &p = prediction.shape(), &y = batch.y().shape();
  if (p == y) return true;
  return p.rank() == y.rank() + 1 && p[-1] == 1 && p.numel() == y.numel();
}

/// Returns the target classes of a batch. Throws DtypeError for targets that are not integers (unless the predictions
/// are scores), ShapeError unless the prediction is [..., C], or [...] if `scores` are allowed, for targets [...], and
/// for a target that counts and is outside 0..C - 1 or not a whole number.
Targets targets_of(const char* who, const Tensor& prediction, const Batch& batch, std::int64_t ignore_index,
                   bool scores) {
  const Tensor& y = batch.y();
  const bool score = scores && is_score(prediction, batch);
  if (y.dtype() != Dtype::boolean && !is_integer(y.dtype()) && !score)
    throw DtypeError(std::string(who) + ": targets must be integers, got " + y.spec().str());
  std::int64_t C = 2;
  if (!score) {
    Shape wanted = y.shape();
    const bool classes = prediction.rank() == y.rank() + 1;
    if (classes) wanted.push_back(C = prediction.shape()[-1]);
    if (!classes || prediction.shape() != wanted)
      throw ShapeError(std::string(who) + ": predictions must be [..., C] for targets [...], got " +
                       shapes(prediction, y));
  }
  Targets out{cast(y, Dtype::i64).to_vector<std::int64_t>(), within_lengths(batch)};
  if (is_float(y.dtype())) {
    const std::vector<double> numbers = cast(y, Dtype::f64).to_vector<double>();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (out.count[i] && static_cast<double>(out.classes[i]) != numbers[i])
        throw ShapeError(std::string(who) + ": a target of " + reshape(y, {-1})[i].str() + " is no class");
  }
  for (std::size_t i = 0; i < out.classes.size(); ++i) {
    const std::int64_t c = out.classes[i];
    if (c == ignore_index) out.count[i] = false;
    if (out.count[i] && (c < 0 || c >= C))
      throw ShapeError(std::string(who) + ": class " + std::to_string(c) + " lies outside 0.." + std::to_string(C - 1));
  }
  return out;
}

/// Returns the predicted classes: the place of the largest entry along the last axis, or for scores without classes 1
/// if above 0, else 0. -1, no class, if a score is NaN.
std::vector<std::int64_t> predicted_classes(const Tensor& prediction, const Batch& batch) {
  const bool score = is_score(prediction, batch);
  const Tensor classes = score ? cast(gt(prediction, 0), Dtype::i64) : argmax(prediction, -1);
  if (!is_float(prediction.dtype()) || prediction.numel() == 0) return classes.to_vector<std::int64_t>();
  const Tensor largest = score ? prediction : amax(prediction, {-1});  // NaN where one is NaN
  return where(eq(largest, largest), classes, -1).to_vector<std::int64_t>();
}

Numbers numbers_of(const char* who, const Tensor& prediction, const Batch& batch) {
  const Tensor& y = batch.y();
  if (!is_score(prediction, batch))
    throw ShapeError(std::string(who) + ": predictions and targets must have one shape, got " + shapes(prediction, y));
  return {cast(prediction, Dtype::f64).to_vector<double>(), cast(y, Dtype::f64).to_vector<double>(),
          within_lengths(batch)};
}

/// Throws ValueError unless a saved state has `n` numbers.
void check_state(const std::string& who, const std::vector<double>& state, std::size_t n) {
  if (state.size() != n)
    throw ValueError("metric " + who + ": a state of " + std::to_string(state.size()) + " numbers, it has " +
                     std::to_string(n));
}

}  // namespace

}  // namespace ferrite::train::detail

// ---- classes: accuracy, the largest k, precision, recall, F1, the area under the ROC curve -------------

namespace ferrite::train {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// The base of metrics that are the share of right elements.
class Share : public Metric {
 public:
  bool larger_is_better() const override { return true; }
  void reset() override { right_ = all_ = 0; }
  double value() const override { return all_ > 0 ? right_ / all_ : kNothing; }
  MetricState state() const override { return {right_, all_}; }
  void restore(const MetricState& state) override {
    detail::check_state(name(), state, 2);
    right_ = state[0], all_ = state[1];
  }

 protected:
  void count(bool right) {
    right_ += right ? 1 : 0;
    all_ += 1;
  }

 private:
  double right_ = 0, all_ = 0;
};

class Accuracy final : public Share {
 public:
  explicit Accuracy(std::int64_t ignore_index) : ignore_index_(ignore_index) {}
  std::string name() const override { return "accuracy"; }
  void add(const Tensor& prediction, const Batch& batch) override {
    const detail::Targets y = detail::targets_of("accuracy", prediction, batch, ignore_index_, true);
    const std::vector<std::int64_t> of = detail::predicted_classes(prediction, batch);
    for (std::size_t i = 0; i < of.size(); ++i)
      if (y.count[i]) count(of[i] == y.classes[i]);
  }

 private:
  std::int64_t ignore_index_;
};

class TopK final : public Share {
 public:
  TopK(std::int64_t k, std::int64_t ignore_index) : k_(k), ignore_index_(ignore_index) {
    if (k < 1) throw ValueError("top_k_accuracy: k must be at least 1, got " + std::to_string(k));
  }
  std::string name() const override { return "top" + std::to_string(k_); }
  void add(const Tensor& prediction, const Batch& batch) override {
    const detail::Targets y = detail::targets_of("top_k_accuracy", prediction, batch, ignore_index_, false);
    const std::vector<double> scores = cast(prediction, Dtype::f64).to_vector<double>();
    const auto C = static_cast<std::size_t>(prediction.shape()[-1]);
    for (std::size_t i = 0; i < y.classes.size(); ++i) {
      if (!y.count[i]) continue;
      const auto row = scores.begin() + static_cast<std::ptrdiff_t>(i * C);
      const auto target = static_cast<std::size_t>(y.classes[i]);
      const double s = row[static_cast<std::ptrdiff_t>(target)];
      std::int64_t before = 0;  // of two equal scores the first counts as larger, as in argmax; NaN is the largest
      for (std::size_t c = 0; c < C; ++c) {
        const double other = row[static_cast<std::ptrdiff_t>(c)];
        if (other > s || std::isnan(other) || (other == s && c < target)) ++before;
      }
      count(before < k_ && !std::isnan(s));
    }
  }

 private:
  std::int64_t k_, ignore_index_;
};

/// The counts of one class: how often it was predicted rightly and wrongly, and how often it was missed.
struct ClassCounts {
  double right = 0, wrong = 0, missed = 0;  ///< true positives, false positives, false negatives
};

/// A metric as a function of the counts of a class.
struct ClassFormula {
  const char* name;
  double (*of)(const ClassCounts&);
};

double share(double part, double rest) { return part + rest > 0 ? part / (part + rest) : 0; }

constexpr ClassFormula kPrecision{"precision", [](const ClassCounts& n) { return share(n.right, n.wrong); }};
constexpr ClassFormula kRecall{"recall", [](const ClassCounts& n) { return share(n.right, n.missed); }};
constexpr ClassFormula kF1{"f1", [](const ClassCounts& n) { return share(2 * n.right, n.wrong + n.missed); }};

class OfClasses final : public Metric {
 public:
  OfClasses(const ClassFormula& formula, Average average, std::int64_t ignore_index)
      : formula_(formula), average_(average), ignore_index_(ignore_index) {}
  std::string name() const override { return formula_.name + std::string(suffix_of(average_)); }
  bool larger_is_better() const override { return true; }
  void reset() override { counts_.clear(); }
  void add(const Tensor& prediction, const Batch& batch) override {
    const detail::Targets y = detail::targets_of(formula_.name, prediction, batch, ignore_index_, true);
    const std::vector<std::int64_t> of = detail::predicted_classes(prediction, batch);
    const auto C = static_cast<std::size_t>(detail::is_score(prediction, batch) ? 2 : prediction.shape()[-1]);
    if (average_ == Average::binary && C != 2)
      throw ShapeError(std::string(formula_.name) + ": binary is for two classes, got predictions " +
                       prediction.spec().str());
    if (counts_.size() < C) counts_.resize(C);
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (!y.count[i]) continue;
      const auto t = static_cast<std::size_t>(y.classes[i]);
      if (of[i] == y.classes[i]) {
        counts_[t].right += 1;
        continue;
      }
      counts_[t].missed += 1;
      if (of[i] >= 0) counts_[static_cast<std::size_t>(of[i])].wrong += 1;
    }
  }
  double value() const override {
    double sum = 0, weights = 0;
    ClassCounts all;
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      const ClassCounts& n = counts_[c];
      if (average_ == Average::binary && c == 1) return formula_.of(n);
      if (n.right + n.wrong + n.missed == 0) continue;  // neither predicted nor a target: does not count
      const double weight = average_ == Average::weighted ? n.right + n.missed : 1;
      sum += weight * formula_.of(n);
      weights += weight;
      all = {all.right + n.right, all.wrong + n.wrong, all.missed + n.missed};
    }
    if (average_ == Average::micro && weights > 0) return formula_.of(all);
    return weights > 0 ? sum / weights : kNothing;
  }
  MetricState state() const override {
    MetricState all;
    for (const ClassCounts& n : counts_) all.insert(all.end(), {n.right, n.wrong, n.missed});
    return all;
  }
  void restore(const MetricState& state) override {
    if (state.size() % 3 != 0) detail::check_state(formula_.name, state, state.size() / 3 * 3);
    counts_.clear();
    for (std::size_t i = 0; i < state.size(); i += 3) counts_.push_back({state[i], state[i + 1], state[i + 2]});
  }

 private:
  static const char* suffix_of(Average average) {
    switch (average) {
      case Average::micro: return "_micro";
      case Average::weighted: return "_weighted";
      case Average::binary: return "_binary";
      case Average::macro: break;
    }
    return "";
  }

  const ClassFormula& formula_;
  Average average_;
  std::int64_t ignore_index_;
  std::vector<ClassCounts> counts_;  ///< counts of each class
};

class Auc final : public Metric {
 public:
  std::string name() const override { return "auc"; }
  bool larger_is_better() const override { return true; }
  void reset() override { scores_.clear(); }
  void add(const Tensor& prediction, const Batch& batch) override {
    const detail::Numbers n = detail::numbers_of("auc", prediction, batch);
    for (std::size_t i = 0; i < n.target.size(); ++i)
      if (n.count[i] && n.target[i] != 0 && n.target[i] != 1)
        throw ShapeError("auc: targets must be 0 or 1, got " + Scalar(n.target[i]).str());
    for (std::size_t i = 0; i < n.target.size(); ++i)
      if (n.count[i]) scores_.insert(scores_.end(), {n.prediction[i], n.target[i]});
  }
  double value() const override {
    const std::size_t n = scores_.size() / 2;
    for (std::size_t i = 0; i < n; ++i)
      if (std::isnan(scores_[2 * i])) return kNothing;  // NaN has no place in the order
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return scores_[2 * a] < scores_[2 * b]; });
    double positives = 0, ranks = 0;
    for (std::size_t i = 0; i < n;) {
      std::size_t end = i;
      double here = 0;
      for (; end < n && scores_[2 * order[end]] == scores_[2 * order[i]]; ++end) here += scores_[2 * order[end] + 1];
      ranks += here * (static_cast<double>(i + end) + 1) / 2;
      positives += here;
      i = end;
    }
    const double negatives = static_cast<double>(n) - positives;
    if (positives == 0 || negatives == 0) return kNothing;
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
  }
  MetricState state() const override { return scores_; }
  void restore(const MetricState& state) override {
    if (state.size() % 2 != 0) detail::check_state("auc", state, state.size() + 1);
    scores_ = state;
  }

 private:
  std::vector<double> scores_;  ///< pairs of a score and its target
};

}  // namespace

std::unique_ptr<Metric> accuracy(std::int64_t ignore_index) { return std::make_unique<Accuracy>(ignore_index); }
std::unique_ptr<Metric> top_k_accuracy(std::int64_t k, std::int64_t ignore_index) {
  return std::make_unique<TopK>(k, ignore_index);
}
std::unique_ptr<Metric> precision(Average average, std::int64_t ignore_index) {
  return std::make_unique<OfClasses>(kPrecision, average, ignore_index);
}
std::unique_ptr<Metric> recall(Average average, std::int64_t ignore_index) {
  return std::make_unique<OfClasses>(kRecall, average, ignore_index);
}
std::unique_ptr<Metric> f1(Average average, std::int64_t ignore_index) {
  return std::make_unique<OfClasses>(kF1, average, ignore_index);
}
std::unique_ptr<Metric> auc() { return std::make_unique<Auc>(); }

// ---- numbers: absolute and squared errors, R2, means of a user's function ------------------------------

namespace {

/// The mean of a function of the error over all elements.
class MeanError : public Metric {
 public:
  enum class Of : std::uint8_t { absolute, squared, root };
  explicit MeanError(Of of) : of_(of) {}
  std::string name() const override { return of_ == Of::absolute ? "mae" : of_ == Of::squared ? "mse" : "rmse"; }
  bool larger_is_better() const override { return false; }
  void reset() override { sum_ = n_ = 0; }
  void add(const Tensor& prediction, const Batch& batch) override {
    const detail::Numbers n = detail::numbers_of(name().c_str(), prediction, batch);
    for (std::size_t i = 0; i < n.target.size(); ++i) {
      if (!n.count[i]) continue;
      const double d = n.prediction[i] - n.target[i];
      sum_ += of_ == Of::absolute ? std::fabs(d) : d * d;
      n_ += 1;
    }
  }
  double value() const override {
    if (n_ == 0) return kNothing;
    return of_ == Of::root ? std::sqrt(sum_ / n_) : sum_ / n_;
  }
  MetricState state() const override { return {sum_, n_}; }
  void restore(const MetricState& state) override {
    detail::check_state(name(), state, 2);
    sum_ = state[0], n_ = state[1];
  }

 private:
  Of of_;
  double sum_ = 0, n_ = 0;
};

/// The metric R2; the mean and the sum of squares of the targets follow Welford's recurrence.
class R2 final : public Metric {
 public:
  std::string name() const override { return "r2"; }
  bool larger_is_better() const override { return true; }
  void reset() override { n_ = mean_ = squares_ = errors_ = 0; }
  void add(const Tensor& prediction, const Batch& batch) override {
    const detail::Numbers n = detail::numbers_of("r2", prediction, batch);
    for (std::size_t i = 0; i < n.target.size(); ++i) {
      if (!n.count[i]) continue;
      const double d = n.prediction[i] - n.target[i], off = n.target[i] - mean_;
      errors_ += d * d;
      mean_ += off / ++n_;
      squares_ += off * (n.target[i] - mean_);
    }
  }
  double value() const override {
    if (n_ == 0) return kNothing;
    if (squares_ > 0) return 1 - errors_ / squares_;
    return errors_ > 0 ? -std::numeric_limits<double>::infinity() : 1;
  }
  MetricState state() const override { return {n_, mean_, squares_, errors_}; }
  void restore(const MetricState& state) override {
    detail::check_state("r2", state, 4);
    n_ = state[0], mean_ = state[1], squares_ = state[2], errors_ = state[3];
  }

 private:
  double n_ = 0, mean_ = 0, squares_ = 0, errors_ = 0;
};

class MeanOf final : public Metric {
 public:
  using F = std::function<double(const Tensor&, const Batch&)>;
  MeanOf(std::string name, F f, bool larger_is_better)
      : name_(std::move(name)), f_(std::move(f)), larger_(larger_is_better) {
    if (!f_) throw ValueError("mean_of: the function is null");
  }
  std::string name() const override { return name_; }
  bool larger_is_better() const override { return larger_; }
  void reset() override { sum_ = n_ = 0; }
  void add(const Tensor& prediction, const Batch& batch) override {
    const double value = f_(prediction, batch);
    sum_ += value * static_cast<double>(batch.size());
    n_ += static_cast<double>(batch.size());
  }
  double value() const override { return n_ > 0 ? sum_ / n_ : kNothing; }
  MetricState state() const override { return {sum_, n_}; }
  void restore(const MetricState& state) override {
    detail::check_state(name_, state, 2);
    sum_ = state[0], n_ = state[1];
  }

 private:
  std::string name_;
  F f_;
  bool larger_;
  double sum_ = 0, n_ = 0;
};

}  // namespace

std::unique_ptr<Metric> mae() { return std::make_unique<MeanError>(MeanError::Of::absolute); }
std::unique_ptr<Metric> mse() { return std::make_unique<MeanError>(MeanError::Of::squared); }
std::unique_ptr<Metric> rmse() { return std::make_unique<MeanError>(MeanError::Of::root); }
std::unique_ptr<Metric> r2() { return std::make_unique<R2>(); }
std::unique_ptr<Metric> mean_of(std::string name, std::function<double(const Tensor&, const Batch&)> f,
                                bool larger_is_better) {
  return std::make_unique<MeanOf>(std::move(name), std::move(f), larger_is_better);
}

// ---- sequences: perplexity, edit distance --------------------------------------------------------------

namespace {

/// The base of metrics that are a function of the quotient of two sums.
class Quotient : public Metric {
 public:
  bool larger_is_better() const override { return false; }
  void reset() override { sum_ = n_ = 0; }
  MetricState state() const override { return {sum_, n_}; }
  void restore(const MetricState& state) override {
    detail::check_state(name(), state, 2);
    sum_ = state[0], n_ = state[1];
  }

 protected:
  double sum_ = 0, n_ = 0;
};

class Perplexity final : public Quotient {
 public:
  explicit Perplexity(std::int64_t ignore_index) : ignore_index_(ignore_index) {}
  std::string name() const override { return "perplexity"; }
  void add(const Tensor& prediction, const Batch& batch) override {
    const detail::Targets y = detail::targets_of("perplexity", prediction, batch, ignore_index_, false);
    const std::vector<double> log_p = log_softmax(cast(prediction, Dtype::f64), -1).to_vector<double>();
    const auto C = static_cast<std::size_t>(prediction.shape()[-1]);
    for (std::size_t i = 0; i < y.classes.size(); ++i) {
      if (!y.count[i]) continue;
      sum_ -= log_p[i * C + static_cast<std::size_t>(y.classes[i])];
      n_ += 1;
    }
  }
  double value() const override { return n_ > 0 ? std::exp(sum_ / n_) : kNothing; }

 private:
  std::int64_t ignore_index_;
};

class EditDistance final : public Quotient {
 public:
  explicit EditDistance(std::int64_t blank) : blank_(blank) {}
  std::string name() const override { return "edit_distance"; }
  void add(const Tensor& prediction, const Batch& batch) override {
    const Tensor& y = batch.y();
    if (prediction.rank() != 3 || y.rank() != 2 || prediction.shape()[0] != y.shape()[0])
      throw ShapeError("edit_distance: predictions must be [B, T, C] for targets [B, S], got " +
                       prediction.spec().str() + " and " + y.spec().str());
    const std::int64_t B = y.shape()[0], T = prediction.shape()[1], S = y.shape()[1];
    const std::vector<std::int64_t> steps = lengths(batch, 0, B, T), labels = lengths(batch, 1, B, S);
    const std::vector<std::int64_t> best = argmax(prediction, -1).to_vector<std::int64_t>();
    const std::vector<std::int64_t> target = cast(y, Dtype::i64).to_vector<std::int64_t>();
    for (std::int64_t b = 0; b < B; ++b) {
      const auto row = static_cast<std::size_t>(b);
      std::vector<std::int64_t> decoded;
      for (std::int64_t t = 0, before = blank_; t < steps[row]; ++t) {
        const std::int64_t c = best[static_cast<std::size_t>(b * T + t)];
        if (c != blank_ && c != before) decoded.push_back(c);
        before = c;
      }
      const auto wanted =
          std::span(target).subspan(static_cast<std::size_t>(b * S), static_cast<std::size_t>(labels[row]));
      sum_ += static_cast<double>(levenshtein(decoded, wanted));
      n_ += static_cast<double>(labels[row]);
    }
  }
  double value() const override { return n_ > 0 ? sum_ / n_ : kNothing; }

 private:
  /// Returns the lengths of a field, at most `most`: a net with strides has fewer outputs than inputs.
  static std::vector<std::int64_t> lengths(const Batch& batch, std::size_t field, std::int64_t B, std::int64_t most) {
    if (field >= batch.lengths.size() || !batch.lengths[field].defined())
      return std::vector<std::int64_t>(static_cast<std::size_t>(B), most);
    std::vector<std::int64_t> of = batch.lengths[field].to_vector<std::int64_t>();
    for (std::int64_t& n : of) n = std::min(n, most);
    return of;
  }
  std::int64_t blank_;
};

}  // namespace

std::int64_t levenshtein(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  std::vector<std::int64_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = static_cast<std::int64_t>(j);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t diagonal = row[0];
    row[0] = static_cast<std::int64_t>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::int64_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::unique_ptr<Metric> perplexity(std::int64_t ignore_index) { return std::make_unique<Perplexity>(ignore_index); }
std::unique_ptr<Metric> edit_distance(std::int64_t blank) { return std::make_unique<EditDistance>(blank); }

// ---- names ---------------------------------------------------------------------------------------------

namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Metric> (*make)();
};

constexpr std::array<Entry, 20> kMetrics{{{"accuracy", [] { return accuracy(); }},
                                          {"precision", [] { return precision(); }},
                                          {"precision_micro", [] { return precision(Average::micro); }},
                                          {"precision_weighted", [] { return precision(Average::weighted); }},
                                          {"precision_binary", [] { return precision(Average::binary); }},
                                          {"recall", [] { return recall(); }},
                                          {"recall_micro", [] { return recall(Average::micro); }},
                                          {"recall_weighted", [] { return recall(Average::weighted); }},
                                          {"recall_binary", [] { return recall(Average::binary); }},
                                          {"f1", [] { return f1(); }},
                                          {"f1_micro", [] { return f1(Average::micro); }},
                                          {"f1_weighted", [] { return f1(Average::weighted); }},
                                          {"f1_binary", [] { return f1(Average::binary); }},
                                          {"auc", [] { return auc(); }},
                                          {"mae", [] { return mae(); }},
                                          {"mse", [] { return mse(); }},
                                          {"rmse", [] { return rmse(); }},
                                          {"r2", [] { return r2(); }},
                                          {"perplexity", [] { return perplexity(); }},
                                          {"edit_distance", [] { return edit_distance(); }}}};

}  // namespace

std::unique_ptr<Metric> metric(std::string_view name) {
  for (const Entry& e : kMetrics)
    if (e.name == name) return e.make();
  std::int64_t k = 0;
  if (name.starts_with("top") &&
      std::from_chars(name.data() + 3, name.data() + name.size(), k).ptr == name.data() + name.size() && k > 0)
    return top_k_accuracy(k);
  std::array<std::string_view, kMetrics.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMetrics[i].name;
  const std::string_view near = io::detail::nearest(name, names);
  std::string list = "top<k>";
  for (const std::string_view n : names) list += ", " + std::string(n);
  throw ValueError("metric: there is no '" + std::string(name) + "'; " +
                   (near.empty() ? "there are " + list : "did you mean '" + std::string(near) + "'?"));
}

}  // namespace ferrite::train
