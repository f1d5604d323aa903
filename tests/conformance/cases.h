#pragma once
/// Helpers that the conformance tests share: applying operations to tensors made of doubles, and comparing.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/oracle.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/primitive.h"

namespace conformance {

using ferrite::Attrs;
using ferrite::Dtype;
using ferrite::Primitive;
using ferrite::Shape;
using ferrite::Spec;
using ferrite::Tensor;
using ferrite::Tensors;
using ferrite::detail::Dense;
using ferrite::detail::Sample;

/// Applies an operation to tensors.
inline Tensors apply(const Primitive& op, const Tensors& in, const Attrs& attrs = {}) {
  const ferrite::OperandList operands(in);
  return op.is_composite() ? ferrite::detail::apply_composite(op, operands, attrs) : op.apply(operands, attrs);
}

/// Returns a tensor of any dtype from doubles.
inline Tensor tensor_of(const std::vector<double>& v, const Shape& shape, Dtype dtype) {
  return ferrite::visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    return Tensor::build<T>(shape, [&](std::span<T> out) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(v[i]);
    });
  });
}

/// Returns the elements as doubles.
inline std::vector<double> doubles(const Tensor& x) {
  return ferrite::visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<double> out;
    for (const T v : x.to_vector<T>()) out.push_back(static_cast<double>(v));
    return out;
  });
}

/// Returns the same values in another memory layout: axes reversed, every second element along the last.
inline Tensor scattered(const Tensor& x) {
  if (x.rank() == 0) return x;
  Shape order;
  for (int i = x.rank() - 1; i >= 0; --i) order.push_back(i);
  if (ferrite::is_storage_only(x.dtype())) {  // which pad refuses
    Shape twice = Shape::filled(x.rank() + 1, -1);
    twice[x.rank()] = 2;
    const Tensor apart =
        ferrite::contiguous(ferrite::expand(ferrite::unsqueeze(ferrite::permute(x, order), -1), twice));
    return ferrite::permute(ferrite::select(apart, -1, 0), order);
  }
  Shape twice = Shape::filled(x.rank() + 1, 0);
  twice[x.rank()] = 1;
  const Tensor apart = ferrite::pad(ferrite::unsqueeze(ferrite::contiguous(ferrite::permute(x, order)), -1),
                                    Shape::filled(x.rank() + 1, 0), twice, 0);
  return ferrite::permute(ferrite::select(apart, -1, 0), order);
}

/// Returns whether two numbers have equal bits or are both NaN.
inline bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

/// Returns the index of the first difference, or -1.
inline std::int64_t first_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return static_cast<std::int64_t>(i);
  return -1;
}

/// Returns the distance of a computed value from the exact one, in units of the last place of the exact one's float.
inline double ulps(double computed, double exact, Dtype dtype) {
  if (std::isnan(computed) || std::isnan(exact)) return std::isnan(computed) && std::isnan(exact) ? 0 : INFINITY;
  if (dtype == Dtype::f32)
    exact = std::isinf(static_cast<double>(static_cast<float>(exact))) ? std::copysign(INFINITY, exact) : exact;
  if (computed == exact) return 0;
  if (std::isinf(computed) || std::isinf(exact)) return INFINITY;
  const double tiny = dtype == Dtype::f32 ? 0x1p-126 : 0x1p-1022;
  const int digits = dtype == Dtype::f32 ? 23 : 52;
  const double unit = std::ldexp(1.0, std::ilogb(std::max(std::fabs(exact), tiny)) - digits);
  return std::fabs(computed - exact) / unit;
}

/// Returns where an operation differs in bits from the composition that it carries, or -1.
inline std::int64_t difference_from_reference(const Primitive& op, const Tensors& in, const Attrs& attrs = {}) {
  if (!op.reference) return -1;
  const Tensors composed = op.reference(ferrite::OperandList(in), attrs);
  return first_difference(doubles(apply(op, in, attrs)[0]), doubles(composed[0]));
}

/// Returns the dtype of an operand. The first operand of `where` is its condition, a bool next to operands of another
/// dtype.
Dtype operand_dtype(const Primitive& op, std::size_t operand, Dtype dtype);
/// Returns the values with which a pointwise operation is tested, one column for each operand: its domain and special
/// values; of several operands the cross product of fewer.
std::vector<std::vector<double>> columns_of(const Primitive& op, Dtype dtype);
/// Returns columns as tensors.
Tensors operands_of(const Primitive& op, const std::vector<std::vector<double>>& columns, Dtype dtype);
/// Returns the inputs of a sample with `real` for the dtype of its floats; `call` chooses the random ones.
Tensors inputs_of(const Primitive& op, const Sample& sample, Dtype real, std::uint32_t call);

/// Returns the fault of directional derivatives (autograd/jvp.h) of a function of float tensors, along random
/// directions: <u, J v> must be <J'u, v>, and J v the difference quotient. Empty: no fault.
std::string fault_of_jvp(const std::function<Tensor(const Tensors&)>& f, const Tensors& points);

/// Checks a pointwise operation. register.cpp registers one test case for every operation.
void check_pointwise(const Primitive& op);
void check_structured(const Primitive& op);
/// Checks that one application is the same eager, planned and fused.
void check_planned(const Primitive& op, const Tensors& in, const Attrs& attrs);

/// Checks a composite as one node of a graph: its text, its plan and its replay.
void check_whole(const Primitive& op, const Tensors& in, const Attrs& attrs);

}  // namespace conformance
