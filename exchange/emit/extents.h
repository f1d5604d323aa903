#pragma once
/// The extents at which a function is traced to see how its program depends on them, and the formulas by which the
/// numbers in those programs follow from extents.
#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/compile/symbolic_number.h"
#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/exchange/emit/keep_extents_open.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

/// The extents at which a function with dynamic axes is traced.
class ExtentTrials {
 public:
  using Sizes = std::vector<std::int64_t>;  ///< one extent for each name

  /// Throws ValueError, which begins with `who`, for an axis without a name or that the inputs do not have, and for
  /// axes of one name whose extents differ.
  ExtentTrials(const std::string& who, std::span<const Spec> inputs, const std::vector<DynamicAxis>& axes);

  const std::vector<std::string>& names() const& { return names_; }
  /// Returns, for each name, the number that all its extents are multiples of.
  const Sizes& steps() const& { return steps_; }
  /// Returns the extents of the example.
  const Sizes& given() const& { return given_; }
  const std::string& who() const& { return who_; }

  /// The extents that were tried, with the programs that they gave.
  template <class Program>
  struct Tried {
    std::vector<Sizes> sizes{};
    std::vector<Program> programs{};
    std::vector<KeepExtentsOpen::Reads> reads{};
  };
  /// Calls `make` for the inputs at each of the extents. Where it throws at extents far from the example, nearer ones
  /// are tried instead.
  template <class F>
  auto try_all(const F& make) const {
    KeepExtentsOpen open;
    Tried<decltype(make(specs({})))> tried;
    const auto add = [&](const Sizes& s) {
      (void)open.take();
      tried.programs.push_back(make(specs(s)));
      tried.sizes.push_back(s);
      tried.reads.push_back(open.take());
    };
    const std::vector<Sizes> near = near_sizes();
    for (const Sizes& s : near) add(s);
    for (Sizes s : far_sizes())
      while (std::ranges::find(tried.sizes, s) == tried.sizes.end()) try {
          add(s);
        } catch (const ExportError&) {
          throw;
        } catch (const Error&) {  // a table has an end, for one
          s = halfway(near[0], s);
        }
    return tried;
  }
  /// Returns extents at which programs may have other forms: each alone as small as can be, or nearly, then all.
  std::vector<Sizes> small_sizes() const;
  /// Returns the specs of the inputs at these extents.
  std::vector<Spec> specs(const Sizes& sizes) const;
  /// Returns the extents as text, "time is 1, batch is 9".
  std::string text(const Sizes& sizes) const;

 private:
  /// Returns extents above those given, of which none is 1 or equal to its neighbour; then extents with each alone
  /// larger in two ways, then all.
  std::vector<Sizes> near_sizes() const;
  /// Returns extents with each alone much larger, in three ways, then all.
  std::vector<Sizes> far_sizes() const;
  /// Returns the sizes halfway between `from` and the larger `to`.
  Sizes halfway(const Sizes& from, const Sizes& to) const;

  std::string who_;
  std::span<const Spec> inputs_;
  const std::vector<DynamicAxis>& axes_;
  std::vector<std::string> names_{};
  Sizes given_{}, steps_{};
};

using ExtentNumbers = std::vector<SymbolicNumber>;

inline bool are_constant(const ExtentNumbers& all) { return std::ranges::all_of(all, &SymbolicNumber::is_constant); }

/// A real number that follows from extents: factor * number + more, or its reciprocal, rounded to a dtype.
struct ExtentReal {
  SymbolicNumber number{};
  double factor = 1, more = 0;
  bool inverse = false;
};

/// Explains numbers that differ between programs by their extents.
class Extents {
 public:
  Extents(const ExtentTrials& trials, std::vector<ExtentTrials::Sizes> sizes);

  /// Adds a symbol for a number with these values if it is a rounded quotient of known symbols, as the number of steps
  /// after a stride is. Numbers that are explained later may be sums of products with it, so every extent of the
  /// programs has to be learned before the first number is explained.
  void learn(const std::vector<std::int64_t>& values);

  /// Returns the names of the open extents, which are the first symbols.
  const std::vector<std::string>& names() const& { return names_; }
  /// Returns the quotients, which are the symbols after the extents; each is a quotient of symbols before it.
  const std::vector<SymbolicNumber>& quotients() const& { return quotients_; }
  std::size_t symbols() const { return names_.size() + quotients_.size(); }
  /// Returns how many different remainders the number leaves at possible extents when it is divided by `divisor`: all,
  /// or fewer where multiples exclude some.
  std::int64_t rests(const SymbolicNumber& n, std::int64_t divisor) const;
  /// Returns whether the value may be below 0 at some extents; a quotient may be 0.
  bool may_be_negative(const SymbolicNumber& n) const;
  /// Returns the value of a number at the open extents `sizes`.
  std::int64_t at(const SymbolicNumber& n, ExtentTrials::Sizes sizes) const;

  /// Returns the number that has these values in the programs, in the order of `sizes`; empty where no arithmetic on
  /// the extents gives them.
  std::optional<SymbolicNumber> explain(const std::vector<std::int64_t>& values) const;
  /// Returns the number n for which these values are max(n, 0), as the bounds of slices are.
  std::optional<SymbolicNumber> explain_bounds(const std::vector<std::int64_t>& values) const;
  /// Returns the real number that has these values in the programs, up to the rounding of `dtype`.
  std::optional<ExtentReal> explain(const std::vector<double>& values, Dtype dtype) const;
  /// Explains lists of equal length number by number.
  std::optional<ExtentNumbers> explain(const std::vector<Shape>& lists) const;

  /// Returns a number as text, "T", "2*B*T+1", which can name an extent.
  std::string text(const SymbolicNumber& n) const;

 private:
  /// Explains values that are integers up to rounding.
  std::optional<ExtentReal> explain_whole(const std::vector<double>& values, double tolerance) const;
  /// Explains values as a product of symbols, scaled and shifted.
  std::optional<ExtentReal> explain_product(const std::vector<double>& values, const SymbolicNumber& product,
                                            double tolerance) const;

  std::vector<std::string> names_;
  /// Returns whether numbers are equal at all possible extents, as far as remainders of divisions by up to 8 show.
  bool agree(const std::vector<SymbolicNumber>& numbers) const;

  std::vector<SymbolicNumber> quotients_{};
  std::vector<ExtentTrials::Sizes> open_;   ///< the open extents of each program
  std::vector<ExtentTrials::Sizes> sizes_;  ///< the open extents and the quotients of each program
  ExtentTrials::Sizes given_, steps_;
  std::vector<SymbolicNumber> products_{};  ///< products of extents, those of few factors first
};

/// Checks a function at small extents, for which `make` traces it. Throws ExportError, beginning with `who`, where it
/// reads other numbers there than those that follow from its reads at the sizes of `extents`.
void check_small_extents(const std::string& who, const ExtentTrials& trials, const Extents& extents,
                         const std::vector<KeepExtentsOpen::Reads>& reads,
                         const std::function<void(const std::vector<Spec>&)>& make);

}  // namespace ferrite::exchange::detail
