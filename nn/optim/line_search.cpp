/// A line search for points with the strong Wolfe conditions.
#include "ferrite/nn/optim/detail/line_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace ferrite::nn::detail {
namespace {

constexpr double kDecrease = 1e-4, kCurvature = 0.9, kTolerance = 1e-9;

/// The minimum of the cubic through two points with their slopes, within bounds.
double interpolate(const LinePoint& a, const LinePoint& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const auto from = [&](const LinePoint& near, const LinePoint& far) {
    return far.at - (far.at - near.at) * ((far.slope + d2 - d1) / (far.slope - near.slope + 2 * d2));
  };
  const double at = a.at <= b.at ? from(a, b) : from(b, a);
  return std::min(std::max(at, low), high);
}

class Search {
 public:
  Search(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, std::int64_t most)
      : evaluate_(evaluate), start_(start), most_(most) {}

  LineSearch run(double first, double largest) {
    if (!bracket(first)) zoom(largest);
    return {std::move(bracket_[low_]), evaluations_};
  }

 private:
  LinePoint trial(double at) {
    ++evaluations_;
    return evaluate_(at);
  }
  bool decreases(const LinePoint& p) const { return p.loss <= start_.loss + kDecrease * p.at * start_.slope; }
  bool flat(const LinePoint& p) const { return std::fabs(p.slope) <= -kCurvature * start_.slope; }

  /// Goes on until a point or an interval that holds one is found. Whether it is a point.
  bool bracket(double first) {
    LinePoint before = start_, now = trial(first);
    for (; iterations_ < most_; ++iterations_) {
      if (!decreases(now) || (iterations_ > 1 && now.loss >= before.loss)) return hold(before, now);
      if (flat(now)) {
        bracket_[0] = std::move(now);
        return true;
      }
      if (now.slope >= 0) return hold(before, now);
      const double next = interpolate(before, now, now.at + 0.01 * (now.at - before.at), now.at * 10);
      before = std::move(now);
      now = trial(next);
    }
    return hold(start_, now);
  }

  bool hold(const LinePoint& a, const LinePoint& b) {
    bracket_ = {a, b};
    low_ = a.loss <= b.loss ? 0 : 1;
    return false;
  }

  /// A trial that is not too near to the ends of the interval twice in a row.
  double next_trial(bool& stuck) const {
    const double left = std::min(bracket_[0].at, bracket_[1].at), right = std::max(bracket_[0].at, bracket_[1].at);
    const double at = interpolate(bracket_[0], bracket_[1], left, right), margin = 0.1 * (right - left);
    if (std::min(right - at, at - left) >= margin) {
      stuck = false;
      return at;
    }
    if (!stuck && at < right && at > left) {
      stuck = true;
      return at;
    }
    stuck = false;
    return std::fabs(at - right) < std::fabs(at - left) ? right - margin : left + margin;
  }

  /// Narrows the interval.
  void zoom(double largest) {
    bool stuck = false;
    while (iterations_ < most_) {
      if (std::fabs(bracket_[1].at - bracket_[0].at) * largest < kTolerance) return;
      LinePoint now = trial(next_trial(stuck));
      ++iterations_;
      const std::size_t high = 1 - low_;
      if (!decreases(now) || now.loss >= bracket_[low_].loss) {
        bracket_[high] = std::move(now);
        low_ = bracket_[0].loss <= bracket_[1].loss ? 0 : 1;
        continue;
      }
      const bool done = flat(now);
      if (!done && now.slope * (bracket_[high].at - bracket_[low_].at) >= 0) bracket_[high] = bracket_[low_];
      bracket_[low_] = std::move(now);
      if (done) return;
    }
  }

  const std::function<LinePoint(double)>& evaluate_;
  const LinePoint& start_;
  std::int64_t most_, iterations_ = 0, evaluations_ = 0;
  std::array<LinePoint, 2> bracket_{};
  std::size_t low_ = 0;
};

}  // namespace

LineSearch search_strong_wolfe(const std::function<LinePoint(double at)>& evaluate, const LinePoint& start,
                               double first, double largest, std::int64_t most_iterations) {
  return Search(evaluate, start, most_iterations).run(first, largest);
}

}  // namespace ferrite::nn::detail
