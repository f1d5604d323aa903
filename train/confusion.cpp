#include "ferrite/train/confusion.h"

#include <iomanip>
#include <numeric>
#include <sstream>

namespace ferrite::train {

Confusion::Confusion(std::int64_t classes) : classes_(classes) {
  if (classes < 1)
    throw ValueError("confusion: the number of classes must be positive, got " + std::to_string(classes));
  counts_.resize(static_cast<std::size_t>(classes * classes));
}

void Confusion::add(const Tensor& predicted, const Tensor& target) {
  if (predicted.shape() != target.shape())
    throw ShapeError("confusion: shapes differ: " + predicted.shape().str() + " and " + target.shape().str());
  const auto p = predicted.to_vector<std::int64_t>();
  const auto t = target.to_vector<std::int64_t>();
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] < 0 || p[i] >= classes_ || t[i] < 0 || t[i] >= classes_)
      throw ShapeError("confusion: class " + std::to_string(std::max(p[i], t[i])) + " lies outside 0.." +
                       std::to_string(classes_ - 1));
    ++counts_[static_cast<std::size_t>(t[i] * classes_ + p[i])];
  }
}

std::int64_t Confusion::count(std::int64_t target, std::int64_t predicted) const {
  return counts_.at(static_cast<std::size_t>(target * classes_ + predicted));
}

std::int64_t Confusion::total() const { return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}); }

double Confusion::accuracy() const {
  std::int64_t right = 0;
  for (std::int64_t c = 0; c < classes_; ++c) right += count(c, c);
  const std::int64_t n = total();
  return n ? static_cast<double>(right) / static_cast<double>(n) : 0;
}

std::string Confusion::str() const {
  std::ostringstream s;
  s << "true \\ predicted";
  for (std::int64_t c = 0; c < classes_; ++c) s << std::setw(5) << c;
  s << "   right\n";
  for (std::int64_t t = 0; t < classes_; ++t) {
    std::int64_t n = 0;
    s << std::setw(16) << t;
    for (std::int64_t p = 0; p < classes_; ++p) {
      n += count(t, p);
      if (count(t, p))
        s << std::setw(5) << count(t, p);
      else
        s << std::setw(5) << '.';
    }
    const double share = n ? static_cast<double>(count(t, t)) / static_cast<double>(n) : 0;
    s << std::fixed << std::setprecision(1) << std::setw(7) << 100 * share << "%\n";
  }
  return s.str();
}

}  // namespace ferrite::train
