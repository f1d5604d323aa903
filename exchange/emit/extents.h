#pragma once
/// The extents at which a function is traced to see what of its program depends on them, and the numbers that follow
/// from extents, as those programs show them.
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

class ExtentTrials {
 public:
  using Sizes = std::vector<std::int64_t>;  ///< one for each name

  /// Throws ValueError, which begins with `who`, for an axis without a name or that the inputs do not have, and for
  /// axes of one name whose extents differ.
  ExtentTrials(const std::string& who, std::span<const Spec> inputs, const std::vector<DynamicAxis>& axes);

  const std::vector<std::string>& names() const& { return names_; }
  /// By name: how many apart extents are.
  const Sizes& steps() const& { return steps_; }
  /// The extents of the example.
  const Sizes& given() const& { return given_; }
  const std::string& who() const& { return who_; }

  /// What was tried.
  template <class Program>
  struct Tried {
    std::vector<Sizes> sizes{};
    std::vector<Program> programs{};
    std::vector<KeepExtentsOpen::Reads> reads{};
  };
  /// What `make` gives for the inputs at each of the extents. In place of far ones that are beyond what it takes come
  /// nearer ones, as far as it takes them.
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
  /// Each alone as small as can be, or nearly, then all: where programs have other forms.
  std::vector<Sizes> small_sizes() const;
  /// The inputs at these extents.
  std::vector<Spec> specs(const Sizes& sizes) const;
  /// "time is 1, batch is 9".
  std::string text(const Sizes& sizes) const;

 private:
  /// Above those given, where no extent is 1 or equal to its neighbour; then each alone larger in two ways, then all.
  std::vector<Sizes> near_sizes() const;
  /// Each alone much larger, in three ways, then all.
  std::vector<Sizes> far_sizes() const;
  /// Sizes in the middle between some and larger ones.
  Sizes halfway(const Sizes& from, const Sizes& to) const;

  std::string who_;
  std::span<const Spec> inputs_;
  const std::vector<DynamicAxis>& axes_;
  std::vector<std::string> names_{};
  Sizes given_{}, steps_{};
};

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

  /// Adds a symbol for a number with these values if it is a rounded quotient of known symbols, as the number of steps
  /// after a stride is. Numbers that are explained later may be sums of products with it, so every extent of the
  /// programs has to be learned before the first number is explained.
  void learn(const std::vector<std::int64_t>& values);

  /// The open extents, which are the first symbols.
  const std::vector<std::string>& names() const& { return names_; }
  /// The quotients, which are the symbols after these; each is a quotient of symbols before it.
  const std::vector<SymbolicNumber>& quotients() const& { return quotients_; }
  std::size_t symbols() const { return names_.size() + quotients_.size(); }
  /// How many of the rests of a division the number has at extents that are possible: all of them, or fewer where
  /// multiples leave some out.
  std::int64_t rests(const SymbolicNumber& n, std::int64_t divisor) const;
  /// Tells whether the value is below 0 at some extents: a quotient may be 0.
  bool may_be_negative(const SymbolicNumber& n) const;
  /// The value of a number where the open extents are these.
  std::int64_t at(const SymbolicNumber& n, ExtentTrials::Sizes sizes) const;

  /// What has these values in the programs, in the order of `sizes`; none where no arithmetic on the extents gives
  /// them.
  std::optional<SymbolicNumber> explain(const std::vector<std::int64_t>& values) const;
  /// What gives these values where it is above 0; they are 0 where it is not, as the bounds of slices are.
  std::optional<SymbolicNumber> explain_bounds(const std::vector<std::int64_t>& values) const;
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
  /// Whether numbers are the same at all extents that are possible, as far as rests of divisions by up to 8 tell.
  bool agree(const std::vector<SymbolicNumber>& numbers) const;

  std::vector<SymbolicNumber> quotients_{};
  std::vector<ExtentTrials::Sizes> open_;   ///< by program: the open extents
  std::vector<ExtentTrials::Sizes> sizes_;  ///< by program: these and the quotients
  ExtentTrials::Sizes given_, steps_;
  std::vector<SymbolicNumber> products_{};  ///< of extents, of few first
};

/// Refuses, as an ExportError that begins with `who`, a function that reads something else there than what follows from
/// its reads at the sizes of `extents`. `make` traces it.
void check_small_extents(const std::string& who, const ExtentTrials& trials, const Extents& extents,
                         const std::vector<KeepExtentsOpen::Reads>& reads,
                         const std::function<void(const std::vector<Spec>&)>& make);

}  // namespace ferrite::exchange::detail
