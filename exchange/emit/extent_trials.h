#pragma once
/// The extents at which a function is traced to see what of its program depends on them.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/exchange/emit/keep_extents_open.h"
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

  std::span<const Spec> inputs_;
  const std::vector<DynamicAxis>& axes_;
  std::vector<std::string> names_{};
  Sizes given_{}, steps_{};
};

}  // namespace ferrite::exchange::detail
