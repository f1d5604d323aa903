/// Metrics of numbers: absolute and squared errors, R2, means of a user's function.
#include <cmath>
#include <limits>

#include "ferrite/train/detail/counted.h"
#include "ferrite/train/metrics.h"

namespace ferrite::train {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// A sum over elements and how many they were.
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

/// With the mean and the sum of squares of targets by Welford's recurrence.
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

}  // namespace ferrite::train
