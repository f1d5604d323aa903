#pragma once
/// Numbers that follow from extents, as programs traced at several extents show them.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/compile/symbolic_number.h"
#include "ferrite/exchange/emit/extent_trials.h"

namespace ferrite::exchange::detail {

using ExtentNumbers = std::vector<SymbolicNumber>;

inline bool are_constant(const ExtentNumbers& all) { return std::ranges::all_of(all, &SymbolicNumber::is_constant); }

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
  std::optional<SymbolicNumber> explain(const std::vector<std::int64_t>& values) const;
  std::optional<ExtentReal> explain(const std::vector<double>& values) const;
  /// The same for lists of one length, number by number.
  std::optional<ExtentNumbers> explain(const std::vector<Shape>& lists) const;

  /// "T", "2*B*T+1", as the name of an extent.
  std::string text(const SymbolicNumber& n) const;

 private:
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
