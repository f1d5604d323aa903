#pragma once
/// Stacks of recurrent layers on the memory of PyTorch's tensors, with PyTorch's layout of weights, which are packed
/// again in each call, so that no change of them can be missed.
#include <cstdint>
#include <vector>

#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/detail/recurrence.h"

namespace ferrite::python {

using nn::detail::GatedCell;
using nn::detail::Rows;

/// The cells that PyTorch has, in the order of the numbers by which Python calls them.
inline constexpr const GatedCell* kCells[] = {&nn::detail::kGru, &nn::detail::kLstm, &nn::detail::kRnn,
                                              &nn::detail::kRnnRelu};

/// The sizes of a stack of layers and of one call.
struct Sizes {
  const GatedCell* cell = kCells[0];
  std::int64_t T = 0, B = 0, D = 0, H = 0, P = 0, layers = 1, directions = 1;
  bool bias = true;

  std::int64_t count() const { return layers * directions; }
  std::int64_t columns() const { return cell->gates * H; }
  std::int64_t width() const { return directions * P; }
  std::int64_t features_into(std::int64_t layer) const { return layer == 0 ? D : width(); }
  std::int64_t weights_each() const { return 2 + (bias ? 2 : 0) + (P != H ? 1 : 0); }
};

/// Where the parts of the memory that a gradient reads begin, in elements: for each layer its outputs [T, B, width],
/// then what the steps of each direction save. Each part is aligned to 64 bytes, and as many follow the last one.
struct Saved {
  explicit Saved(const Sizes& s)
      : output(lines(s.T * s.B * s.width())),
        direction(lines(s.T * s.B * s.cell->saved * s.H)),
        layer(output + s.directions * direction),
        all(s.layers * layer + 32) {}
  static std::int64_t lines(std::int64_t n) { return (n + 15) / 16 * 16; }
  std::int64_t output, direction, layer, all;
};

/// The memory of a call's operands. Rows of x may be any distance apart; all others are row-major.
template <class T>
struct Operands {
  Rows<const T*> x;
  std::int64_t x_bytes = 0;  ///< from the first to the last element
  const T* h0 = nullptr;
  const T* c0 = nullptr;
  std::vector<const T*> weights{};
  const std::int64_t* batch_sizes = nullptr;  ///< of packed rows, [T]
};

/// The cotangents that arrive at the results of a call, null where none does, and the gradients to write, null where
/// none is wanted. States are row-major.
template <class T>
struct Gradients {
  Rows<const T*> dy{};
  const T* dhn = nullptr;
  const T* dcn = nullptr;
  T* dx = nullptr;  ///< [T, B, D], row-major, in the order of x's axes (packed: its rows)
  bool batch_first = false;
  T* dh0 = nullptr;
  T* dc0 = nullptr;
  std::vector<T*> weights{};
};

/// Runs all layers. y [T, B, width] (packed: its rows without padding) and the last states receive the results, `saved`
/// (or null) what the gradient reads.
template <class T>
void run_forward(const Sizes& s, const Operands<T>& o, T* y, T* h, T* c, T* saved);
/// Computes the gradients that are wanted from what `run_forward` saved.
template <class T>
void run_backward(const Sizes& s, const Operands<T>& o, const T* saved, const Gradients<T>& g);

}  // namespace ferrite::python
