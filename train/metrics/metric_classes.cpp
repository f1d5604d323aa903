/// Metrics of classes: accuracy, the largest k, precision, recall and F1, the area under the ROC curve.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/train/detail/counted.h"
#include "ferrite/train/metrics.h"

namespace ferrite::train {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// A share of elements.
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
      std::int64_t before = 0;  // of two equal ones the first counts as larger, as in argmax; NaN is the largest
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

/// How often a class was predicted and was the target.
struct ClassCounts {
  double right = 0, wrong = 0, missed = 0;  ///< tp, fp, fn
};

/// A number that is made of the counts of a class.
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
      if (n.right + n.wrong + n.missed == 0) continue;  // of a class that nobody has seen there is nothing to say
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
  std::vector<ClassCounts> counts_;  ///< by class
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
      if (std::isnan(scores_[2 * i])) return kNothing;  // it has no place in the order
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

}  // namespace ferrite::train
