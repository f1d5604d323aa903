/// The arena: buffers in order of steps by best fit, or largest first.
#include "ferrite/compile/plan/detail/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ferrite::detail {
namespace {

constexpr std::size_t kMostForSorting = 3000;

std::int64_t to_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::size_t steps_of(std::span<const Lifetime> buffers) {
  std::size_t n = 0;
  for (const Lifetime& b : buffers) n = std::max(n, b.last + 1);
  return n;
}

std::int64_t bound_of(std::span<const Lifetime> buffers) {
  std::vector<std::int64_t> change(steps_of(buffers) + 1);
  for (const Lifetime& b : buffers) {
    change[b.first] += to_lines(b.bytes);
    change[b.last + 1] -= to_lines(b.bytes);
  }
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const std::int64_t c : change) most = std::max(most, live += c);
  return most;
}

/// Free stretches of a piece of memory that grows at its end.
class Heap {
 public:
  std::int64_t take(std::int64_t bytes) {
    auto best = free_.end();
    for (auto at = free_.begin(); at != free_.end(); ++at)
      if (at->second >= bytes && (best == free_.end() || at->second < best->second)) best = at;
    if (best == free_.end()) return grow(bytes);
    const std::int64_t offset = best->first;
    const std::int64_t left = best->second - bytes;
    free_.erase(best);
    if (left) free_[offset + bytes] = left;
    return offset;
  }
  void give(std::int64_t offset, std::int64_t bytes) {
    auto after = free_.lower_bound(offset);
    if (after != free_.end() && offset + bytes == after->first) {
      bytes += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    free_[offset] = bytes;
  }
  std::int64_t bytes() const { return end_; }

 private:
  /// At the end, of which the last stretch may be free already.
  std::int64_t grow(std::int64_t bytes) {
    std::int64_t offset = end_;
    if (!free_.empty() && std::prev(free_.end())->first + std::prev(free_.end())->second == end_) {
      offset = std::prev(free_.end())->first;
      free_.erase(std::prev(free_.end()));
    }
    end_ = offset + bytes;
    return offset;
  }
  std::map<std::int64_t, std::int64_t> free_;
  std::int64_t end_ = 0;
};

MemoryLayout in_order(std::span<const Lifetime> buffers) {
  MemoryLayout layout;
  layout.offsets.resize(buffers.size());
  const std::size_t steps = steps_of(buffers);
  std::vector<std::vector<std::size_t>> born(steps), dying(steps);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    born[buffers[i].first].push_back(i);
    dying[buffers[i].last].push_back(i);
  }
  Heap heap;
  for (std::size_t t = 0; t < steps; ++t) {
    for (const std::size_t i : born[t]) layout.offsets[i] = heap.take(to_lines(buffers[i].bytes));
    for (const std::size_t i : dying[t]) heap.give(layout.offsets[i], to_lines(buffers[i].bytes));
  }
  layout.bytes = heap.bytes();
  return layout;
}

/// Each buffer at the lowest place that is free over its whole life.
MemoryLayout by_size(std::span<const Lifetime> buffers) {
  MemoryLayout layout;
  layout.offsets.resize(buffers.size());
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    const Lifetime& b = buffers[i];
    std::int64_t at = 0;
    for (const std::size_t j : placed) {
      const Lifetime& other = buffers[j];
      if (other.last < b.first || other.first > b.last) continue;
      if (at + to_lines(b.bytes) <= layout.offsets[j]) break;
      at = std::max(at, layout.offsets[j] + to_lines(other.bytes));
    }
    layout.offsets[i] = at;
    layout.bytes = std::max(layout.bytes, at + to_lines(b.bytes));
    const auto place = std::upper_bound(placed.begin(), placed.end(), at,
                                        [&](std::int64_t o, std::size_t j) { return o < layout.offsets[j]; });
    placed.insert(place, i);
  }
  return layout;
}

}  // namespace

void check_bytes(std::span<const Spec> values) {
  constexpr auto where = "plan: the bytes of all values";
  std::int64_t bytes = 0;
  for (const Spec& s : values) {
    const std::int64_t lines = checked_add(checked_mul(s.shape.numel("plan"), size_of(s.dtype), where), 128, where);
    bytes = checked_add(bytes, lines, where);
  }
}

MemoryLayout lay_out(std::span<const Lifetime> buffers) {
  const std::int64_t bound = bound_of(buffers);
  MemoryLayout best = in_order(buffers);
  if (best.bytes > bound + bound / 20 && buffers.size() <= kMostForSorting) {
    MemoryLayout other = by_size(buffers);
    if (other.bytes < best.bytes) best = std::move(other);
  }
  best.bound = bound;
  return best;
}

MemoryLayout lay_out_apart(std::span<const Lifetime> buffers) {
  MemoryLayout layout;
  layout.bound = bound_of(buffers);
  for (const Lifetime& b : buffers) {
    layout.offsets.push_back(layout.bytes);
    layout.bytes += to_lines(b.bytes);
  }
  return layout;
}

}  // namespace ferrite::detail
