#pragma once
/// Numbers that follow from extents, as programs traced at several extents show them.
#include <algorithm>
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/exchange/emit/extent_trials.h"

namespace ferrite::exchange::detail {

/// (factor * product of some extents + more) / divisor: what an integer is in all programs.
struct ExtentNumber {
  unsigned extents = 0;  ///< bit k: the k-th is a factor; none: a constant, `more`
  std::int64_t factor = 0, more = 0, divisor = 1;

  bool is_constant() const { return extents == 0; }
  auto operator<=>(const ExtentNumber&) const = default;
};

using ExtentNumbers = std::vector<ExtentNumber>;

inline bool are_constant(const ExtentNumbers& all) { return std::ranges::all_of(all, &ExtentNumber::is_constant); }

/// factor * product of some extents + more, but for the rounding of an f32; or 1 / that.
struct ExtentReal {
  unsigned extents = 0;
  double factor = 0, more = 0;
  bool inverse = false;
};

/// Which numbers the extents explain.
class Extents {
 public:
  Extents(const ExtentTrials& trials, std::vector<ExtentTrials::Sizes> sizes);

  const std::vector<std::string>& names() const& { return names_; }
  const std::vector<ExtentTrials::Sizes>& sizes() const& { return sizes_; }

  /// What has these values in the programs, in the order of `sizes`; none where no arithmetic on the extents gives
  /// them.
  std::optional<ExtentNumber> explain(const std::vector<std::int64_t>& values) const;
  std::optional<ExtentReal> explain(const std::vector<double>& values) const;
  /// The same for lists of one length, number by number.
  std::optional<ExtentNumbers> explain(const std::vector<Shape>& lists) const;

  /// What it is at these extents, times its divisor.
  std::int64_t dividend(const ExtentNumber& n, const ExtentTrials::Sizes& sizes) const;
  /// Whether it is below 0 at some extents.
  bool may_be_negative(const ExtentNumber& n) const;

  /// "T", "2*B*T+1", as the name of an extent.
  std::string text(const ExtentNumber& n) const;

 private:
  std::optional<ExtentNumber> explain(const std::vector<std::int64_t>& values, unsigned set) const;
  std::optional<ExtentReal> explain(const std::vector<double>& values, unsigned set) const;
  std::int64_t product(unsigned set, const ExtentTrials::Sizes& sizes) const;
  std::int64_t product(unsigned set, std::size_t program) const { return product(set, sizes_[program]); }
  /// The program whose product is farthest from that of the first.
  std::size_t differing(unsigned set) const;

  std::vector<std::string> names_;
  std::vector<ExtentTrials::Sizes> sizes_;
  ExtentTrials::Sizes steps_;
  std::vector<unsigned> sets_{};  ///< of extents, small ones first
};

}  // namespace ferrite::exchange::detail
