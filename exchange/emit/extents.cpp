/// Explains numbers by extents.
#include "ferrite/exchange/emit/extents.h"

#include <algorithm>
#include <cmath>

namespace ferrite::exchange::detail {
namespace {

bool is_near(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b));
}

/// The whole number that rounding has moved a little.
double near_whole(double v, double tolerance) {
  const double whole = std::round(v);
  return is_near(whole, v, 10 * tolerance) ? whole : v;
}

/// The relative error that a few operations in a dtype may leave.
double tolerance_of(Dtype dtype) { return dtype == Dtype::f64 ? 1e-13 : 1e-6; }

}  // namespace

Extents::Extents(const ExtentTrials& trials, std::vector<ExtentTrials::Sizes> sizes)
    : names_(trials.names()),
      open_(std::move(sizes)),
      sizes_(open_),
      steps_(trials.steps()),
      products_(SymbolicNumber::products(names_.size())) {}

void Extents::learn(const std::vector<std::int64_t>& values) {
  constexpr std::size_t kMostQuotients = 6;
  if (quotients_.size() == kMostQuotients || symbols() == SymbolicNumber::kMaxSymbols || explain(values)) return;
  std::optional<SymbolicNumber> n = SymbolicNumber::rounded_with_values(open_, values);
  if (!n) n = SymbolicNumber::rounded_with_values(sizes_, values);
  if (!n) return;
  quotients_.push_back(*n);
  for (std::size_t t = 0; t < values.size(); ++t) sizes_[t].push_back(values[t]);
}

std::int64_t Extents::at(const SymbolicNumber& n, ExtentTrials::Sizes sizes) const {
  for (const SymbolicNumber& q : quotients_) sizes.push_back(q.at(sizes));
  return n.at(sizes);
}

/// By the open extents alone where that is possible.
std::optional<SymbolicNumber> Extents::explain(const std::vector<std::int64_t>& values) const {
  std::optional<SymbolicNumber> n = SymbolicNumber::with_values(open_, values, steps_);
  return n || quotients_.empty() ? n : SymbolicNumber::with_values(sizes_, values, steps_);
}

std::optional<ExtentReal> Extents::explain(const std::vector<double>& values, Dtype dtype) const {
  const double tolerance = tolerance_of(dtype);
  std::vector<double> inverses;
  for (const double v : values) inverses.push_back(1 / v);
  for (const bool inverse : {false, true}) {
    const std::vector<double>& all = inverse ? inverses : values;
    std::optional<ExtentReal> found = explain_whole(all, tolerance);
    for (std::size_t k = 0; k < products_.size() && !found; ++k) found = explain_product(all, products_[k], tolerance);
    if (!found) continue;
    found->inverse = inverse;
    return found;
  }
  return std::nullopt;
}

std::optional<ExtentReal> Extents::explain_whole(const std::vector<double>& values, double tolerance) const {
  constexpr double kExact = 1 << 24;
  std::vector<std::int64_t> whole;
  for (const double v : values) {
    if (!(std::fabs(v) <= kExact) || !is_near(std::round(v), v, tolerance)) return std::nullopt;
    whole.push_back(static_cast<std::int64_t>(std::round(v)));
  }
  const std::optional<SymbolicNumber> n = explain(whole);
  return n && !n->is_constant() ? std::optional(ExtentReal{*n}) : std::nullopt;
}

std::optional<ExtentReal> Extents::explain_product(const std::vector<double>& values, const SymbolicNumber& product,
                                                   double tolerance) const {
  std::vector<double> at;
  for (const ExtentTrials::Sizes& s : open_) at.push_back(static_cast<double>(product.at(s)));
  const auto far = static_cast<std::size_t>(std::ranges::max_element(at) - at.begin());
  ExtentReal r{product, near_whole((values[far] - values[0]) / (at[far] - at[0]), tolerance)};
  r.more = near_whole(values[0] - r.factor * at[0], tolerance);
  for (std::size_t t = 0; t < values.size(); ++t)
    if (!is_near(r.factor * at[t] + r.more, values[t], tolerance)) return std::nullopt;
  return r.factor != 0 ? std::optional(r) : std::nullopt;
}

std::optional<ExtentNumbers> Extents::explain(const std::vector<Shape>& lists) const {
  ExtentNumbers all;
  for (int k = 0; k < lists[0].rank(); ++k) {
    std::vector<std::int64_t> values;
    for (const Shape& s : lists) values.push_back(s[k]);
    const std::optional<SymbolicNumber> n = explain(values);
    if (!n) return std::nullopt;
    all.push_back(*n);
  }
  return all;
}

std::string Extents::text(const SymbolicNumber& n) const {
  std::vector<std::string> all = names_;
  for (const SymbolicNumber& q : quotients_) all.push_back("(" + q.str(all) + ")");
  std::string text = n.str(all);
  std::erase(text, ' ');
  return text;
}

}  // namespace ferrite::exchange::detail
