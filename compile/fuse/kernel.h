#pragma once
/// Fused kernels: small programs over tiles that stay in the L1 cache, interpreted with the records' own kernels.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/tensor/kernel/chain.h"
#include "ferrite/tensor/kernel/reduce.h"
#include "ferrite/tensor/kernel/scratch.h"

namespace ferrite::detail {

/// An address that is known when a program runs: a base (the arena, an input, an output, ...) and an offset in bytes.
struct Place {
  std::uint32_t base = 0;
  std::int64_t offset = 0;
};

inline constexpr std::int64_t kLineBytes = 64;
inline constexpr std::int64_t kStreamBytes = 16 << 20;   ///< larger results may bypass the caches
inline constexpr std::int64_t kChunkElements = 1 << 15;  ///< elements that one thread takes at a time

inline constexpr std::uint32_t kMostOperands = 8;  ///< maximum number of operands of an instruction
inline constexpr std::size_t kMostLinks = 12;      ///< maximum number of operations in a chain

/// A cache line that holds one value repeatedly.
struct alignas(64) RepeatedLine {
  std::byte bytes[kLineBytes];
};

/// A fused kernel: what it runs over, the memory that it reads and writes, and its program.
struct Kernel {
  // ---- the domain ------------------------------------------------------------------------------------------

  struct Axes {
    Shape extents;  ///< adjacent axes are merged where all loads and stores allow it; at least one
    /// The extents of the outer axes, and a last axis of extent 1: the space of values with one element for each row.
    Shape row_extents;
    int outer = 0;  ///< number of axes before those that are reduced
    /// Number of elements that one reduction takes, one or several rows of `length` in one tile; 0 without reductions.
    std::int64_t reduced = 0;
    Across across = Across::none;
    std::int64_t across_elements = 0;  ///< elements that each result is reduced from

    bool reduces() const { return reduced != 0 || across != Across::none; }
    const Shape& of(bool rows) const { return rows ? row_extents : extents; }
  };

  struct Tiling {
    std::int64_t length = 1, rows = 1;
    std::int64_t tile = 1024;    ///< most elements of a tile
    std::int64_t tile_rows = 1;  ///< number of whole rows in a tile; 0: rows are cut
    std::int64_t pieces = 1;     ///< number of tiles in a row where rows are cut
    bool far = false;            ///< operands come from memory: tiles are small, so that all are read at once
    bool in_memory = false;      ///< results bypass the caches: one chain of several operands has no time for others
    bool straight = false;       ///< tiles differ only in their place

    std::int64_t elements() const { return rows * length; }
    std::int64_t tiles() const { return tile_rows ? (rows + tile_rows - 1) / tile_rows : rows * pieces; }
  };

  // ---- memory ----------------------------------------------------------------------------------------------

  struct Load {
    Place from;
    Shape strides;        ///< in elements, for each axis of the kernel
    Box box;              ///< the part of the domain in which the buffer may be read
    bool whole = true;    ///< the box is the whole domain
    bool once = false;    ///< the same for every row: gathered once
    bool by_row = false;  ///< one value for each row, where tiles are pieces of rows
    bool of_rows = false;
    std::int64_t bytes = 4;
    RepeatedLine outside;  ///< the value outside the box
  };
  struct Filling {
    Box box;
    std::int64_t bytes = 4;
    bool of_rows = false;
    RepeatedLine outside;
  };
  struct Store {
    Place to;
    Shape strides;
    bool dense = true;
    bool window = false;  ///< the result is part of a larger buffer
    bool of_rows = false;
    std::int64_t bytes = 4;
  };
  /// A result of many tiles: the contents of a slot are reduced block by block (docs/numerics.md, rule 3).
  struct Total {
    Place to{};
    std::uint16_t slot = 0;
    const Reduction* kind = nullptr;
    Dtype dtype{};
    RowReduction rows = nullptr;  ///< reduces one block of a row
  };
  struct Memory {
    std::vector<Load> loads;
    std::vector<Filling> fillings;
    std::vector<Store> stores;
    std::vector<Total> totals;
  };

  // ---- slots -----------------------------------------------------------------------------------------------

  /// The place of a slot's elements while a tile runs.
  enum class Slot : std::uint8_t {
    scratch,   ///< in the tile's own memory
    direct,    ///< in a buffer that lies in the order of the domain
    repeated,  ///< in a line of one value
    rows,      ///< as `direct`, but with a gap between the rows of the domain: for chains only
  };
  struct SlotInfo {
    Slot kind = Slot::scratch;
    Dtype dtype{};
    std::int64_t scratch = -1;  ///< index of the piece of scratch memory; -1 for none
    std::int64_t bytes = 4;
    std::uint32_t index = 0;  ///< direct, rows: the load or store; repeated: the line, literals first
    bool output = false;      ///< direct, rows: points into the buffer of a store
    bool of_rows = false;     ///< one element for each row
  };
  /// A load of one element, with the fields that each run reads: loads are large, and there may be hundreds of these.
  struct RepeatedLoad {
    std::uint32_t load, bytes;
    Place from;
  };
  struct Slots {
    std::vector<SlotInfo> all;
    std::vector<RepeatedLine> literals;
    std::vector<RepeatedLoad> repeated_loads;  ///< by line, after the literals
    std::vector<std::uint16_t> directs;        ///< slots whose address changes from tile to tile
    std::int64_t scratch_pieces = 0;
    std::int64_t piece_bytes = 0;  ///< a whole number of lines, and one more

    const SlotInfo& operator[](std::size_t s) const { return all[s]; }
    SlotInfo& operator[](std::size_t s) { return all[s]; }
    /// Returns the largest number of bytes that an element of any slot has, and at least `least`.
    std::int64_t widest(std::int64_t least) const {
      for (const SlotInfo& s : all) least = std::max(least, s.bytes);
      return least;
    }
  };

  // ---- instructions ----------------------------------------------------------------------------------------

  enum class Step : std::uint8_t {
    load,
    fill,
    apply,
    chain,   ///< several cheap operations in a row
    spread,  ///< spreads one element of each row over the row
    reduce,  ///< reduces each row to one element
    store,
    across,  ///< joins a slot into a result over many tiles
  };
  struct Instruction {
    Step step = Step::apply;
    std::uint16_t slot = 0;                ///< the slot written (by a store: read)
    std::uint16_t in[kMostOperands] = {};  ///< slots read
    std::uint32_t index = 0;               ///< of the load, filling or store; for operations, the number of slots read
    int chain = -1;                        ///< for chains, the index of the chain
    const Primitive* op = nullptr;
    Block block = nullptr;
    RowReduction reduction = nullptr;
    std::ptrdiff_t run[3] = {};  ///< 1 for a run of values, 0 for a repeated line
    bool of_rows = false;        ///< acts on one element for each row

    /// Returns how many of `in` are read.
    std::uint32_t reads() const {
      if (step == Step::apply || step == Step::chain) return index;
      return step == Step::load || step == Step::store ? 0 : 1;
    }
    bool reads_slot(std::uint16_t s) const {
      for (std::uint32_t j = 0; j < reads(); ++j)
        if (in[j] == s) return true;
      return step == Step::store && slot == s;
    }
  };
  struct Chain {
    struct Operation {
      const Primitive* op;
      std::uint32_t at;       ///< the operand that the chain passes on
      std::uint32_t operand;  ///< index of the other operand in `in`; 0 for none
      std::uint32_t factor;   ///< index in `in` of the factor that it is multiplied by; 0 for none
    };
    /// A link as it runs: its code, and the slots that it reads or writes.
    struct Stage {
      const LinkKernel* kernel;
      std::uint16_t slot, slot2;
      std::ptrdiff_t skip, skip2;
    };
    std::vector<Operation> links;
    std::vector<Stage> stages;  ///< the start, the operations, the end
    bool by_rows = false;
  };
  struct Program {
    std::vector<Instruction> instructions;
    std::vector<Chain> chains;
  };

  /// A kernel of one tile that only reads and writes in place, with all addresses looked up in advance.
  struct OneTile {
    static constexpr std::uint32_t kScratch = ~std::uint32_t{0};  ///< a base: the memory of the tile
    static constexpr std::uint32_t kLiteral = kScratch - 1;       ///< a base: the lines of literals
    static constexpr std::uint32_t kLine = kScratch - 2;          ///< a base: the lines of loads of one element
    std::vector<Place> spots;                                     ///< the place of each slot
    std::vector<Instruction> instructions;                        ///< operations, chains and copies into results
    std::size_t bytes = 0;                                        ///< size of the memory that a run works in
    bool fills_lines = false;                                     ///< chains read one element as a line of it
  };

  Axes axes;
  Tiling tiling;
  Memory memory;
  Slots slots;
  Program program;
  OneTile one_tile;  ///< without spots if the kernel is not of one tile

  /// Runs the kernel; `bases` holds the addresses that places refer to.
  void run(std::byte* const* bases) const;
  /// Runs the tiles first..last of the kernel.
  void run(std::byte* const* bases, std::int64_t first, std::int64_t last) const;
  /// Looks up what the runs of a kernel of one tile need. Call it when all places are known.
  void settle();
  /// Reserves the memory for its runs on one thread.
  void reserve(KernelMemory& working) const;

 private:
  void run_across(std::byte* const* bases) const;
  void run_one_tile(std::byte* const* bases) const;
};

/// Writes the links of a chain to `to` and returns their end. A chain runs one row of `elements` after the other;
/// scratch holds one row.
inline Link* write_links(const Kernel& k, const Kernel::Chain& c, std::byte* const* at, std::int64_t elements,
                         Link* to) {
  const auto start = [at](std::uint16_t s) { return reinterpret_cast<const float*>(at[s]); };
  const auto back = [&](std::uint16_t s) {
    return k.slots[s].kind == Kernel::Slot::scratch ? static_cast<std::ptrdiff_t>(elements) : 0;
  };
  for (const Kernel::Chain::Stage& s : c.stages)
    *to++ = {s.kernel, start(s.slot), s.skip - back(s.slot), start(s.slot2), s.skip2 - back(s.slot2)};
  return to;
}

/// Fills a line with copies of one value of `bytes` bytes.
void repeat_over_line(const std::byte* from, std::int64_t bytes, std::byte* line);

/// A group as written: in the axes of its domain, merged where everything allows it, with slots that have no place yet.
struct WrittenKernel {
  Kernel::Axes axes{};
  Kernel::Memory memory{};
  Kernel::Slots slots{};
  Kernel::Program program{};
  std::vector<const Graph::Node*> nodes{};  ///< by instruction: the node that it computes, or null
};
/// Writes the program of a group. The base of each place is the number of its value; offsets are in bytes.
WrittenKernel write_kernel(const Graph& g, const Group& group, std::span<const Window> windows);

/// Builds the kernel of a group. The base of each place is the number of its value, because addresses are not known
/// yet; values with a window in `windows` have its strides.
Kernel build_kernel(const Graph& g, const Group& group, std::span<const Window> windows);

}  // namespace ferrite::detail
