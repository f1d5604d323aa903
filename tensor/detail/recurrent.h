#pragma once
/// The steps of one direction of a recurrent layer over projected inputs, as one kernel: one product a step for all
/// rows, the gates of a row finished in registers, the state in place. Roundings are those of the composition.
#include <cstdint>

namespace ferrite::detail {

/// A kind of cell that has a kernel.
enum class CellType : std::uint8_t { gru, lstm, rnn_tanh, rnn_relu };

constexpr std::int64_t gates_of(CellType c) { return c == CellType::gru ? 3 : c == CellType::lstm ? 4 : 1; }
constexpr bool has_memory(CellType c) { return c == CellType::lstm; }
/// Values of H that a step saves for the way back: r, z, n, h W_hn + b_hn; or i, f, g, o, c'; or none.
constexpr std::int64_t saved_of(CellType c) { return c == CellType::gru ? 4 : c == CellType::lstm ? 5 : 0; }

/// Rows of H or more elements that stand at data + t * step + b * row.
template <class P>
struct Rows {
  P data = nullptr;
  std::int64_t step = 0;
  std::int64_t row = 0;
  P at(std::int64_t t, std::int64_t b) const { return data + t * step + b * row; }
  explicit operator bool() const { return data != nullptr; }
};

/// What one direction computes with. T steps, B rows, H units; lengths and resets may be absent.
template <class T>
struct Recurrence {
  CellType cell;
  std::int64_t T_, B, H;
  bool reverse;
  Rows<const T*> i;  ///< x W_ih + b_ih, [.., G H]
  const T* w_hh;     ///< [H, G H]
  const T* b_hh;     ///< [G H] or null
  const T* h0;       ///< [B, H]
  const T* c0;       ///< [B, H] or null
  const std::int64_t* lengths;
  Rows<const bool*> resets;

  std::int64_t columns() const { return gates_of(cell) * H; }
  std::int64_t time(std::int64_t n) const { return reverse ? T_ - 1 - n : n; }
  bool valid(std::int64_t t, std::int64_t b) const { return !lengths || t < lengths[b]; }
  /// Whether the state begins anew before the n-th step in the order of computing.
  bool anew(std::int64_t n, std::int64_t b) const {
    if (!resets || (reverse && n == 0)) return false;
    const std::int64_t t = reverse ? time(n) + 1 : time(n);
    return valid(t, b) && *resets.at(t, b);
  }
};

/// Forward: outputs y, the states h [B, H] and c that go from the initial to the last ones, and what is saved.
template <class T>
struct RecurrenceOut {
  Rows<T*> y;
  T* h;
  T* c;        ///< or null
  T* saved;    ///< [T, B, S H], or null: nothing is saved
  T* scratch;  ///< [B, G H]
};
template <class T>
void run_recurrence(const Recurrence<T>& r, const RecurrenceOut<T>& out);

/// Backward: from the outputs, what was saved and the cotangents of y (or null), to those of everything.
template <class T>
struct RecurrenceGrad {
  Rows<const T*> y;
  const T* saved;
  Rows<const T*> dy;  ///< or none
  Rows<T*> di;        ///< [.., G H], all written
  T* dh;              ///< [B, H]: from the cotangent of the last state to that of the first
  T* dc;              ///< likewise, or null
  T* dw;              ///< [H, G H], all written
  T* db;              ///< [G H], all written, or null
};
/// Weight gradients sum rows in the order of going back, b ascending, in blocks of 256 (docs/numerics.md, rule 4).
template <class T>
void run_recurrence_back(const Recurrence<T>& r, const RecurrenceGrad<T>& g);

}  // namespace ferrite::detail
