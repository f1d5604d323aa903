/// Several indices together: x[i, j, ...] read and written.
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/scatter.h"

namespace ferrite {
namespace detail {
namespace {

/// Indices of the axes from `first` on, which broadcast together, as one index of these axes made one.
Tensor joined_index(Label who, const Shape& x, int first, Inputs indices) {
  Tensor all;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const std::int64_t n = x[first + static_cast<int>(k)];
    const Tensor i = checked(cast(indices[k], Dtype::i64), -n, n - 1, who);
    const Tensor from_front = where(lt(i, 0), i + n, i);
    all = k == 0 ? from_front : all * n + from_front;
  }
  return all;
}

/// x's shape with `count` axes from `first` on replaced by others.
Shape with_axes(const Shape& x, int first, int count, const Shape& others) {
  Shape s;
  for (int i = 0; i < first; ++i) s.push_back(x[i]);
  for (const std::int64_t e : others) s.push_back(e);
  for (int i = first + count; i < x.rank(); ++i) s.push_back(x[i]);
  return s;
}

std::int64_t product(const Shape& x, int first, int count) {
  Shape part;
  for (int i = first; i < first + count; ++i) part.push_back(x[i]);
  return part.numel();
}

struct IndexPutAttrs {
  bool accumulate = false;
  static constexpr auto fields = attr_list(attr("accumulate", &IndexPutAttrs::accumulate));
};

struct IndexPut {
  using Attributes = IndexPutAttrs;
  static constexpr auto name = "index_put", onnx = "";
  static constexpr auto summary = "x with x[i, j, ...] = values, or += values: operands x, values, i, j, ...";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &values = in[1];
    InlineVector<const Tensor*, 8> pointers;
    for (std::size_t k = 2; k < in.size(); ++k) pointers.push_back(&in[k]);
    const auto count = static_cast<int>(pointers.size());
    const Tensor index = joined_index("index_put: index", x.shape(), 0, {pointers.data(), pointers.size()});
    const Tensor flat = reshape(x, with_axes(x.shape(), 0, count, {product(x.shape(), 0, count)}));
    const Tensor rows = reshape(expand(values, with_axes(x.shape(), 0, count, index.shape())),
                                with_axes(x.shape(), 0, count, {index.numel()}));
    const Tensor at = reshape(index, {index.numel()});
    return reshape(a.accumulate ? index_add(flat, 0, at, rows) : index_copy(flat, 0, at, rows), x.shape());
  }
};

void check_places(std::string_view where, const Tensor& x, int first, std::span<const Tensor> indices) {
  if (indices.empty() || first + static_cast<int>(indices.size()) > x.rank())
    throw_shape(where, std::to_string(indices.size()) + " indices from axis " + std::to_string(first) +
                           " on for a tensor of rank " + std::to_string(x.rank()) + ": " + x.shape().str());
  for (const Tensor& i : indices) check_index_dtype(where, i);
}

}  // namespace

Family composite_places_family() {
  static constexpr const Primitive* list[] = {&composite<IndexPut>};
  return list;
}

}  // namespace detail

Tensor index_put(const Tensor& x, std::span<const Tensor> indices, const Tensor& values, bool accumulate) {
  detail::check_places("index_put", x, 0, indices);
  if (values.dtype() != x.dtype())
    detail::throw_dtype("index_put", "dtypes differ: " + x.spec().str() + " and " + values.spec().str());
  InlineVector<const Tensor*, 16> operands;
  operands.push_back(&x);
  operands.push_back(&values);
  for (const Tensor& i : indices) operands.push_back(&i);
  return detail::composed<detail::IndexPut>({operands.data(), operands.size()}, {accumulate});
}
Tensor index_put(const Tensor& x, std::initializer_list<Tensor> indices, const Tensor& values, bool accumulate) {
  return index_put(x, std::span<const Tensor>(indices.begin(), indices.size()), values, accumulate);
}

Tensor index_at(const Tensor& x, std::span<const Tensor> indices, std::int64_t axis) {
  const int first = axis_of(axis, x.rank(), "index_at");
  const auto count = static_cast<int>(indices.size());
  detail::check_places("index_at", x, first, indices);
  const Tensor joined = detail::joined_index("index_at: index", x.shape(), first, OperandList(indices));
  const Tensor flat =
      reshape(x, detail::with_axes(x.shape(), first, count, {detail::product(x.shape(), first, count)}));
  const Tensor taken = index_select(flat, first, reshape(joined, {joined.numel()}));
  return reshape(taken, detail::with_axes(x.shape(), first, count, joined.shape()));
}
Tensor index_at(const Tensor& x, std::initializer_list<Tensor> indices, std::int64_t axis) {
  return index_at(x, std::span<const Tensor>(indices.begin(), indices.size()), axis);
}

}  // namespace ferrite
