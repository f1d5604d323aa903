/// Metrics of sequences: perplexity, edit distance.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/tensor/normalization.h"
#include "ferrite/train/detail/counted.h"
#include "ferrite/train/metrics.h"

namespace ferrite::train {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// A quotient of two sums.
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
  /// Of a field, at most what the rows hold: outputs of a net that strides are fewer than its inputs.
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

}  // namespace ferrite::train
