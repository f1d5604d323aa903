/// Chooses extents at which a function is traced, explains numbers by them, and compares what a function reads at small
/// extents with what follows from its reads at others.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/export_error.h"

namespace ferrite::exchange::detail {

FERRITE_PER_THREAD constinit ferrite::detail::PerThread<KeepExtentsOpen*> KeepExtentsOpen::active_(nullptr);

// ---- trials --------------------------------------------------------------------------------------------------------

namespace {

constexpr std::int64_t kMostApart = std::int64_t{1} << 31;

/// Adds copies of `base` in which one size at a time is replaced.
template <class F>
void add_each(const ExtentTrials::Sizes& base, const F& other, std::vector<ExtentTrials::Sizes>& all) {
  for (std::size_t k = 0; k < base.size(); ++k) {
    all.push_back(base);
    all.back()[k] = other(k);
  }
}

}  // namespace

ExtentTrials::ExtentTrials(const std::string& who, std::span<const Spec> inputs, const std::vector<DynamicAxis>& axes)
    : who_(who), inputs_(inputs), axes_(axes) {
  const auto refuse = [&](const std::string& what) { throw ValueError(who + ": " + what); };
  for (const DynamicAxis& a : axes) {
    if (a.name.empty()) refuse("a dynamic axis needs a name: input " + std::to_string(a.input));
    constexpr std::string_view kMarks = "_.:";
    const auto fits = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || kMarks.find(c) != std::string_view::npos;
    };
    if (!std::ranges::all_of(a.name, fits))
      refuse("a name of a dynamic axis has letters, digits, '_', '.' and ':', since others are computed from it: '" +
             a.name + "'");
    if (a.input >= inputs.size() || a.axis < 0 || a.axis >= inputs[a.input].shape.rank())
      refuse("there is no axis " + std::to_string(a.axis) + " of input " + std::to_string(a.input) + " for '" + a.name +
             "'");
    if (a.multiple < 1) refuse("extents must be a positive number apart: " + std::to_string(a.multiple));
    const std::int64_t extent = inputs[a.input].shape[a.axis];
    if (extent % a.multiple != 0)
      refuse("'" + a.name + "' is " + std::to_string(extent) + " in axis " + std::to_string(a.axis) + " of input " +
             std::to_string(a.input) + ", no multiple of " + std::to_string(a.multiple) +
             "; give an input of such an extent");
    const auto k = static_cast<std::size_t>(std::ranges::find(names_, a.name) - names_.begin());
    if (k == names_.size()) {
      names_.push_back(a.name);
      given_.push_back(extent);
      steps_.push_back(1);
    }
    if (given_[k] != extent)
      refuse("the axes of '" + a.name + "' differ: " + std::to_string(given_[k]) + " and " + std::to_string(extent));
    if (steps_[k] > kMostApart / a.multiple) refuse("extents of '" + a.name + "' are too far apart");
    steps_[k] = std::lcm(steps_[k], a.multiple);
  }
}

std::vector<ExtentTrials::Sizes> ExtentTrials::near_sizes() const {
  Sizes base;
  for (std::size_t k = 0; k < names_.size(); ++k)
    base.push_back(given_[k] + steps_[k] * (2 + 3 * static_cast<std::int64_t>(k)));
  std::vector<Sizes> all{base};
  for (const std::int64_t more : {1, 2, 3, 4, 6, 7})  // all remainders of divisions by up to 8
    add_each(
        base, [&](std::size_t k) { return base[k] + more * steps_[k]; }, all);
  all.push_back(base);
  for (std::size_t k = 0; k < names_.size(); ++k) all.back()[k] += (5 + 6 * static_cast<std::int64_t>(k)) * steps_[k];
  return all;
}

std::vector<ExtentTrials::Sizes> ExtentTrials::far_sizes() const {
  const Sizes base = near_sizes()[0];
  std::vector<Sizes> all;
  const auto about = [&](std::size_t k, std::int64_t n) { return base[k] + (n - base[k]) / steps_[k] * steps_[k]; };
  add_each(
      base, [&](std::size_t k) { return about(k, base[k] + 61); }, all);
  for (const std::int64_t divisor : {240, 720})  // multiples of most small numbers
    add_each(
        base, [&](std::size_t k) { return about(k, (base[k] / divisor + 1) * divisor); }, all);
  all.push_back(base);
  for (std::size_t k = 0; k < names_.size(); ++k) all.back()[k] += (127 + 2 * static_cast<std::int64_t>(k)) * steps_[k];
  return all;
}

ExtentTrials::Sizes ExtentTrials::halfway(const Sizes& from, const Sizes& to) const {
  Sizes middle = from;
  for (std::size_t k = 0; k < middle.size(); ++k) middle[k] += (to[k] - from[k]) / 2 / steps_[k] * steps_[k];
  return middle;
}

std::vector<ExtentTrials::Sizes> ExtentTrials::small_sizes() const {
  const Sizes base = near_sizes()[0];
  std::vector<Sizes> all;
  for (const std::int64_t more : {0, 1}) {
    Sizes least;
    for (std::size_t k = 0; k < names_.size(); ++k)
      least.push_back((std::max<std::int64_t>(given_[k], 1) - 1) % steps_[k] + 1 + more * steps_[k]);
    add_each(
        base, [&](std::size_t k) { return least[k]; }, all);
    all.push_back(least);
  }
  return all;
}

std::string ExtentTrials::text(const Sizes& sizes) const {
  std::string s;
  for (std::size_t k = 0; k < names_.size(); ++k)
    s += (k == 0 ? "" : ", ") + names_[k] + " is " + std::to_string(sizes[k]);
  return s;
}

std::vector<Spec> ExtentTrials::specs(const Sizes& sizes) const {
  std::vector<Spec> out(inputs_.begin(), inputs_.end());
  for (const DynamicAxis& a : axes_)
    out[a.input].shape[a.axis] = sizes[static_cast<std::size_t>(std::ranges::find(names_, a.name) - names_.begin())];
  return out;
}

// ---- numbers -------------------------------------------------------------------------------------------------------

namespace {

bool is_near(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b));
}

/// Returns the integer that v is up to rounding.
double near_whole(double v, double tolerance) {
  const double whole = std::round(v);
  return is_near(whole, v, 10 * tolerance) ? whole : v;
}

/// Returns the relative error that a few operations in a dtype may leave.
double tolerance_of(Dtype dtype) { return dtype == Dtype::f64 ? 1e-13 : 1e-6; }

}  // namespace

Extents::Extents(const ExtentTrials& trials, std::vector<ExtentTrials::Sizes> sizes)
    : names_(trials.names()),
      open_(std::move(sizes)),
      sizes_(open_),
      given_(trials.given()),
      steps_(trials.steps()),
      products_(SymbolicNumber::products(names_.size())) {}

void Extents::learn(const std::vector<std::int64_t>& values) {
  constexpr std::size_t kMostQuotients = 10;
  if (quotients_.size() == kMostQuotients || symbols() == SymbolicNumber::kMaxSymbols || explain(values)) return;
  std::vector<SymbolicNumber> all = SymbolicNumber::rounded_with_values(open_, values);
  if (all.empty()) all = SymbolicNumber::rounded_with_values(sizes_, values);
  if (all.empty() || !agree(all)) return;
  quotients_.push_back(all[0]);
  for (std::size_t t = 0; t < values.size(); ++t) sizes_[t].push_back(values[t]);
}

bool Extents::agree(const std::vector<SymbolicNumber>& numbers) const {
  constexpr std::int64_t kPeriod = 840;  // of remainders of divisions by up to 8
  for (std::size_t k = 0; k < names_.size() && numbers.size() > 1; ++k)
    for (std::int64_t i = 0; i < kPeriod; ++i) {
      ExtentTrials::Sizes sizes = given_;
      sizes[k] += i * steps_[k];
      const std::int64_t first = at(numbers[0], sizes);
      for (const SymbolicNumber& n : numbers)
        if (at(n, sizes) != first) return false;
    }
  return true;
}

std::int64_t Extents::rests(const SymbolicNumber& n, std::int64_t divisor) const {
  std::int64_t apart = divisor;
  for (const SymbolicNumber::Term& t : n.terms()) {
    std::int64_t step = t.factor % divisor;
    for (std::size_t k = 0; k < steps_.size(); ++k)
      if (t.has(k)) step = step * (steps_[k] % divisor) % divisor;
    apart = std::gcd(apart, step);
  }
  return n.divisor() == 1 ? divisor / apart : divisor;
}

bool Extents::may_be_negative(const SymbolicNumber& n) const {
  const auto is_quotient = [&](const SymbolicNumber::Term& t) { return t.symbols >> names_.size() != 0; };
  return n.may_be_negative() || (n.more() < 0 && std::ranges::any_of(n.terms(), is_quotient));
}

std::int64_t Extents::at(const SymbolicNumber& n, ExtentTrials::Sizes sizes) const {
  for (const SymbolicNumber& q : quotients_) sizes.push_back(q.at(sizes));
  return n.at(sizes);
}

/// Explains values by the open extents alone where that is possible, else also by quotients.
std::optional<SymbolicNumber> Extents::explain(const std::vector<std::int64_t>& values) const {
  std::optional<SymbolicNumber> n = SymbolicNumber::with_values(open_, values, steps_);
  return n || quotients_.empty() ? n : SymbolicNumber::with_values(sizes_, values, steps_);
}

std::optional<SymbolicNumber> Extents::explain_bounds(const std::vector<std::int64_t>& values) const {
  if (const auto n = explain(values)) return n;
  std::vector<std::int64_t> above;
  std::vector<ExtentTrials::Sizes> sizes;
  for (std::size_t t = 0; t < values.size(); ++t)
    if (values[t] > 0) above.push_back(values[t]), sizes.push_back(open_[t]);
  if (above.empty()) return {};
  const std::optional<SymbolicNumber> n = SymbolicNumber::with_values(sizes, above, steps_);
  for (std::size_t t = 0; t < values.size() && n; ++t)
    if (std::max<std::int64_t>(n->at(open_[t]), 0) != values[t]) return {};
  return n;
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
  std::size_t k = all.size();
  for (const SymbolicNumber& q : quotients_) {
    if (n == SymbolicNumber::symbol(k++)) return text(q);  // without parentheses around it
    all.push_back("(" + q.str(all) + ")");
  }
  std::string text = n.str(all);
  std::erase(text, ' ');
  return text;
}

// ---- reads ---------------------------------------------------------------------------------------------------------

namespace {

using Reads = KeepExtentsOpen::Reads;
using Sizes = ExtentTrials::Sizes;

/// Returns whether the number that has these values at the sizes of `extents` is `number` at `sizes`.
bool follows(const Extents& extents, const std::vector<std::int64_t>& values, std::int64_t number, bool counts,
             const Sizes& sizes) {
  const std::optional<SymbolicNumber> n = extents.explain(values);
  if (!n) return true;  // the programs that are compared do not depend on it
  const std::int64_t there = extents.at(*n, sizes);
  return there == number || (counts && number == 0 && there < 0);
}

/// Returns whether the i-th read, evaluated at `sizes`, is the read `small`.
bool follows(const Extents& extents, const std::vector<Reads>& reads, std::size_t i, const KeepExtentsOpen::Read& small,
             const Sizes& sizes) {
  const KeepExtentsOpen::Read& first = reads[0][i];
  std::vector<std::int64_t> lengths;
  for (const Reads& r : reads) {
    if (r.size() <= i || r[i].node != first.node) return true;  // not one program: compared otherwise
    lengths.push_back(static_cast<std::int64_t>(r[i].numbers.size()));
  }
  const auto length = static_cast<std::int64_t>(small.numbers.size());
  if (small.node != first.node || !follows(extents, lengths, length, /*counts=*/true, sizes)) return false;
  if (std::ranges::any_of(lengths, [&](std::int64_t n) { return n != lengths[0]; })) return true;  // a list that grows
  for (std::size_t k = 0; k < small.numbers.size(); ++k) {
    std::vector<std::int64_t> values;
    for (const Reads& r : reads) values.push_back(r[i].numbers[k]);
    if (!follows(extents, values, small.numbers[k], small.counts, sizes)) return false;
  }
  return true;
}

}  // namespace

void check_small_extents(const std::string& who, const ExtentTrials& trials, const Extents& extents,
                         const std::vector<Reads>& reads, const std::function<void(const std::vector<Spec>&)>& make) {
  if (reads[0].empty()) return;
  for (const Sizes& sizes : trials.small_sizes()) {
    KeepExtentsOpen open;
    try {
      make(trials.specs(sizes));
    } catch (const Error&) {  // too small for the function
      continue;
    }
    const Reads small = open.take();
    for (std::size_t i = 0; i < std::min(small.size(), reads[0].size()); ++i)
      if (!follows(extents, reads, i, small[i], sizes))
        throw ExportError(who + ": an extent that should stay open is fixed: " + reads[0][i].node +
                          " reads something else where " + trials.text(sizes) +
                          "; export it without this dynamic axis");
  }
}

}  // namespace ferrite::exchange::detail
