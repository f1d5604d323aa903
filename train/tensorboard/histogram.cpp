/// Counts values in the buckets of TensorFlow (tensorflow/core/lib/histogram), whose limits grow geometrically.
#include "ferrite/train/tensorboard/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ferrite/tensor/ops.h"
#include "ferrite/train/tensorboard/message.h"

namespace ferrite::train::detail {
namespace {

/// Upper limits, excluded from their buckets.
const std::vector<double>& limits() {
  static const std::vector<double> all = [] {
    std::vector<double> upward;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) upward.push_back(limit);
    upward.push_back(std::numeric_limits<double>::max());
    std::vector<double> both;
    for (auto limit = upward.rbegin(); limit != upward.rend(); ++limit) both.push_back(-*limit);
    both.push_back(0);
    both.insert(both.end(), upward.begin(), upward.end());
    return both;
  }();
  return all;
}

/// One bucket for each run of empty ones.
struct Buckets {
  std::vector<double> ends{}, counts{};
};

Buckets joined(const std::vector<double>& counts) {
  Buckets buckets;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0 && i + 1 < counts.size() && counts[i + 1] == 0) continue;
    buckets.ends.push_back(limits()[i]);
    buckets.counts.push_back(counts[i]);
  }
  return buckets;
}

}  // namespace

std::string encode_histogram(const Tensor& values) {
  const std::vector<double> all = cast(values.unmarked(), Dtype::f64).to_vector<double>();
  if (all.empty()) throw ValueError("histogram: no values: " + values.shape().str());
  std::vector<double> counts(limits().size());
  double sum = 0, squares = 0;
  for (const double x : all) {
    if (!std::isfinite(x)) throw ValueError("histogram: a value is not finite: " + Scalar(x).str());
    sum += x;
    squares += x * x;
    const auto bucket = std::ranges::upper_bound(limits(), x) - limits().begin();
    ++counts[std::min(static_cast<std::size_t>(bucket), counts.size() - 1)];
  }
  const auto [least, most] = std::ranges::minmax(all);
  const Buckets buckets = joined(counts);
  Message message;
  message.number(1, least).number(2, most).number(3, static_cast<double>(all.size())).number(4, sum).number(5, squares);
  return message.numbers(6, buckets.ends).numbers(7, buckets.counts).text();
}

}  // namespace ferrite::train::detail
