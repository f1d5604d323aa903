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

/// factor * number + more, or 1 / that, but for the rounding of a dtype.
struct ExtentReal {
  SymbolicNumber number{};
  double factor = 1, more = 0;
  bool inverse = false;
};

/// Explains numbers that differ between programs by their extents.
class Extents {
 public:
  Extents(const ExtentTrials& trials, std::vector<ExtentTrials::Sizes> sizes);

  /// Explains what has these values by a new symbol, if it is a rounded quotient of what is known, as the steps that a
  /// stride leaves: later numbers may be sums of products with it. To be asked for every extent before any number is
  /// explained.
  void learn(const std::vector<std::int64_t>& values);

  /// The open extents, which are the first symbols.
  const std::vector<std::string>& names() const& { return names_; }
  /// The quotients, which are the symbols behind them; each is of symbols in front of it.
  const std::vector<SymbolicNumber>& quotients() const& { return quotients_; }
  std::size_t symbols() const { return names_.size() + quotients_.size(); }
  /// The value of a number where the open extents are these.
  std::int64_t at(const SymbolicNumber& n, ExtentTrials::Sizes sizes) const;

  /// What has these values in the programs, in the order of `sizes`; none where no arithmetic on the extents gives
  /// them.
  std::optional<SymbolicNumber> explain(const std::vector<std::int64_t>& values) const;
  std::optional<ExtentReal> explain(const std::vector<double>& values, Dtype dtype) const;
  /// The same for lists of one length, number by number.
  std::optional<ExtentNumbers> explain(const std::vector<Shape>& lists) const;

  /// "T", "2*B*T+1", as the name of an extent.
  std::string text(const SymbolicNumber& n) const;

 private:
  /// Values that are whole, but for rounding.
  std::optional<ExtentReal> explain_whole(const std::vector<double>& values, double tolerance) const;
  /// A product of symbols, scaled and shifted.
  std::optional<ExtentReal> explain_product(const std::vector<double>& values, const SymbolicNumber& product,
                                            double tolerance) const;

  std::vector<std::string> names_;
  std::vector<SymbolicNumber> quotients_{};
  std::vector<ExtentTrials::Sizes> open_;   ///< by program: the open extents
  std::vector<ExtentTrials::Sizes> sizes_;  ///< by program: these and the quotients
  ExtentTrials::Sizes steps_;
  std::vector<SymbolicNumber> products_{};  ///< of extents, of few first
};

}  // namespace ferrite::exchange::detail
