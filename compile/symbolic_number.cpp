/// Numbers that depend on symbols, and how they are found from their values.
#include "ferrite/compile/symbolic_number.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/extents.h"

namespace ferrite {
namespace {

using detail::checked_add, detail::checked_mul, detail::mul_overflows;
using Sizes = std::vector<std::int64_t>;

std::int64_t product(std::uint32_t symbols, std::span<const std::int64_t> sizes) {
  std::int64_t p = 1;
  for (std::size_t k = 0; k < SymbolicNumber::kMaxSymbols; ++k) {
    if ((symbols >> k & 1) == 0) continue;
    if (k >= sizes.size())
      throw ValueError("symbols: " + std::to_string(sizes.size()) + " sizes given, symbol " + std::to_string(k) +
                       " has none");
    p = checked_mul(p, sizes[k], "symbols");
  }
  return p;
}

long double real_product(std::uint32_t symbols, std::span<const std::int64_t> sizes) {
  long double p = 1;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    if ((symbols >> k & 1) != 0) p *= static_cast<long double>(sizes[k]);
  return p;
}

/// Solves for the factors x of some products, from differences to the first values: rows of products, then the value.
/// Empty where the rows do not determine them.
std::vector<long double> solved(std::vector<std::vector<long double>> rows, std::size_t unknowns) {
  for (std::size_t c = 0; c < unknowns; ++c) {
    const auto below = [c](const auto& a, const auto& b) { return std::fabs(a[c]) < std::fabs(b[c]); };
    const auto pivot = std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(c), rows.end(), below);
    if (pivot == rows.end() || std::fabs((*pivot)[c]) < 0.01L) return {};
    std::swap(*pivot, rows[c]);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r == c) continue;
      const long double times = rows[r][c] / rows[c][c];
      for (std::size_t k = c; k <= unknowns; ++k) rows[r][k] -= times * rows[c][k];
    }
  }
  std::vector<long double> x;
  for (std::size_t c = 0; c < unknowns; ++c) x.push_back(rows[c][unknowns] / rows[c][c]);
  return x;
}

/// Calls f(list) with each choice of `count` of these products, in order, until it gives true.
template <class F>
bool each_choice(std::span<const std::uint32_t> products, std::size_t count, std::vector<std::uint32_t>& chosen,
                 const F& f) {
  if (chosen.size() == count) return f(chosen);
  for (std::size_t i = 0; i < products.size(); ++i) {
    chosen.push_back(products[i]);
    if (each_choice(products.subspan(i + 1), count, chosen, f)) return true;
    chosen.pop_back();
  }
  return false;
}

/// Products of symbols, those of few first.
std::vector<std::uint32_t> products_of(std::size_t symbols) {
  std::vector<std::uint32_t> all(((std::size_t{1} << symbols) - 1));
  std::iota(all.begin(), all.end(), 1U);
  std::ranges::stable_sort(all, {}, [](std::uint32_t set) { return std::popcount(set); });
  return all;
}

/// What divides the product of steps: the divisors that a number may have.
std::vector<std::int64_t> divisors_of(std::span<const std::int64_t> steps) {
  std::int64_t all = 1;
  for (const std::int64_t s : steps)
    if (mul_overflows(all, s, all)) return {1};
  constexpr std::int64_t kMost = 4096;
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= std::min(all, kMost); ++d)
    if (all % d == 0) divisors.push_back(d);
  return divisors;
}

}  // namespace

SymbolicNumber SymbolicNumber::symbol(std::size_t k) {
  if (k >= kMaxSymbols)
    throw ValueError("symbols: at most " + std::to_string(kMaxSymbols) + " are possible, got symbol " +
                     std::to_string(k));
  SymbolicNumber n;
  n.terms_.push_back({std::uint32_t{1} << k, 1});
  return n;
}

std::vector<SymbolicNumber> SymbolicNumber::products(std::size_t symbols) {
  std::vector<SymbolicNumber> all;
  for (const std::uint32_t set : products_of(symbols)) {
    all.emplace_back();
    all.back().terms_.push_back({set, 1});
  }
  return all;
}

std::optional<SymbolicNumber> SymbolicNumber::with_values(std::span<const Sizes> sizes,
                                                          std::span<const std::int64_t> values,
                                                          std::span<const std::int64_t> steps) {
  if (std::ranges::all_of(values, [&](std::int64_t v) { return v == values[0]; })) return SymbolicNumber(values[0]);
  const std::size_t symbols = sizes[0].size();
  const std::vector<std::uint32_t> products = products_of(symbols);
  const std::vector<std::int64_t> divisors = divisors_of(steps);

  SymbolicNumber n;
  /// Whether the number with these factors, times `divisor`, has all values.
  const auto fits = [&](const std::vector<std::uint32_t>& chosen, const std::vector<long double>& x) {
    n.terms_.clear();
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const long double factor = x[i] * static_cast<long double>(n.divisor_), whole = std::round(factor);
      if (whole == 0 || std::fabs(whole) > 0x1p62L || std::fabs(factor - whole) > 1e-6L) return false;
      n.terms_.push_back({chosen[i], static_cast<std::int64_t>(whole)});
      std::int64_t apart = n.terms_.back().factor;
      for (std::size_t k = 0; k < steps.size(); ++k)
        if (n.terms_.back().has(k) && mul_overflows(apart, steps[k], apart)) return false;
      if (apart % n.divisor_ != 0) return false;
    }
    std::ranges::sort(n.terms_);
    try {
      n.more_ = 0;
      n.more_ = checked_add(checked_mul(n.divisor_, values[0], "symbols"), -n.dividend(sizes[0]), "symbols");
      for (std::size_t t = 0; t < values.size(); ++t)
        if (n.dividend(sizes[t]) != checked_mul(n.divisor_, values[t], "symbols")) return false;
    } catch (const ShapeError&) {
      return false;
    }
    return true;
  };
  const auto found = [&](const std::vector<std::uint32_t>& chosen) {
    if (values.size() < chosen.size() + 2) return false;
    std::vector<std::vector<long double>> rows;
    for (std::size_t t = 1; t < values.size(); ++t) {
      rows.emplace_back();
      for (const std::uint32_t set : chosen)
        rows.back().push_back(real_product(set, sizes[t]) - real_product(set, sizes[0]));
      rows.back().push_back(static_cast<long double>(values[t]) - static_cast<long double>(values[0]));
    }
    const std::vector<long double> x = solved(std::move(rows), chosen.size());
    if (x.empty()) return false;
    for (const std::int64_t d : divisors) {
      n.divisor_ = d;
      if ((d == 1 || values.size() >= chosen.size() + 3) && fits(chosen, x)) return true;
    }
    return false;
  };
  const std::size_t most = symbols <= 3 ? 3 : symbols <= 8 ? 2 : 1;
  std::vector<std::uint32_t> chosen;
  for (std::size_t count = 1; count <= std::min(most, products.size()); ++count)
    if (each_choice(products, count, chosen, found)) return n;
  if (symbols == 3 && found(products)) return n;
  return std::nullopt;
}

std::optional<SymbolicNumber> SymbolicNumber::rounded_with_values(std::span<const Sizes> sizes,
                                                                  std::span<const std::int64_t> values) {
  constexpr std::int64_t kMostDivisor = 8;
  constexpr long double kMostFactor = 1 << 20, kMostSize = 0x1p40L;
  std::optional<SymbolicNumber> found;
  for (const std::uint32_t set : products_of(sizes[0].size())) {
    const auto of = [set](const Sizes& s) { return real_product(set, s); };
    const auto near = std::ranges::min_element(sizes, {}, of), far = std::ranges::max_element(sizes, {}, of);
    if (of(*far) > kMostSize || of(*near) == of(*far)) continue;
    const auto value_at = [&](auto at) {
      return static_cast<long double>(values[static_cast<std::size_t>(at - sizes.begin())]);
    };
    const long double slope = (value_at(far) - value_at(near)) / (of(*far) - of(*near));
    for (std::int64_t d = 2; d <= kMostDivisor; ++d) {
      const long double whole = std::round(slope * static_cast<long double>(d));
      if (whole == 0 || std::fabs(whole) > kMostFactor) continue;
      const auto factor = static_cast<std::int64_t>(whole);
      if (std::gcd(factor, d) != 1) continue;
      std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
      for (std::size_t t = 0; t < values.size(); ++t) {
        if (std::abs(static_cast<long double>(values[t])) > kMostSize) return std::nullopt;
        const std::int64_t rest = d * values[t] - factor * product(set, sizes[t]);
        least = std::max(least, rest);
        most = std::min(most, rest + d - 1);
      }
      if (least > most) continue;
      if (least < most || found) return std::nullopt;
      found.emplace(least);
      found->terms_.push_back({set, factor});
      found->divisor_ = d;
    }
  }
  return found;
}

std::int64_t SymbolicNumber::dividend(std::span<const std::int64_t> sizes) const {
  std::int64_t sum = more_;
  for (const Term& t : terms_)
    sum = checked_add(sum, checked_mul(t.factor, product(t.symbols, sizes), "symbols"), "symbols");
  return sum;
}

std::int64_t SymbolicNumber::at(std::span<const std::int64_t> sizes) const {
  const std::int64_t sum = dividend(sizes);
  return sum / divisor_ - (sum % divisor_ < 0 ? 1 : 0);
}

bool SymbolicNumber::may_be_negative() const {
  const bool falls = std::ranges::any_of(terms_, [](const Term& t) { return t.factor < 0; });
  return falls || dividend(Sizes(kMaxSymbols, 1)) < 0;
}

std::string SymbolicNumber::str(std::span<const std::string> symbols) const {
  std::string text;
  const auto add = [&](std::int64_t factor, const std::string& product) {
    if (!text.empty()) text += factor < 0 ? " - " : " + ";
    std::string term = text.empty() || factor > 0 ? std::to_string(factor) : std::to_string(factor).substr(1);
    if (!product.empty() && (term == "1" || term == "-1")) term.pop_back();
    if (!product.empty() && !term.empty() && term != "-") term += "*";
    text += term + product;
  };
  for (auto t = terms_.rbegin(); t != terms_.rend(); ++t) {
    std::string product;
    for (std::size_t k = 0; k < symbols.size(); ++k)
      if (t->has(k)) product += (product.empty() ? "" : "*") + symbols[k];
    add(t->factor, product);
  }
  if (more_ != 0 || terms_.empty()) add(more_, "");
  return divisor_ == 1 ? text : "(" + text + ")/" + std::to_string(divisor_);
}

}  // namespace ferrite
