#pragma once
/// The weights of a recurrent layer as its stream keeps them.
#include <algorithm>
#include <cstddef>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/recurrent/detail/pack_weights.h"

namespace ferrite::nn::detail {

/// The weights of one layer, packed into memory that the object owns.
template <class T>
class PackedLayer {
 public:
  /// Packs all weights; leaves out W_hh if `carries`, because the step holds it in another form.
  PackedLayer(const GatedCell& cell, const RecurrentWeights<Parameter>& cells, bool carries = false)
      : cell_(&cell), cells_(cells), carries_(carries), memory_(pack(nullptr)) {
    refresh();
  }
  void refresh() { pack(memory_.get()); }

  const KernelWeights<T>& weights() const { return weights_; }
  /// Returns the model's W_hh, row-major.
  Tensor weight_hh() const { return contiguous(cells_.weight_hh.peek()); }
  [[gnu::noinline]] PackedLayer(const PackedLayer& o)
      : cell_(o.cell_), cells_(o.cells_), carries_(o.carries_), weights_(o.weights_), memory_(o.memory_) {
    const std::ptrdiff_t moved = memory_.get() - o.memory_.get();
    EarlyAndLate<T>& hh = weights_.weight_hh;
    for (auto* w : {&weights_.weight_ih, &hh.early, &hh.late, &weights_.weight_hr})
      if (w->data) w->data += moved;
    for (const T** b : {&weights_.bias_ih, &weights_.bias_hh, &weights_.weight_ch})
      if (*b) *b += moved;
  }

 private:
  /// Packs the weights to `to`, unless it is null, and returns the number of elements that they take.
  std::int64_t pack(T* to) {
    static const Tensor none;
    const auto row_major = [](const Parameter& p) { return RowMajor(p.defined() ? p.peek() : none); };
    std::int64_t n = 0;
    weights_ = pack_weights<T>(*cell_, cells_.map(row_major), {true, !carries_, true, true, true, true},
                               [&](const Tensor&, const auto&, std::int64_t elements, const auto& fill) -> const T* {
                                 T* const at = to ? to + n : nullptr;
                                 if (at) fill(at);
                                 n += elements;
                                 return at;
                               });
    GateMatrix<T>& hh = weights_.weight_hh.early;
    if (carries_) hh.data = nullptr, hh.K = 0;
    return n;
  }

  const GatedCell* cell_;
  RecurrentWeights<Parameter> cells_;
  bool carries_;
  KernelWeights<T> weights_{};
  StepMemory<T> memory_;
};

}  // namespace ferrite::nn::detail
