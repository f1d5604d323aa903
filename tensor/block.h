#pragma once
/// The function types of kernels of operations on elements, and the dtypes that such operations take.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/dtype.h"

namespace ferrite::detail {

/// Evaluates n elements of a pointwise operation. Operand j is read at in[j] + i * step[j], where step is 1 for a run
/// of values and 0 for a value repeated over a whole packet of 64 bytes. Whole packets only: every run must be
/// readable, and `out` writable, up to n rounded up to 64 bytes.
using Block = void (*)(const void* const* in, const std::ptrdiff_t* step, void* out, std::int64_t n);

/// The kernels of one pointwise operation, by the dtype of its operands; null for a dtype that it does not take.
struct Blocks {
  Block of[kComputedDtypes] = {};
};

/// The tables of one kind for all instruction sets (tensor/kernel/levels.h).
template <class Table>
class TableInUse;

/// Reduces each of `rows` contiguous runs of n elements to one result, in the order of docs/numerics.md, rule 3.
using RowReduction = void (*)(const void* x, std::int64_t rows, std::int64_t n, void* out);

/// The dtypes that an operation takes.
enum class Types : std::uint8_t { floats, numeric, any, boolean };

constexpr bool accepts(Types types, Dtype t) {
  switch (types) {
    case Types::floats: return is_float(t);
    case Types::numeric: return t != Dtype::boolean;
    case Types::boolean: return t == Dtype::boolean;
    case Types::any: break;
  }
  return true;
}

}  // namespace ferrite::detail
