/// Cheap operations in a row as one instruction, whose values stay in registers.
#include "ferrite/compile/fuse/detail/kernel_stages.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::detail {
namespace {

/// Makes cheap operations of which one reads nothing but the other's result and what stands in memory one instruction.
class Chaining {
 public:
  Chaining(Kernel::Program program, const Kernel::Slots& slots)
      : to_(std::move(program)),
        slots_(slots),
        reads_(slots.all.size()),
        writer_(slots.all.size(), -1),
        gone_(to_.instructions.size()) {
    for (const Kernel::Instruction& i : to_.instructions) {
      for (std::uint32_t j = 0; j < i.reads(); ++j) ++reads_[i.in[j]];
      if (i.step == Kernel::Step::store) ++reads_[i.slot];
    }
  }

  Kernel::Program run() {
    for (std::size_t t = 0; t < to_.instructions.size(); ++t) {
      Kernel::Instruction& i = to_.instructions[t];
      if (i.step != Kernel::Step::apply || !is_cheap(i)) continue;
      const int first = value_of(i);
      if (first >= 0) {
        lengthen(writer_[i.in[first]], i, first);
      } else {
        begin(i);
      }
      writer_[i.slot] = static_cast<int>(t);
    }
    std::size_t t = 0;
    std::erase_if(to_.instructions, [&](const Kernel::Instruction&) { return gone_[t++] != 0; });
    return std::move(to_);
  }

 private:
  static bool is_cheap(const Kernel::Instruction& i) {
    return i.op && i.block == i.op->block(Dtype::f32) && link_through(*i.op, 0, false);
  }
  const Kernel::Chain& chain_of(const Kernel::Instruction& i) const {
    return to_.chains[static_cast<std::size_t>(i.chain)];
  }

  /// The chain that gives an operand for this instruction alone; null: there is none.
  const Kernel::Instruction* chain_before(const Kernel::Instruction& i, std::uint32_t j) const {
    const int w = writer_[i.in[j]];
    if (w < 0 || reads_[i.in[j]] != 1) return nullptr;
    const Kernel::Instruction& before = to_.instructions[static_cast<std::size_t>(w)];
    return before.of_rows == i.of_rows ? &before : nullptr;
  }

  /// Whether an operand is a product of two values in memory, which a link can compute on the way.
  bool is_product(const Kernel::Instruction& i, std::uint32_t j) const {
    const Kernel::Instruction* const before = chain_before(i, j);
    if (!before || !link_through_product(*i.op, 0, false, false)) return false;
    const Kernel::Chain& c = chain_of(*before);
    return c.links.size() == 1 && c.links[0].op == ops::mul;
  }

  /// The operand that becomes the value of a chain, if there is room in it; else -1.
  int value_of(const Kernel::Instruction& i) const {
    int value = -1;
    for (std::uint32_t j = 0; j < i.index; ++j) {
      const Kernel::Instruction* const before = chain_before(i, j);
      if (!before || before->index + i.index > kMostOperands || chain_of(*before).links.size() == kMostLinks) continue;
      if (value < 0 || is_product(i, 1 - j)) value = static_cast<int>(j);
    }
    return value;
  }

  void begin(Kernel::Instruction& i) {
    const bool second = i.index == 2 && slots_[i.in[0]].kind == Kernel::Slot::repeated;
    i.step = Kernel::Step::chain;
    i.chain = static_cast<int>(to_.chains.size());
    if (second) std::swap(i.in[0], i.in[1]);
    to_.chains.emplace_back().links.push_back({i.op, second ? 1U : 0U, i.index - 1, 0});
  }

  /// The instruction takes the place of the one before, and its links.
  void lengthen(int writer, Kernel::Instruction& i, int value) {
    const Kernel::Instruction& before = to_.instructions[static_cast<std::size_t>(writer)];
    const bool two = i.index == 2;
    Kernel::Chain::Operation link{i.op, static_cast<std::uint32_t>(value), two ? before.index : 0, 0};
    std::uint16_t others[2] = {i.in[1 - value], 0};
    if (two && is_product(i, static_cast<std::uint32_t>(1 - value))) {
      const Kernel::Instruction& product = *chain_before(i, static_cast<std::uint32_t>(1 - value));
      const bool swapped = chain_of(product).links[0].at == 1;
      others[0] = product.in[swapped ? 1 : 0];
      others[1] = product.in[swapped ? 0 : 1];
      link.factor = link.operand + 1;
      gone_[static_cast<std::size_t>(writer_[i.in[1 - value]])] = true;
    }
    to_.chains[static_cast<std::size_t>(before.chain)].links.push_back(link);
    for (std::uint32_t j = 0; j < before.index; ++j) i.in[j] = before.in[j];
    i.index = before.index;
    if (link.operand) i.in[i.index++] = others[0];
    if (link.factor) i.in[i.index++] = others[1];
    i.step = Kernel::Step::chain;
    i.chain = before.chain;
    i.op = nullptr;
    i.block = nullptr;
    gone_[static_cast<std::size_t>(writer)] = true;
  }

  Kernel::Program to_;
  const Kernel::Slots& slots_;
  std::vector<int> reads_;   ///< by slot: how often, whatever reads it
  std::vector<int> writer_;  ///< by slot: the chain's instruction
  std::vector<char> gone_;
};

}  // namespace

Kernel::Program with_chains(Kernel::Program program, const Kernel::Slots& slots) {
  return Chaining(std::move(program), slots).run();
}

namespace {

/// From the end of a row of a slot to the next one.
std::ptrdiff_t skip_of(const PlacedSlots& placed, std::uint16_t s, std::int64_t length) {
  const Kernel::SlotInfo& slot = placed.slots[s];
  if (slot.kind != Kernel::Slot::rows) return 0;
  return (slot.output ? placed.memory.stores[slot.index].strides : placed.memory.loads[slot.index].strides)[-2] -
         length;
}

/// A chain's instruction, and its code.
void resolve(Kernel::Instruction& i, Kernel::Chain& c, const PlacedSlots& placed, std::int64_t length) {
  const auto is = [&](std::uint32_t j, Kernel::Slot kind) { return placed.slots[i.in[j]].kind == kind; };
  c.by_rows = placed.slots[i.slot].kind == Kernel::Slot::rows;
  for (std::uint32_t j = 0; j < i.index; ++j) c.by_rows |= is(j, Kernel::Slot::rows);
  if (c.links.size() == 1 && !c.by_rows) {  // its own loop is as good
    if (c.links[0].at == 1) std::swap(i.in[0], i.in[1]);
    i.step = Kernel::Step::apply;
    return;
  }
  const auto add = [&](const LinkKernel* kernel, std::uint16_t slot, std::uint16_t slot2) {
    c.stages.push_back({kernel, slot, slot2, skip_of(placed, slot, length), skip_of(placed, slot2, length)});
  };
  add(link_from(is(0, Kernel::Slot::repeated)), i.in[0], i.in[0]);
  for (const Kernel::Chain::Operation& o : c.links) {
    const bool repeated = is(o.operand, Kernel::Slot::repeated), repeated2 = is(o.factor, Kernel::Slot::repeated);
    add(o.factor ? link_through_product(*o.op, o.at, repeated, repeated2) : link_through(*o.op, o.at, repeated),
        i.in[o.operand], i.in[o.factor]);
  }
  add(link_to(), i.slot, i.slot);
}

}  // namespace

Kernel::Program resolve_program(Kernel::Program program, const PlacedSlots& placed, const Kernel::Tiling& tiling) {
  for (Kernel::Instruction& i : program.instructions) {
    if (i.step == Kernel::Step::chain)
      resolve(i, program.chains[static_cast<std::size_t>(i.chain)], placed, tiling.length);
    if (i.step != Kernel::Step::apply) continue;
    for (std::uint32_t j = 0; j < i.index; ++j) i.run[j] = placed.slots[i.in[j]].kind == Kernel::Slot::repeated ? 0 : 1;
  }
  return program;
}

}  // namespace ferrite::detail
