/// Products of vectors, matrices and tensors, composed of `matmul`, views and elementwise products.
#include <algorithm>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/ops/detail/composing.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite {
namespace detail {
namespace {

struct Outer {
  static constexpr auto name = "outer", onnx = "", summary = "a[i] b[j] of two vectors";

  static Tensor parts(Inputs in, const NoAttrs&) { return unsqueeze(in[0], 1) * in[1]; }
};

struct Cross {
  using Attributes = AxisAttrs;
  static constexpr auto name = "cross", onnx = "", summary = "vector product along an axis of extent 3";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensors x = unbind(in[0], a.axis), y = unbind(in[1], a.axis);
    return stack({x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]}, a.axis);
  }
};

/// With leading axes of extent 1 up to a rank.
Tensor led(const Tensor& x, int rank) {
  Shape s = Shape::filled(rank - x.rank(), 1);
  for (const std::int64_t e : x.shape()) s.push_back(e);
  return reshape(x, s);
}

struct Kron {
  static constexpr auto name = "kron", onnx = "",
                        summary = "Kronecker product: every element of a times the whole of b";

  static Tensor parts(Inputs in, const NoAttrs&) {
    const int rank = std::max(in[0].rank(), in[1].rank());
    Tensor a = led(in[0], rank);
    const Tensor b = led(in[1], rank);
    const Shape counts = a.shape();
    for (int k = 0; k < rank; ++k)
      if (b.shape()[k] != 1) a = repeat_interleave(a, b.shape()[k], k);
    return a * tile(b, counts);
  }
};

struct TensordotAttrs {
  Shape a{}, b{};
  static constexpr auto fields = attr_list(attr("a", &TensordotAttrs::a), attr("b", &TensordotAttrs::b));
};

/// The axes that are not in a list.
Shape others(int rank, const Shape& axes) {
  Shape out;
  for (int i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) out.push_back(i);
  return out;
}

struct Tensordot {
  using Attributes = TensordotAttrs;
  static constexpr auto name = "tensordot", onnx = "", summary = "sums products over axes of a and of b, in pairs";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape rows = others(in[0].rank(), a.a), columns = others(in[1].rank(), a.b);
    Shape left = rows, right = a.b, result;
    std::int64_t inner = 1, n = 1, m = 1;
    for (const std::int64_t k : a.a) {
      left.push_back(k);
      inner = checked_mul(inner, in[0].shape()[static_cast<int>(k)], name);
    }
    for (const std::int64_t k : rows) {
      result.push_back(in[0].shape()[static_cast<int>(k)]);
      n = checked_mul(n, result[-1], name);
    }
    for (const std::int64_t k : columns) {
      right.push_back(k);
      result.push_back(in[1].shape()[static_cast<int>(k)]);
      m = checked_mul(m, result[-1], name);
    }
    const Tensor x = reshape(permute(in[0], left), {n, inner}), y = reshape(permute(in[1], right), {inner, m});
    return reshape(matmul(x, y), result);
  }
};

struct VanderAttrs {
  std::int64_t n = 0;
  bool increasing = false;
  static constexpr auto fields = attr_list(attr("n", &VanderAttrs::n), attr("increasing", &VanderAttrs::increasing));
};

struct Vander {
  using Attributes = VanderAttrs;
  static constexpr auto name = "vander", onnx = "", summary = "powers 0..n - 1 of a vector as columns";

  static Tensor parts(Inputs in, const Attributes& a) {
    if (a.n == 0) return slice(unsqueeze(in[0], 1), 1, 0, 0);
    const Tensor exponents = a.increasing ? arange(0, a.n, 1, in[0].dtype()) : arange(a.n - 1, -1, -1, in[0].dtype());
    return pow(unsqueeze(in[0], 1), exponents);
  }
};

void check_ranks(std::string_view where, const Tensor& a, int rank_a, const Tensor& b, int rank_b) {
  if (a.rank() == rank_a && b.rank() == rank_b) return;
  throw_shape(where, "operands of ranks " + std::to_string(rank_a) + " and " + std::to_string(rank_b) +
                         " are needed, got " + a.shape().str() + " and " + b.shape().str());
}

}  // namespace

Family vector_product_family() {
  static constexpr const Primitive* list[] = {&composite<Outer>, &composite<Cross>, &composite<Kron>,
                                              &composite<Tensordot>, &composite<Vander>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t n) {
  if (n < 0 || n > a.rank() || n > b.rank())
    throw ValueError("tensordot: the number of axes must lie in 0..the ranks of " + a.shape().str() + " and " +
                     b.shape().str() + ", got " + std::to_string(n));
  Shape of_a, of_b;
  for (std::int64_t k = 0; k < n; ++k) {
    of_a.push_back(a.rank() - n + k);
    of_b.push_back(k);
  }
  return tensordot(a, b, of_a, of_b);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& axes_a, const Shape& axes_b) {
  check_float(a, "tensordot");
  if (axes_a.rank() != axes_b.rank())
    throw ValueError("tensordot: axes " + axes_a.str() + " and " + axes_b.str() + " are not as many");
  Shape of_a, of_b;
  for (const std::int64_t k : axes_a) of_a.push_back(axis_of(k, a.rank(), "tensordot"));
  for (const std::int64_t k : axes_b) of_b.push_back(axis_of(k, b.rank(), "tensordot"));
  check_axes("tensordot", of_a, a.rank());
  check_axes("tensordot", of_b, b.rank());
  for (int k = 0; k < of_a.rank(); ++k)
    if (a.shape()[static_cast<int>(of_a[k])] != b.shape()[static_cast<int>(of_b[k])])
      throw_shape("tensordot", "extents differ: axis " + std::to_string(of_a[k]) + " of " + a.shape().str() +
                                   " and axis " + std::to_string(of_b[k]) + " of " + b.shape().str());
  return composed<Tensordot>({{&a, &b}}, {of_a, of_b});
}

Tensor outer(const Tensor& a, const Tensor& b) {
  check_ranks("outer", a, 1, b, 1);
  return composed<Outer>({{&a, &b}});
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  check_ranks("bmm", a, 3, b, 3);
  if (a.shape()[0] != b.shape()[0])
    throw_shape("bmm", "batches differ: " + a.shape().str() + " and " + b.shape().str());
  return matmul(a, b);
}

Tensor mv(const Tensor& matrix, const Tensor& vector) {
  check_ranks("mv", matrix, 2, vector, 1);
  return matmul(matrix, vector);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  check_ranks("dot", a, 1, b, 1);
  return matmul(a, b);
}

Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis) {
  const Shape common = broadcast(a.shape(), b.shape(), "cross");
  const int at = axis_of(axis, common.rank(), "cross");
  const int on_a = at - common.rank() + a.rank(), on_b = at - common.rank() + b.rank();
  if (on_a < 0 || on_b < 0 || a.shape()[on_a] != 3 || b.shape()[on_b] != 3)
    throw_shape("cross",
                "axis " + std::to_string(axis) + " must have extent 3: " + a.shape().str() + " and " + b.shape().str());
  const Tensor x = led(a, common.rank()), y = led(b, common.rank());
  return composed<Cross>({{&x, &y}}, {at});
}

Tensor kron(const Tensor& a, const Tensor& b) { return composed<Kron>({{&a, &b}}); }

Tensor vander(const Tensor& x, std::int64_t n, bool increasing) {
  check_float(x, "vander");
  if (x.rank() != 1) throw_shape("vander", "a vector is needed, got " + x.shape().str());
  if (n < -1) throw ValueError("vander: the number of powers must not be negative, got " + std::to_string(n));
  return composed<Vander>({{&x}}, {n < 0 ? x.numel() : n, increasing});
}

}  // namespace ferrite
