/// Compares what a function reads at small extents with what its reads at others say.
#include "ferrite/exchange/emit/small_extents.h"

#include <algorithm>

#include "ferrite/exchange/export_error.h"

namespace ferrite::exchange::detail {
namespace {

using Reads = KeepExtentsOpen::Reads;
using Sizes = ExtentTrials::Sizes;

/// Whether what has these values at the sizes of `extents` is `number` at `sizes`.
bool follows(const Extents& extents, const std::vector<std::int64_t>& values, std::int64_t number, bool counts,
             const Sizes& sizes) {
  const std::optional<SymbolicNumber> n = extents.explain(values);
  if (!n) return true;  // the programs that are compared do not depend on it
  const std::int64_t there = extents.at(*n, sizes);
  return there == number || (counts && number == 0 && there < 0);
}

/// Whether the i-th read is this one at `sizes`.
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
