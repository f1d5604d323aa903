/// Handles on tensors: how elements are given, read and checked.
#include "ferrite/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "ferrite/tensor/strided.h"

namespace ferrite {

void Tensor::throw_undefined() { throw Error("tensor: undefined; it was never given a value"); }

void Tensor::check_readable(Dtype wanted, bool want_contiguous, const char* where) const {
  const Spec s = spec();
  if (is_abstract()) throw TraceError(std::string(where) + ": the values of a traced tensor " + s.str() + " were read");
  if (s.dtype != wanted)
    throw DtypeError(std::string(where) + ": the tensor holds " + s.str() + ", read as " +
                     std::string(name_of(wanted)) + "; cast it first");
  if (want_contiguous && !contiguous())
    throw ShapeError(std::string(where) + ": the tensor " + s.str() + " with strides " + strides().str() +
                     " is not contiguous; call contiguous(t) first");
}

namespace {

/// The shape of so many values: what is asked for, -1 replaced. Throws ShapeError where it has another number.
Shape shape_for(std::size_t values, const Shape& shape) {
  const auto count = static_cast<std::int64_t>(values);
  const std::optional<Shape> fits = inferred(shape, count, "from");
  if (!fits || fits->numel() != count)
    throw ShapeError("from: " + std::to_string(count) + " values for shape " + shape.str());
  return *fits;
}

}  // namespace

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  return build<T>(shape_for(values.size(), shape),
                  [&](std::span<T> out) { std::copy(values.begin(), values.end(), out.begin()); });
}

template <class T>
Tensor Tensor::from(const std::vector<T>& values, const Shape& shape) {
  return build<T>(shape_for(values.size(), shape),
                  [&](std::span<T> out) { std::copy(values.begin(), values.end(), out.begin()); });
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_readable(dtype_of<T>, false, "to_vector");
  std::vector<T> out;
  out.reserve(static_cast<std::size_t>(numel()));
  detail::for_each_offset(shape(), strides(), [&](std::int64_t at) { out.push_back(data<T>()[at]); });
  return out;
}

template <class T>
T Tensor::item() const {
  check_readable(dtype_of<T>, false, "item");
  if (numel() != 1) throw ShapeError("item: the tensor must hold one element, got " + shape().str());
  return data<T>()[0];
}

template Tensor Tensor::from<float>(std::span<const float>, const Shape&);
template Tensor Tensor::from<double>(std::span<const double>, const Shape&);
template Tensor Tensor::from<std::int32_t>(std::span<const std::int32_t>, const Shape&);
template Tensor Tensor::from<std::int64_t>(std::span<const std::int64_t>, const Shape&);
template Tensor Tensor::from<bool>(std::span<const bool>, const Shape&);
template Tensor Tensor::from<bfloat16>(std::span<const bfloat16>, const Shape&);
template Tensor Tensor::from<float16>(std::span<const float16>, const Shape&);
template Tensor Tensor::from<std::int8_t>(std::span<const std::int8_t>, const Shape&);
template Tensor Tensor::from<float>(const std::vector<float>&, const Shape&);
template Tensor Tensor::from<double>(const std::vector<double>&, const Shape&);
template Tensor Tensor::from<std::int32_t>(const std::vector<std::int32_t>&, const Shape&);
template Tensor Tensor::from<std::int64_t>(const std::vector<std::int64_t>&, const Shape&);
template Tensor Tensor::from<bool>(const std::vector<bool>&, const Shape&);
template Tensor Tensor::from<bfloat16>(const std::vector<bfloat16>&, const Shape&);
template Tensor Tensor::from<float16>(const std::vector<float16>&, const Shape&);
template Tensor Tensor::from<std::int8_t>(const std::vector<std::int8_t>&, const Shape&);
template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<std::int32_t> Tensor::to_vector<std::int32_t>() const;
template std::vector<std::int64_t> Tensor::to_vector<std::int64_t>() const;
template std::vector<bool> Tensor::to_vector<bool>() const;
template std::vector<bfloat16> Tensor::to_vector<bfloat16>() const;
template std::vector<float16> Tensor::to_vector<float16>() const;
template std::vector<std::int8_t> Tensor::to_vector<std::int8_t>() const;
template float Tensor::item<float>() const;
template double Tensor::item<double>() const;
template std::int32_t Tensor::item<std::int32_t>() const;
template std::int64_t Tensor::item<std::int64_t>() const;
template bool Tensor::item<bool>() const;
template bfloat16 Tensor::item<bfloat16>() const;
template float16 Tensor::item<float16>() const;
template std::int8_t Tensor::item<std::int8_t>() const;

namespace detail {

void check_as_eigen(const Tensor& x, Dtype wanted) {
  if (x.dtype() != wanted)
    throw DtypeError("as_eigen: the tensor holds " + x.spec().str() + ", read as " + std::string(name_of(wanted)));
  if (x.is_abstract()) throw TraceError("as_eigen: the values of a traced tensor " + x.spec().str() + " were read");
  if (x.rank() != 1 && x.rank() != 2) throw ShapeError("as_eigen: rank 1 or 2 is needed, got " + x.shape().str());
}

}  // namespace detail
}  // namespace ferrite
