/// Splits: the number of examples in each part, and the choice of examples.
#include "ferrite/train/split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace ferrite::train {
namespace {

using Examples = std::vector<std::int64_t>;

Examples numbers(std::int64_t begin, std::int64_t end) {
  Examples all(static_cast<std::size_t>(std::max<std::int64_t>(0, end - begin)));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

Examples shuffled(const Examples& of, const SplitOptions& o, const std::string& stream) {
  Examples out;
  const RandomKey key{.seed = o.seed, .stream = stream_of(stream)};
  for (const std::int64_t i : permutation(static_cast<std::int64_t>(of.size()), key).to_vector<std::int64_t>())
    out.push_back(of[static_cast<std::size_t>(i)]);
  return out;
}

/// Returns the examples of each class, or one group of all, in the order in which they are dealt out.
std::vector<Examples> groups_of(const Dataset& data, const SplitOptions& o, const char* who) {
  const std::string where = std::string(who) + ": ";
  if (o.gap < 0) throw ValueError(where + "gap must be at least 0, got " + std::to_string(o.gap));
  if (o.gap > 0 && o.shuffle) throw ValueError(where + "a gap is for shuffle = false");
  if (!o.stratify.defined()) {
    const Examples all = numbers(0, data.size());
    return {o.shuffle ? shuffled(all, o, "split") : all};
  }
  if (!o.shuffle) throw ValueError(where + "classes are dealt out in random order: stratify is for shuffle = true");
  if (!is_integer(o.stratify.dtype()))
    throw DtypeError(where + "stratify must be i64 or i32, got " + o.stratify.spec().str());
  if (o.stratify.rank() != 1 || o.stratify.shape()[0] != data.size())
    throw ShapeError(where + "stratify must be [" + std::to_string(data.size()) +
                     "], one class for each example, got " + o.stratify.shape().str());
  std::map<std::int64_t, Examples> by_class;
  const Tensor classes = contiguous(cast(o.stratify, Dtype::i64));
  for (std::int64_t i = 0; const std::int64_t c : classes.values<std::int64_t>()) by_class[c].push_back(i++);
  std::vector<Examples> groups;
  for (const auto& [c, examples] : by_class) groups.push_back(shuffled(examples, o, "split/" + std::to_string(c)));
  return groups;
}

/// Returns how many of n examples go to each part. `lost` is what rounding took from each part in earlier groups.
std::vector<std::int64_t> counts_of(std::int64_t n, const std::vector<double>& shares, std::vector<double>& lost) {
  std::vector<std::int64_t> counts;
  double wanted = 0;
  std::int64_t dealt = 0;
  for (std::size_t p = 0; p < shares.size(); ++p) {
    const double exact = shares[p] * static_cast<double>(n);
    counts.push_back(static_cast<std::int64_t>(std::floor(exact + 1e-9)));
    lost[p] += exact - static_cast<double>(counts[p]);
    wanted += exact;
    dealt += counts[p];
  }
  for (auto left = static_cast<std::int64_t>(std::floor(wanted + 1e-9)) - dealt; left > 0; --left) {
    const auto most = std::max_element(lost.begin(), lost.end());
    *most -= 1;
    ++counts[static_cast<std::size_t>(most - lost.begin())];
  }
  return counts;
}

void check_shares(const std::vector<double>& shares) {
  double sum = 0;
  for (const double s : shares) {
    if (!(s > 0)) throw ValueError("split: shares must be above 0, got " + Scalar(s).str());
    sum += s;
  }
  if (shares.empty()) throw ValueError("split: there are no shares");
  if (!(sum <= 1 + 1e-9)) throw ValueError("split: the shares add up to " + Scalar(sum).str() + ", more than 1");
}

}  // namespace

std::vector<Dataset> split(const Dataset& data, const std::vector<double>& shares, const SplitOptions& options) {
  check_shares(shares);
  std::vector<Examples> parts(shares.size());
  std::vector<double> lost(shares.size(), 0);
  for (const Examples& group : groups_of(data, options, "split")) {
    const std::vector<std::int64_t> counts = counts_of(static_cast<std::int64_t>(group.size()), shares, lost);
    auto at = group.begin();
    for (std::size_t p = 0; p < parts.size(); at += counts[p], ++p)
      parts[p].insert(parts[p].end(), p == 0 ? at : at + std::min<std::ptrdiff_t>(counts[p], options.gap),
                      at + counts[p]);
  }
  std::vector<Dataset> out;
  for (Examples& part : parts) {
    std::sort(part.begin(), part.end());
    out.push_back(data.subset(std::move(part)));
  }
  return out;
}

std::vector<Fold> k_folds(const Dataset& data, std::int64_t k, const SplitOptions& options) {
  if (k < 2 || k > data.size())
    throw ValueError("k_folds: cannot make " + std::to_string(k) + " folds of " + std::to_string(data.size()) +
                     " examples");
  std::vector<std::int64_t> fold_of(static_cast<std::size_t>(data.size()));
  // Examples are dealt out like cards, group by group; without shuffling, in contiguous parts.
  std::int64_t card = 0;
  for (const Examples& group : groups_of(data, options, "k_folds"))
    for (const std::int64_t i : group) {
      fold_of[static_cast<std::size_t>(i)] = options.shuffle ? card % k : card * k / data.size();
      ++card;
    }
  const std::int64_t gap = options.gap;
  std::vector<Fold> folds;
  for (std::int64_t f = 0; f < k; ++f) {
    Examples training, validation;
    for (std::int64_t i = 0; i < data.size(); ++i)
      (fold_of[static_cast<std::size_t>(i)] == f ? validation : training).push_back(i);
    if (gap > 0)
      std::erase_if(training,
                    [&](std::int64_t i) { return i >= validation.front() - gap && i <= validation.back() + gap; });
    folds.push_back({data.subset(std::move(training)), data.subset(std::move(validation))});
  }
  return folds;
}

std::vector<Fold> time_folds(const Dataset& data, std::int64_t k, std::int64_t gap) {
  const std::int64_t N = data.size();
  if (k < 2 || k >= N)
    throw ValueError("time_folds: cannot make " + std::to_string(k) + " folds of " + std::to_string(N) + " examples");
  const std::int64_t part = N / (k + 1);
  if (gap < 0 || gap >= N - k * part)
    throw ValueError("time_folds: a gap of " + std::to_string(gap) + " leaves nothing to train on in the first of " +
                     std::to_string(k) + " folds");
  std::vector<Fold> folds;
  for (std::int64_t f = 0; f < k; ++f) {
    const std::int64_t begin = N - (k - f) * part;
    folds.push_back({data.subset(numbers(0, begin - gap)), data.subset(numbers(begin, begin + part))});
  }
  return folds;
}

}  // namespace ferrite::train
