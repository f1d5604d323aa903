#include "ferrite/compile/detail/kernel.h"
#include "ferrite/tensor/detail/cheap.h"

namespace ferrite::detail {
namespace {

constexpr std::uint32_t kMostOperands = 3;

/// How often each slot is read, whatever reads it.
std::vector<int> count_reads(const Kernel& k) {
  std::vector<int> reads(k.slots.size());
  for (const Kernel::Instruction& i : k.program) {
    for (std::uint32_t j = 0; j < i.reads(); ++j) ++reads[i.in[j]];
    if (i.step == Kernel::Step::store) ++reads[i.slot];
  }
  return reads;
}

/// The instruction that does both, in the second one's place; false where there is no kernel for it.
bool merge(const Kernel::Instruction& first, Kernel::Instruction& second) {
  constexpr auto kFloat = static_cast<std::size_t>(Dtype::f32);
  if (!first.op || !second.op || first.of_rows != second.of_rows) return false;
  if (first.block != first.op->block[kFloat] || second.block != second.op->block[kFloat]) return false;
  if (first.index + second.index - 1 > kMostOperands) return false;
  for (std::uint32_t at = 0; at < second.index; ++at) {
    if (second.in[at] != first.slot) continue;
    const Block block = pair_block(*first.op, *second.op, at, Dtype::f32);
    if (!block) return false;
    const std::uint16_t other = second.in[1 - at];
    for (std::uint32_t j = 0; j < first.index; ++j) second.in[j] = first.in[j];
    if (second.index == 2) second.in[first.index] = other;
    second.index = first.index + second.index - 1;
    second.block = block;
    second.op = nullptr;
    return true;
  }
  return false;
}

}  // namespace

void pair_operations(Kernel& k) {
  const std::vector<int> reads = count_reads(k);
  std::vector<int> writer(k.slots.size(), -1);
  std::vector<char> gone(k.program.size());
  for (std::size_t t = 0; t < k.program.size(); ++t) {
    Kernel::Instruction& i = k.program[t];
    if (i.step != Kernel::Step::apply) continue;
    for (std::uint32_t j = 0; j < i.index; ++j) {
      const int w = writer[i.in[j]];
      if (w < 0 || reads[i.in[j]] != 1 || !merge(k.program[static_cast<std::size_t>(w)], i)) continue;
      gone[static_cast<std::size_t>(w)] = true;
      break;
    }
    writer[i.slot] = static_cast<int>(t);
  }
  std::size_t kept = 0;
  for (std::size_t t = 0; t < k.program.size(); ++t)
    if (!gone[t]) k.program[kept++] = k.program[t];
  k.program.resize(kept);
}

}  // namespace ferrite::detail
