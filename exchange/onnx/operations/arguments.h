#pragma once
/// Arguments that many ONNX operations read in the same way.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/exchange/onnx/call.h"
#include "ferrite/tensor/shape.h"

namespace ferrite::onnx::detail {

inline Shape shape_of(const std::vector<std::int64_t>& extents) {
  return Shape(std::span<const std::int64_t>(extents));
}

/// Returns an axis counted from the front; refuses the node where a tensor of that rank does not have it.
inline int axis_of(const Call& call, std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank)
    call.refuse("axis " + std::to_string(axis) + " lies outside of a tensor of rank " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}
inline std::vector<std::int64_t> axes_of(const Call& call, std::vector<std::int64_t> axes, std::int64_t rank) {
  for (auto& axis : axes) axis = axis_of(call, axis, rank);
  return axes;
}

/// Returns axes that are an attribute before the version `since`, and input i from it on.
inline std::vector<std::int64_t> axes_argument(const Call& call, std::int64_t since, std::size_t i,
                                               std::string_view name = "axes") {
  if (call.version() < since) return call.integers(name);
  return call.has(i) ? call.known_ints(i) : std::vector<std::int64_t>{};
}

/// Returns numbers that extents are computed from, unchanged. Refuses the node where one is below `least` or so large
/// that the product of two would overflow.
inline std::vector<std::int64_t> sizes_of(const Call& call, std::string_view name, std::vector<std::int64_t> all,
                                          std::int64_t least) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t n : all)
    if (n < least || n > kMost)
      call.refuse(std::string(name) + " must lie between " + std::to_string(least) + " and " + std::to_string(kMost) +
                  ", got " + std::to_string(n));
  return all;
}
/// Refuses the node where n numbers, which it would make one by one, are more than a result may have.
inline void check_count(const Call& call, double n) {
  if (!(n <= static_cast<double>(call.most_elements())))
    call.refuse("a result of this size is too large (ReadOptions::most_elements)");
}
/// Returns paddings as sizes_of does; they may be negative, which crops.
inline std::vector<std::int64_t> pads_of(const Call& call, std::vector<std::int64_t> all) {
  return sizes_of(call, "pads", std::move(all), std::numeric_limits<std::int32_t>::min());
}

/// Returns the result of an operation that only moves elements.
inline Value moved(const Tensor& y, ElementType type) { return {y, type}; }

/// Returns the second operand of arithmetic. Before version 7 it broadcasts only where the node says so, from an axis
/// on.
Tensor second_operand(const Call& call);

/// Returns x convolved with a weight by the attributes of a Conv.
Tensor convolution_of(const Call& call, const Tensor& x, const Tensor& weight, const Tensor& bias);

/// Returns the softmax along an axis; for types of 16 bits each step is rounded, as in the composition by which the
/// standard defines it.
Tensor softmax_of(const Tensor& x, int axis, ElementType type);

}  // namespace ferrite::onnx::detail
