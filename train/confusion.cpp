/// Confusion matrices as tables.
#include "ferrite/train/confusion.h"

#include <algorithm>
#include <iomanip>
#include <locale>
#include <numeric>
#include <sstream>

namespace ferrite::train {

Confusion::Confusion(std::int64_t classes) : classes_(classes) {
  if (classes < 1)
    throw ValueError("confusion: the number of classes must be positive, got " + std::to_string(classes));
  const std::int64_t counts = ferrite::detail::checked_mul(classes, classes, "confusion: pairs of classes");
  if (counts > ferrite::detail::kMostStored)
    throw ShapeError("confusion: too many pairs of classes: " + std::to_string(counts));
  counts_.resize(static_cast<std::size_t>(counts));
}

void Confusion::check(std::int64_t c) const {
  if (c < 0 || c >= classes_)
    throw ShapeError("confusion: class " + std::to_string(c) + " lies outside 0.." + std::to_string(classes_ - 1));
}

void Confusion::add(const Tensor& predicted, const Tensor& target, std::int64_t ignore_index) {
  if (predicted.shape() != target.shape())
    throw ShapeError("confusion: shapes differ: " + predicted.shape().str() + " and " + target.shape().str());
  const auto p = predicted.to_vector<std::int64_t>();
  const auto t = target.to_vector<std::int64_t>();
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (t[i] == ignore_index) continue;
    check(p[i]);
    check(t[i]);
  }
  for (std::size_t i = 0; i < p.size(); ++i)
    if (t[i] != ignore_index) ++counts_[static_cast<std::size_t>(t[i] * classes_ + p[i])];
}

std::int64_t Confusion::count(std::int64_t target, std::int64_t predicted) const {
  check(target);
  check(predicted);
  return counts_[static_cast<std::size_t>(target * classes_ + predicted)];
}

Tensor Confusion::counts() const { return Tensor::from(counts_, {classes_, classes_}); }

std::int64_t Confusion::total() const { return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}); }

double Confusion::accuracy() const {
  std::int64_t right = 0;
  for (std::int64_t c = 0; c < classes_; ++c) right += count(c, c);
  const std::int64_t n = total();
  return n ? static_cast<double>(right) / static_cast<double>(n) : 0;
}

std::string Confusion::str() const {
  std::ostringstream s;
  s.imbue(std::locale::classic());
  const std::string widest = std::to_string(*std::max_element(counts_.begin(), counts_.end()));
  const int width = std::max(5, static_cast<int>(widest.size()) + 1);
  s << "true \\ predicted";
  for (std::int64_t c = 0; c < classes_; ++c) s << std::setw(width) << c;
  s << "   right\n";
  for (std::int64_t t = 0; t < classes_; ++t) {
    std::int64_t n = 0;
    s << std::setw(16) << t;
    for (std::int64_t p = 0; p < classes_; ++p) {
      n += count(t, p);
      if (count(t, p))
        s << std::setw(width) << count(t, p);
      else
        s << std::setw(width) << '.';
    }
    const double share = n ? static_cast<double>(count(t, t)) / static_cast<double>(n) : 0;
    s << std::fixed << std::setprecision(1) << std::setw(7) << 100 * share << "%\n";
  }
  return s.str();
}

}  // namespace ferrite::train
