/// Explains numbers by extents.
#include "ferrite/exchange/emit/extents.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ferrite::exchange::detail {
namespace {

double near_whole(double v) {
  const double whole = std::round(v);
  return std::fabs(v - whole) <= 1e-5 * std::max(1.0, std::fabs(v)) ? whole : v;
}

}  // namespace

Extents::Extents(const ExtentTrials& trials, std::vector<ExtentTrials::Sizes> sizes)
    : names_(trials.names()), sizes_(std::move(sizes)), steps_(trials.steps()) {
  for (unsigned set = 1; set < 1U << names_.size(); ++set) sets_.push_back(set);
  std::ranges::stable_sort(sets_, {}, [](unsigned set) { return std::popcount(set); });
}

std::optional<SymbolicNumber> Extents::explain(const std::vector<std::int64_t>& values) const {
  return SymbolicNumber::with_values(sizes_, values, steps_);
}

std::optional<ExtentReal> Extents::explain(const std::vector<double>& values) const {
  std::vector<double> inverses;
  for (const double v : values) inverses.push_back(1 / v);
  for (const bool inverse : {false, true})
    for (const unsigned set : sets_)
      if (auto found = explain(inverse ? inverses : values, set)) {
        found->inverse = inverse;
        return found;
      }
  return std::nullopt;
}

std::optional<ExtentReal> Extents::explain(const std::vector<double>& values, unsigned set) const {
  const std::size_t other = differing(set);
  const auto at = [&](std::size_t program) { return static_cast<double>(product(set, program)); };
  ExtentReal r{set, near_whole((values[other] - values[0]) / (at(other) - at(0)))};
  r.more = near_whole(values[0] - r.factor * at(0));
  bool fits = r.factor != 0;
  for (std::size_t t = 0; t < values.size(); ++t)
    fits &= std::fabs(r.factor * at(t) + r.more - values[t]) <= 1e-6 * std::max(1.0, std::fabs(values[t]));
  return fits ? std::optional(r) : std::nullopt;
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
  std::string text = n.str(names_);
  std::erase(text, ' ');
  return text;
}

std::int64_t Extents::product(unsigned set, const ExtentTrials::Sizes& sizes) const {
  std::int64_t n = 1;
  for (std::size_t k = 0; k < names_.size(); ++k)
    if (set >> k & 1) n *= sizes[k];
  return n;
}

std::size_t Extents::differing(unsigned set) const {
  std::size_t farthest = 0;
  for (std::size_t t = 1; t < sizes_.size(); ++t)
    if (product(set, t) > product(set, farthest)) farthest = t;
  return farthest;
}

}  // namespace ferrite::exchange::detail
