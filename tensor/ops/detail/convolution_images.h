#pragma once
/// What convolutions, their adjoints and the gradients of their weights share: images of operands, shares for threads.
#include <algorithm>
#include <cstdint>

#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/ops/detail/convolution_plan.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {

/// Of the instruction set in use.
template <class T>
const ConvolutionKernels<T>& convolution_kernels_for();
template <>
const ConvolutionKernels<float>& convolution_kernels_for();
template <>
const ConvolutionKernels<double>& convolution_kernels_for();

/// Of operands that are read where they stand.
inline const ImagePlan as_it_stands;

/// Elements that kernels may read past the end of what counts.
template <class T>
constexpr std::int64_t kBeyond = 64 / static_cast<std::int64_t>(sizeof(T));

/// Channels, groups and rows of weights of one application.
struct Extents {
  std::int64_t N, groups, inner, outer;  ///< channels of the large and of the small side, in one group
};
inline Extents extents_of(const Tensor& large, const Tensor& small, std::int64_t groups) {
  return {large.shape()[0], groups, large.shape()[1] / groups, small.shape()[1] / groups};
}

/// One channel on both sides of a group.
inline bool is_depthwise(const Extents& e) { return e.inner == 1 && e.outer == 1; }

/// The operand `x` of one channel as a pass through planes reads it.
template <class T>
PlaneSource<T> source_of(const PlanePass& plane, const T* x) {
  return {x + plane.start, plane.stride, plane.row, plane.first, plane.last, plane.width, plane.columns};
}

/// f(share) for so many shares, on all threads where there is work for them.
template <class F>
void share(std::int64_t shares, std::int64_t multiply_adds, const F& f) {
  if (shares > 1 && thread_count() > 1 && multiply_adds >= kWorthSharing) return parallel_for(shares, f);
  for (std::int64_t i = 0; i < shares; ++i) f(i);
}
/// Parts into which each of `shares` is cut, at most `most`, so that every thread finds several.
inline std::int64_t parts_of(std::int64_t shares, std::int64_t most, std::int64_t multiply_adds) {
  if (thread_count() == 1 || multiply_adds < kWorthSharing || shares == 0) return 1;
  return std::clamp<std::int64_t>((2 * thread_count() + shares - 1) / shares, 1, std::max<std::int64_t>(1, most));
}

/// Operands of so many channels as images of a plan: where they stand, or placed in this thread's memory. What a plan
/// leaves zero is cleared once for all operands that take the same slot in turn.
template <class T>
class Images {
 public:
  /// At most `most` slots, as many as leave room in the first cache: what is stored shortly before it is read at
  /// another alignment delays the read, so small images are placed together before any of them is read.
  Images(const ImagePlan& plan, std::int64_t channels, std::int64_t elements, std::int64_t most)
      : plan_(plan), channels_(channels), elements_(elements) {
    if (plan.phases.empty()) return;
    constexpr auto kNear = 24 * 1024 / static_cast<std::int64_t>(sizeof(T));
    const std::int64_t size = channels * plan.channel;
    slots_ = std::clamp<std::int64_t>(kNear / std::max<std::int64_t>(size, 1), 1, std::max<std::int64_t>(most, 1));
    memory_ = kernel_memory().panels.get<T>(static_cast<std::size_t>(slots_ * size + kBeyond<T>));
    std::fill_n(memory_, slots_ * size, T(0));
  }

  /// f(i, image) for the operands i in [first, last), of which `from(i)` tells the first element.
  template <class From, class F>
  void each(std::int64_t first, std::int64_t last, const From& from, const F& f) const {
    const T* placed[kMostSlots];
    for (; first < last; first += slots_) {
      const std::int64_t n = std::min(slots_, last - first);
      for (std::int64_t i = 0; i < n; ++i) placed[i] = place(i, from(first + i));
      for (std::int64_t i = 0; i < n; ++i) f(first + i, placed[i]);
    }
  }

  static constexpr std::int64_t kMostSlots = 16;

 private:
  const T* place(std::int64_t slot, const T* from) const {
    if (plan_.phases.empty()) return from;
    T* const image = memory_ + slot * channels_ * plan_.channel;
    std::int64_t phase = 0;
    for (const ImageAxes& axes : plan_.phases)
      convolution_kernels_for<T>().place(channels_, from, elements_, axes, image + plan_.volume * phase++,
                                         plan_.channel);
    return image;
  }

  const ImagePlan& plan_;
  std::int64_t channels_, elements_, slots_ = 1;
  T* memory_ = nullptr;
};

}  // namespace ferrite::detail
