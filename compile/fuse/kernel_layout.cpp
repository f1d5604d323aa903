#include <algorithm>
#include <numeric>

#include "ferrite/compile/fuse/kernel.h"

namespace ferrite::detail {
namespace {

constexpr std::int64_t kFarBytes = 8 << 20;       ///< operands beyond this come slower than they are used
constexpr std::int64_t kFarTile = 256;            ///< elements: so few that what comes next can be asked for meanwhile
constexpr std::int64_t kOneStepTile = 4096;       ///< elements, where nothing is kept from step to step
constexpr std::int64_t kRowBytes = 128;           ///< rows of so many bytes chains read where they stand
constexpr std::int64_t kScratchBytes = 24 << 10;  ///< of all slots of a tile together: half of a first cache

class Layouting {
 public:
  explicit Layouting(Kernel& k) : k_(k) {}

  void run() {
    merge_axes();
    choose_tiles();
    classify();
    resolve_chains(k_);
    find_runs();
    assign_scratch();
  }

 private:
  // ---- axes and tiles ------------------------------------------------------------------------------------

  static bool mergeable(const Shape& strides, int k, std::int64_t extent) {
    return strides[k] == strides[k + 1] * extent;
  }
  static bool mergeable(const Box& b, int k, const Shape& extents) {
    return b.begin[k + 1] == 0 && b.end[k + 1] == extents[k + 1];
  }
  bool can_merge(int k) const {
    if ((k_.reduced || k_.across != Across::none) && k + 1 == k_.outer) return false;
    const Shape& e = k_.extents;
    const auto stride_ok = [&](const auto& x) { return mergeable(x.strides, k, e[k + 1]); };
    const auto box_ok = [&](const auto& x) { return mergeable(x.box, k, e); };
    return std::all_of(k_.loads.begin(), k_.loads.end(), stride_ok) &&
           std::all_of(k_.loads.begin(), k_.loads.end(), box_ok) &&
           std::all_of(k_.fillings.begin(), k_.fillings.end(), box_ok) &&
           std::all_of(k_.stores.begin(), k_.stores.end(), stride_ok);
  }
  static void merge_box(Box& b, int k, std::int64_t inner) {
    b.begin[k] *= inner;
    b.end[k] *= inner;
    b.begin.erase(k + 1);
    b.end.erase(k + 1);
  }
  void erase_axis(int k) {
    k_.extents.erase(k);
    if (k < k_.outer) --k_.outer;
    for (Kernel::Load& l : k_.loads) l.strides.erase(k);
    for (Kernel::Store& s : k_.stores) s.strides.erase(k);
  }

  void merge_axes() {
    drop_single_axes();
    for (int k = k_.extents.rank() - 2; k >= 0; --k) {
      if (!can_merge(k)) continue;
      const std::int64_t inner = k_.extents[k + 1];
      for (Kernel::Load& l : k_.loads) {
        l.strides[k] = l.strides[k + 1];
        merge_box(l.box, k, inner);
      }
      for (Kernel::Filling& f : k_.fillings) merge_box(f.box, k, inner);
      for (Kernel::Store& s : k_.stores) s.strides[k] = s.strides[k + 1];
      k_.extents[k] *= inner;
      erase_axis(k + 1);
    }
  }

  /// Axes of extent 1 move nothing, unless a box is empty there.
  void drop_single_axes() {
    const auto empty_at = [](const auto& list, int k) {
      return std::any_of(list.begin(), list.end(), [&](const auto& x) { return x.box.end[k] != 1; });
    };
    for (int k = k_.extents.rank() - 1; k >= 0; --k) {
      if (k_.extents[k] != 1 || empty_at(k_.loads, k) || empty_at(k_.fillings, k)) continue;
      erase_axis(k);
      for (Kernel::Load& l : k_.loads) erase_from(l.box, k);
      for (Kernel::Filling& f : k_.fillings) erase_from(f.box, k);
    }
    if (k_.extents.rank()) return;
    k_.extents = {1};
    for (Kernel::Load& l : k_.loads) {
      l.strides = {0};
      l.box = {{0}, {1}};
    }
    for (Kernel::Filling& f : k_.fillings) f.box = {{0}, {1}};
    for (Kernel::Store& s : k_.stores) s.strides = {1};
  }
  static void erase_from(Box& b, int k) {
    b.begin.erase(k);
    b.end.erase(k);
  }

  void choose_tiles() {
    k_.length = k_.extents[-1];
    k_.rows = k_.extents.numel() / k_.length;
    std::int64_t widest = 1;
    for (const Kernel::SlotInfo& s : k_.slots) widest = std::max(widest, s.bytes);
    std::int64_t slots = 0;
    std::int64_t steps = 0;
    for (const Kernel::Instruction& i : k_.program) {
      slots += i.step != Kernel::Step::store;
      steps += i.step != Kernel::Step::store && i.step != Kernel::Step::load;
    }
    slots = std::clamp<std::int64_t>(slots, 1, 12);
    k_.tile = std::clamp<std::int64_t>(kScratchBytes / (slots * widest) / 64 * 64, 256, 1024);
    const bool streamed = k_.extents.numel() * widest > kStreamBytes;  // through a tile that stays in the first cache
    if (steps == 1 && !k_.reduced && !streamed) k_.tile = kOneStepTile;
    if (k_.reduced) return whole_rows();
    if (k_.across != Across::none) return tiles_across();
    const std::int64_t streams = steps > 1 ? streams_from_afar() : 0;
    k_.far = streams > 1;
    if (streams > 0) k_.tile = k_.far ? kFarTile : 2 * kFarTile;
    if (k_.length > k_.tile || k_.rows == 1) {
      k_.tile_rows = 0;
      k_.pieces = (k_.length + k_.tile - 1) / k_.tile;
      return;
    }
    const std::int64_t fit = k_.tile / k_.length;
    const std::int64_t even = 16 / std::gcd(k_.length, std::int64_t{16});  // so many rows end on a line
    k_.tile_rows = std::min(k_.rows, fit >= even ? fit / even * even : fit);
    if (k_.extents.rank() < 2 || k_.tile_rows == k_.rows) return;
    // A little fewer, where these make up the axis: what is repeated along the axes before is then read in place.
    for (std::int64_t fewer = k_.tile_rows; fewer > 0 && 2 * fewer > k_.tile_rows; fewer -= std::min(even, fewer))
      if (k_.extents[-2] % fewer == 0) {
        k_.tile_rows = fewer;
        return;
      }
  }

  /// How many operands come from memory, in long runs.
  std::int64_t streams_from_afar() const {
    std::int64_t streams = 0;
    std::int64_t bytes = 0;
    for (const Kernel::Load& l : k_.loads) {
      if (all_zero(l.strides)) continue;
      ++streams;
      bytes += k_.rows * k_.length * l.bytes;
    }
    return bytes > kFarBytes && k_.length > k_.tile ? streams : 0;
  }

  /// Tiles end where blocks of the reduction end: of rows, so many elements; of columns, so many rows.
  void tiles_across() {
    constexpr std::int64_t kShortRow = 256;
    const bool long_rows = k_.across == Across::long_rows;
    const bool lines = long_rows ? k_.length != k_.across_elements && k_.length <= kReductionBlock
                                 : k_.rows == k_.across_elements && k_.length <= kShortRow;
    k_.tile = kReductionBlock;
    k_.tile_rows = lines ? k_.tile / k_.length : 0;
    if (lines && !long_rows)
      while (kReductionBlock % k_.tile_rows) --k_.tile_rows;
    k_.pieces = (k_.length + k_.tile - 1) / k_.tile;
  }

  /// A tile of a reducing kernel holds whole rows.
  void whole_rows() {
    const std::int64_t count = k_.extents.numel() / k_.reduced;
    const std::int64_t together = std::clamp<std::int64_t>(k_.tile / k_.reduced, 1, count);
    k_.tile = together * k_.reduced;
    k_.tile_rows = k_.tile / k_.length;
    for (int k = 0; k < k_.outer; ++k) k_.row_extents.push_back(k_.extents[k]);
    k_.row_extents.push_back(1);
    for (Kernel::Load& l : k_.loads)
      if (l.of_rows) {
        keep_outer(l.strides, 0);
        keep_outer(l.box);
      }
    for (Kernel::Filling& f : k_.fillings)
      if (f.of_rows) {
        keep_outer(f.box);
      }
    for (Kernel::Store& s : k_.stores)
      if (s.of_rows) keep_outer(s.strides, 0);
  }
  /// A box that is empty stays so, on whatever axis it is.
  void keep_outer(Box& b) const {
    bool empty = false;
    for (int k = 0; k < b.begin.rank(); ++k) empty |= b.begin[k] >= b.end[k];
    keep_outer(b.begin, 0);
    keep_outer(b.end, empty ? 0 : 1);
  }
  void keep_outer(Shape& s, std::int64_t last) const {
    Shape kept;
    for (int k = 0; k < k_.outer; ++k) kept.push_back(s[k]);
    kept.push_back(last);
    s = kept;
  }

  // ---- slots ---------------------------------------------------------------------------------------------

  const Shape& extents_of(bool of_rows) const { return of_rows ? k_.row_extents : k_.extents; }

  bool is_dense(const Shape& strides, bool of_rows = false) const {
    const Shape& extents = extents_of(of_rows);
    const Shape wanted = extents.strides();
    for (int k = 0; k < wanted.rank(); ++k)
      if (strides[k] != wanted[k] && extents[k] != 1) return false;
    return true;
  }
  static bool all_zero(const Shape& strides) {
    return std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s == 0; });
  }

  /// Which loads need no copy, and which results are computed where they belong.
  void classify() {
    std::vector<char> written(k_.slots.size());  // by an operation or a filling, so that a store may give it its place
    for (Kernel::Instruction& i : k_.program) {
      if (i.step == Kernel::Step::apply || i.step == Kernel::Step::chain || i.step == Kernel::Step::fill ||
          i.step == Kernel::Step::spread)
        written[i.slot] = true;
      if (i.step == Kernel::Step::load) classify_load(i);
      if (i.step == Kernel::Step::store) {
        Kernel::Store& s = k_.stores[i.index];
        s.dense = is_dense(s.strides, s.of_rows);
        Kernel::SlotInfo& slot = k_.slots[i.slot];
        if (s.of_rows || !written[i.slot] || slot.kind != Kernel::Slot::scratch) continue;
        if (!s.dense && !(has_long_rows(s.strides, s.bytes) && is_of_chains_alone(i.slot))) continue;
        slot.kind = s.dense ? Kernel::Slot::direct : Kernel::Slot::rows;
        slot.output = true;
        slot.index = i.index;
      }
    }
    for (std::size_t s = 0; s < k_.slots.size(); ++s)
      if (k_.slots[s].kind == Kernel::Slot::direct || k_.slots[s].kind == Kernel::Slot::rows)
        k_.directs.push_back(static_cast<std::uint16_t>(s));
  }

  void find_runs() {
    for (Kernel::Instruction& i : k_.program) {
      if (i.step != Kernel::Step::apply) continue;
      for (std::uint32_t j = 0; j < i.index; ++j) i.run[j] = k_.slots[i.in[j]].kind == Kernel::Slot::repeated ? 0 : 1;
    }
  }

  void classify_load(const Kernel::Instruction& i) {
    Kernel::Load& l = k_.loads[i.index];
    Kernel::SlotInfo& slot = k_.slots[i.slot];
    l.whole = true;
    const Shape& extents = extents_of(l.of_rows);
    for (int k = 0; k < extents.rank(); ++k) l.whole &= l.box.begin[k] == 0 && l.box.end[k] == extents[k];
    if (!l.whole) return;
    if (all_zero(l.strides) && !is_stored(i.slot)) {
      slot.kind = Kernel::Slot::repeated;
      slot.index = static_cast<std::uint32_t>(k_.literals.size() + k_.repeated_loads.size());
      k_.repeated_loads.push_back(i.index);
      return;
    }
    if (l.of_rows) return;
    const bool cut_rows = k_.tile_rows == 0 && l.strides[-1] == 1;
    if (is_dense(l.strides) || cut_rows || is_dense_in_tiles(l.strides)) {
      slot.kind = Kernel::Slot::direct;
      slot.index = i.index;
      return;
    }
    if (has_long_rows(l.strides, l.bytes) && is_of_chains_alone(i.slot)) {
      slot.kind = Kernel::Slot::rows;
      slot.index = i.index;
      return;
    }
    l.once = k_.tile_rows > 0;
    for (int k = 0; k + 1 < k_.extents.rank(); ++k) l.once &= l.strides[k] == 0;
  }

  /// Whether chains may work on the rows where they stand: of whole lines, and evenly spaced in every tile.
  bool has_long_rows(const Shape& strides, std::int64_t bytes) const {
    if (k_.reduced || k_.across != Across::none || k_.extents.rank() < 2 || k_.tile_rows == 0) return false;
    const bool even = k_.extents.rank() == 2 || k_.extents[-2] % k_.tile_rows == 0;
    return even && bytes == 4 && strides[-1] == 1 && k_.length * bytes % kRowBytes == 0;
  }

  /// Whether nothing but chains reads a slot, or writes it and a store takes it from there.
  bool is_of_chains_alone(std::uint16_t slot) const {
    int stores = 0;
    bool others = false;
    for (const Kernel::Instruction& i : k_.program) {
      if (i.step == Kernel::Step::store) stores += i.slot == slot;
      if (i.step == Kernel::Step::chain || i.step == Kernel::Step::store) continue;
      others |= (i.slot == slot && i.step != Kernel::Step::load) || i.reads_slot(slot);
    }
    const bool loaded = std::any_of(k_.program.begin(), k_.program.end(), [&](const Kernel::Instruction& i) {
      return i.step == Kernel::Step::load && i.slot == slot;
    });
    const bool read = std::any_of(k_.program.begin(), k_.program.end(), [&](const Kernel::Instruction& i) {
      return i.step == Kernel::Step::chain && i.reads_slot(slot);
    });
    return !others && (loaded ? stores == 0 : stores == 1 && !read);
  }

  /// Whether the rows of every tile follow each other, though those of different tiles may be the same.
  bool is_dense_in_tiles(const Shape& strides) const {
    if (k_.reduced || k_.across != Across::none || k_.extents.rank() < 2 || k_.tile_rows == 0) return false;
    return strides[-1] == 1 && strides[-2] == k_.length && k_.extents[-2] % k_.tile_rows == 0;
  }

  /// Whether a slot is read as it is, not by an operation: then it must be a run.
  bool is_stored(std::uint16_t slot) const {
    return std::any_of(k_.program.begin(), k_.program.end(), [&](const Kernel::Instruction& i) {
      return i.step != Kernel::Step::apply && i.step != Kernel::Step::chain && i.reads_slot(slot);
    });
  }

  /// Pieces of scratch memory are used again after the last read of what is in them.
  void assign_scratch() {
    const std::size_t n = k_.program.size();
    std::vector<std::size_t> last(k_.slots.size(), 0);
    for (std::size_t t = 0; t < n; ++t) {
      const Kernel::Instruction& i = k_.program[t];
      last[i.slot] = std::max(last[i.slot], t);
      for (std::uint32_t j = 0; j < i.reads(); ++j) last[i.in[j]] = t;
    }
    std::vector<std::int64_t> free;
    for (std::size_t t = 0; t < n; ++t) {
      const Kernel::Instruction& i = k_.program[t];
      const bool writes = i.step != Kernel::Step::store;
      Kernel::SlotInfo& slot = k_.slots[i.slot];
      const bool owns = slot.kind == Kernel::Slot::scratch || (slot.kind == Kernel::Slot::direct && slot.output);
      const bool kept = i.step == Kernel::Step::load && k_.loads[i.index].once;  // lives through all tiles
      if (writes && owns && slot.scratch < 0) slot.scratch = kept ? k_.scratch_pieces++ : take(free);
      release(i, t, last, free);
    }
    std::int64_t widest = 4;
    for (const Kernel::SlotInfo& s : k_.slots) widest = std::max(widest, s.bytes);
    k_.piece_bytes = (k_.tile * widest + kLineBytes - 1) / kLineBytes * kLineBytes + kLineBytes;
  }

  std::int64_t take(std::vector<std::int64_t>& free) {
    if (free.empty()) return k_.scratch_pieces++;
    const std::int64_t piece = free.back();
    free.pop_back();
    return piece;
  }

  void release(const Kernel::Instruction& i, std::size_t t, const std::vector<std::size_t>& last,
               std::vector<std::int64_t>& free) {
    const auto end = [&](std::uint16_t s) {
      Kernel::SlotInfo& slot = k_.slots[s];
      if (last[s] != t || slot.scratch < 0 || released_.size() <= s || released_[s]) return;
      released_[s] = true;
      free.push_back(slot.scratch);
    };
    released_.resize(k_.slots.size());
    const bool kept = i.step == Kernel::Step::load && k_.loads[i.index].once;
    if (kept || i.step == Kernel::Step::across) once_.push_back(i.slot);  // of a total: read when the tile is done
    for (std::uint32_t j = 0; j < i.reads(); ++j)
      if (std::find(once_.begin(), once_.end(), i.in[j]) == once_.end()) end(i.in[j]);
    if (i.step == Kernel::Step::store && std::find(once_.begin(), once_.end(), i.slot) == once_.end()) end(i.slot);
  }

  Kernel& k_;
  std::vector<char> released_;
  std::vector<std::uint16_t> once_;
};

}  // namespace

void lay_out_kernel(Kernel& k) { Layouting(k).run(); }

}  // namespace ferrite::detail
