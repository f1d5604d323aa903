#pragma once
/// Shared parts of the selective scan and its gradient: the order of their operands, kernels and composition.
#include "ferrite/tensor/ops/define.h"

namespace ferrite::detail {

/// Positions of the operands of a selective scan, -1 for what is absent:
///
///   x, delta, A, B, C, (D,) (state,) (lengths,) (resets)
///
/// Optional operands are recognised by rank and dtype: D is a vector of floats, the state has rank 3, lengths are i64,
/// resets bool.
struct ScanOperands {
  struct Item {
    Dtype dtype;
    int rank;
  };
  template <class ItemAt>
  ScanOperands(std::size_t n, std::size_t begin, ItemAt item_at) : first(static_cast<int>(begin)) {
    x = first, delta = first + 1, A = first + 2, B = first + 3, C = first + 4;
    floats = first + 5;
    count = static_cast<int>(n);
    complete = floats <= count;
    int last = 0;
    for (int k = floats; k < count; ++k) {
      const Item item = item_at(static_cast<std::size_t>(k));
      const bool real = is_float(item.dtype);
      int* const places[] = {&D, &state, &lengths, &resets};
      const int which = item.dtype == Dtype::i64 ? 2 : item.dtype == Dtype::boolean ? 3 : item.rank == 1 ? 0 : 1;
      complete &= which >= last && (real || which > 1);
      last = which + 1;
      *places[which] = k;
      if (real) floats = k + 1;
    }
  }
  static ScanOperands of(Inputs in, std::size_t begin) {
    return ScanOperands(in.size(), begin, [in](std::size_t k) { return Item{in[k].dtype(), in[k].rank()}; });
  }

  int first, x, delta, A, B, C, D = -1, state = -1, lengths = -1, resets = -1;
  int count, floats;      ///< the ends of the operands, and of those of floats, which come first
  bool complete = false;  ///< whether the operands make up a selective scan
};

/// Number of operands before those of the gradient: the cotangents of y and of the last state, of shape [0] where there
/// is none.
constexpr std::size_t kScanCotangents = 2;

/// Throws ShapeError and DtypeError for operands that the operations do not take.
void check_scan(std::string_view where, Inputs in, const ScanOperands& o);
/// Returns the spec of the state of a scan, [Bt, Dm, N].
Spec scan_state(Inputs in, const ScanOperands& o);

/// Computes y and the last state. Throws ShapeError for lengths outside 0..T.
void run_scan(std::string_view where, Inputs in, std::span<Tensor> out);
/// Computes the gradient of every float operand.
void run_scan_grad(std::string_view where, Inputs in, std::span<Tensor> out);

/// Computes the results of run_scan and run_scan_grad step by step in operations.
Tensors composed_scan(Inputs in);
Tensors composed_scan_grad(Inputs in);

}  // namespace ferrite::detail
