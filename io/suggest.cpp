/// Computes edit distances between names, for suggestions in errors.
#include "ferrite/io/suggest.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ferrite/io/detail/io_text.h"

namespace ferrite::io::detail {
namespace {

// Suggestions are a courtesy: they must not cost more than the error itself.
constexpr std::size_t kMostCandidates = 2000;
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kSuggested = 4;

/// Returns whether one name is the other with a dotted prefix.
bool ends_alike(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return !a.empty() && b.size() > a.size() && b.ends_with(a) && b[b.size() - a.size() - 1] == '.';
}

bool all_follow(std::string_view prefix, std::span<const std::string_view> shorter,
                const std::unordered_set<std::string_view>& longer) {
  return std::ranges::all_of(
      shorter, [&](std::string_view name) { return longer.contains(std::string(prefix) + std::string(name)); });
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most) {
  const std::size_t gap = a.size() < b.size() ? b.size() - a.size() : a.size() - b.size();
  if (gap > most) return most + 1;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return std::min(row.back(), most + 1);
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  if (name.size() > kLongestName || candidates.size() > kMostCandidates) return best;
  std::size_t least = std::min(name.size() / 2, std::size_t{1} + name.size() / 5) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate, least);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

std::string advice_on(std::string_view name, std::span<const std::string_view> candidates) {
  if (candidates.empty()) return "";
  std::string list;
  std::size_t n = 0;
  const auto add = [&](std::string_view candidate) {
    if (++n <= kSuggested) list += (n > 1 ? ", " : "") + quote(candidate);
  };
  for (const std::string_view c : candidates)
    if (ends_alike(name, c)) add(c);
  if (n > 0) return "; did you mean " + list + (n > kSuggested ? " or another one?" : "?");
  const std::string_view near = nearest(name, candidates);
  if (!near.empty()) return "; did you mean " + quote(near) + "?";
  for (const std::string_view c : candidates) add(c);
  return "; there are " + list + (n > kSuggested ? " and " + std::to_string(n - kSuggested) + " more" : "");
}

std::optional<std::string> common_prefix(std::span<const std::string_view> shorter,
                                         std::span<const std::string_view> longer) {
  if (shorter.empty() || longer.size() > kMostCandidates) return std::nullopt;
  const std::unordered_set<std::string_view> known(longer.begin(), longer.end());
  const std::string_view first = shorter.front();
  for (const std::string_view name : longer) {
    if (!name.ends_with(first)) continue;
    const std::string_view prefix = name.substr(0, name.size() - first.size());
    if (prefix.ends_with('.') && all_follow(prefix, shorter, known)) return std::string(prefix);
  }
  return std::nullopt;
}

}  // namespace ferrite::io::detail
