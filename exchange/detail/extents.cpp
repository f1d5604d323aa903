/// Explains numbers by extents: a product of some of them, scaled and shifted.
#include "ferrite/exchange/detail/extents.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "ferrite/exchange/export_error.h"

namespace ferrite::exchange::detail {
namespace {

double near_whole(double v) {
  const double whole = std::round(v);
  return std::fabs(v - whole) <= 1e-5 * std::max(1.0, std::fabs(v)) ? whole : v;
}

}  // namespace

Extents::Extents(const ExtentTrials& trials, std::vector<ExtentTrials::Sizes> sizes)
    : trials_(trials), names_(trials.names()), sizes_(std::move(sizes)), steps_(trials.steps()) {
  for (unsigned set = 1; set < 1U << names_.size(); ++set) sets_.push_back(set);
  std::ranges::stable_sort(sets_, {}, [](unsigned set) { return std::popcount(set); });
}

std::optional<ExtentNumber> Extents::explain(const std::vector<std::int64_t>& values) const {
  if (std::ranges::all_of(values, [&](std::int64_t n) { return n == values[0]; }))
    return ExtentNumber{0, 0, values[0], 1};
  for (const unsigned set : sets_)
    if (const auto found = explain(values, set)) return found;
  return std::nullopt;
}

std::optional<ExtentNumber> Extents::explain(const std::vector<std::int64_t>& values, unsigned set) const {
  const std::size_t other = differing(set);
  const std::int64_t p = product(set, 0), rise = values[other] - values[0], run = product(set, other) - p;
  const std::int64_t common = std::gcd(rise, run) * (run < 0 ? -1 : 1);
  if (rise == 0) return std::nullopt;
  ExtentNumber n{set, rise / common, 0, run / common};
  n.more = n.divisor * values[0] - n.factor * p;
  for (std::size_t t = 0; t < values.size(); ++t)
    if (n.factor * product(set, t) + n.more != n.divisor * values[t]) return std::nullopt;
  std::int64_t multiple = 1;
  for (std::size_t k = 0; k < names_.size(); ++k)
    if (set >> k & 1) multiple *= steps_[k];
  return multiple % n.divisor == 0 ? std::optional(n) : std::nullopt;  // whole only where extents are multiples
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
    const std::optional<ExtentNumber> n = explain(values);
    if (!n) return std::nullopt;
    all.push_back(*n);
  }
  return all;
}

std::string Extents::text(const ExtentNumber& n) const {
  std::string s;
  for (std::size_t k = 0; k < names_.size(); ++k)
    if (n.extents >> k & 1) s += (s.empty() ? "" : "*") + names_[k];
  if (n.factor != 1) s = std::to_string(n.factor) + "*" + s;
  if (n.more != 0) s += (n.more > 0 ? "+" : "") + std::to_string(n.more);
  if (n.divisor != 1) s = "(" + s + ")/" + std::to_string(n.divisor);
  return s;
}

bool Extents::may_be_negative(const ExtentNumber& n) const {
  return n.factor < 0 || n.factor * product(n.extents, ExtentTrials::Sizes(names_.size(), 1)) + n.more < 0;
}

void Extents::check_small(const std::string& who, const std::vector<KeepExtentsOpen::Reads>& reads,
                          const std::function<void(const std::vector<Spec>&)>& make) const {
  if (reads[0].empty()) return;
  const auto follows = [&](const std::vector<std::int64_t>& values, std::int64_t number, bool counts,
                           const ExtentTrials::Sizes& sizes) {
    const std::optional<ExtentNumber> n = explain(values);
    if (!n) return true;  // the programs that are compared do not depend on it
    const std::int64_t expected = n->factor * product(n->extents, sizes) + n->more;
    return expected == n->divisor * number || (counts && number == 0 && expected < 0);
  };
  const auto same = [&](std::size_t i, const KeepExtentsOpen::Read& small, const ExtentTrials::Sizes& sizes) {
    std::vector<std::int64_t> lengths;
    for (const KeepExtentsOpen::Reads& r : reads) {
      if (r.size() <= i || r[i].node != reads[0][i].node) return true;  // not one program: compared otherwise
      lengths.push_back(static_cast<std::int64_t>(r[i].numbers.size()));
    }
    bool fits = small.node == reads[0][i].node &&
                follows(lengths, static_cast<std::int64_t>(small.numbers.size()), true, sizes);
    if (!std::ranges::all_of(lengths, [&](std::int64_t n) { return n == lengths[0]; })) return fits;
    for (std::size_t k = 0; fits && k < small.numbers.size(); ++k) {
      std::vector<std::int64_t> values;
      for (const KeepExtentsOpen::Reads& r : reads) values.push_back(r[i].numbers[k]);
      fits = follows(values, small.numbers[k], small.counts, sizes);
    }
    return fits;
  };
  for (const auto& [sizes, small] : trials_.small_reads(make))
    for (std::size_t i = 0; i < std::min(small.size(), reads[0].size()); ++i)
      if (!same(i, small[i], sizes))
        throw ExportError(who + ": an extent that should stay open is fixed: " + reads[0][i].node +
                          " reads something else where " + trials_.text(sizes) +
                          "; export it without this dynamic axis");
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
