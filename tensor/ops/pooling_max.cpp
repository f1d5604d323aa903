/// Pooling by the largest element: values, places, and what is read and added at places of planes.
#include <algorithm>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/pooling_records.h"
#include "ferrite/tensor/ops/detail/pooling_run.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {
namespace detail {
namespace {

Specs infer_pool(std::string_view where, Inputs in, const PoolAttrs& a, bool indices) {
  check_pooled(where, in[0], {&a.kernel, &a.stride, &a.before, &a.dilation, &a.size});
  check_windows(where, a);
  return {{pooled_shape(in[0].shape(), a.size), indices ? Dtype::i64 : in[0].dtype()}};
}

struct MaxPool {
  using Attributes = PoolAttrs;
  static constexpr auto name = "max_pool", onnx = "MaxPool", stablehlo = "";
  static constexpr TimeRule time = TimeRule::pools_maxima;
  static constexpr auto summary =
      "the largest element of every window, NaN if there is one; -inf of none; ties: the first";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& a) { return infer_pool(name, in, a, false); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    pool_planes<PoolKind::max>(in[0], out[0], axes_of_pool(space_of(in[0].shape()), a));
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    const PlaneAttrs plane{.size = space_of(v.in(0).shape()), .known = true};
    return {plane_scatter(v.grad(), max_pool_indices(v.in(0), a), plane)};
  }
};

struct MaxPoolIndices {
  using Attributes = PoolAttrs;
  static constexpr auto name = "max_pool_indices", onnx = "MaxPool", stablehlo = "";
  static constexpr TimeRule time = TimeRule::pools_places;
  static constexpr auto summary =
      "i64 place in its plane of the first largest element of every window; of the last NaN";

  static Specs infer(Inputs in, const Attributes& a) { return infer_pool(name, in, a, true); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    pool_planes<PoolKind::places>(in[0], out[0], axes_of_pool(space_of(in[0].shape()), a));
  }
};

std::int64_t plane_of(const Shape& s) {
  std::int64_t n = 1;
  for (int i = 2; i < s.rank(); ++i) n *= s[i];
  return n;
}

void check_places(std::string_view where, const Tensor& x, const Tensor& indices) {
  if (indices.dtype() != Dtype::i64) throw_dtype(where, "the indices must be i64, got " + indices.spec().str());
  if (x.rank() < 3 || x.rank() > 5 || indices.rank() != x.rank() || indices.shape()[0] != x.shape()[0] ||
      indices.shape()[1] != x.shape()[1])
    throw_shape(where, "indices " + indices.shape().str() + " do not fit " + x.shape().str());
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast to a float");
}

/// The first place that is not in a plane of n elements, before anything is written.
void check_inside(std::string_view where, const Tensor& indices, std::int64_t n) {
  const std::int64_t* const at = indices.data<std::int64_t>();
  for (std::int64_t i = 0; i < indices.numel(); ++i)
    if (at[i] < 0 || at[i] >= n)
      throw_shape(where, "index " + std::to_string(at[i]) + " is not in a plane of " + std::to_string(n) + " elements");
}

struct PlaneGather {
  using Attributes = PlaneAttrs;
  static constexpr auto name = "plane_gather", onnx = "GatherElements", stablehlo = "gather";
  static constexpr auto summary = "elements of planes [N, C, ...] at places in them";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr Reads reads{0b10, 0};

  static Specs infer(Inputs in, const Attributes&) {
    check_places(name, in[0], in[1]);
    return {{in[1].shape(), in[0].dtype()}};
  }
  static Effects effects(std::span<const Spec>, const Attributes& a) { return {.throws = !a.known, .allocates = true}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor x(in[0]), indices(in[1]);
    const std::int64_t n = plane_of(x->shape()), m = plane_of(indices->shape());
    if (!a.known) check_inside(name, *indices, n);
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* from = x->data<T>();
      const std::int64_t* at = indices->data<std::int64_t>();
      T* to = Writer::data<T>(out[0]);
      for (std::int64_t k = 0; k < out[0].numel(); ++k) to[k] = from[k / m * n + at[k]];
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes&) {
    return {plane_scatter(v.grad(), v.in(1), {.size = space_of(v.in_spec(0).shape), .known = true}), Tensor()};
  }
};

struct PlaneScatter {
  using Attributes = PlaneAttrs;
  static constexpr auto name = "plane_scatter", onnx = "ScatterElements", stablehlo = "scatter";
  static constexpr auto summary = "planes of zeros with elements added, or put, at places in them";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr Reads reads{0b10, 0};

  static Specs infer(Inputs in, const Attributes& a) {
    check_places(name, in[0], in[1]);
    if (in[0].shape() != in[1].shape() || a.size.rank() != in[0].rank() - 2)
      throw_shape(name, "indices " + in[1].shape().str() + " and planes " + a.size.str() + " do not fit " +
                            in[0].shape().str());
    return {{pooled_shape(in[0].shape(), a.size), in[0].dtype()}};
  }
  static Effects effects(std::span<const Spec>, const Attributes& a) { return {.throws = !a.known, .allocates = true}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor y(in[0]), indices(in[1]);
    const std::int64_t n = plane_of(out[0].shape()), m = plane_of(y->shape());
    if (!a.known) check_inside(name, *indices, n);
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* from = y->data<T>();
      const std::int64_t* at = indices->data<std::int64_t>();
      T* to = Writer::data<T>(out[0]);
      std::fill_n(to, out[0].numel(), T(0));
      for (std::int64_t k = 0; k < y->numel(); ++k) {
        T& element = to[k / m * n + at[k]];
        element = a.add ? static_cast<T>(element + from[k]) : from[k];
      }
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes&) { return {plane_gather(v.grad(), v.in(1), true), Tensor()}; }
};

}  // namespace

Tensor max_pool(const Tensor& x, const PoolAttrs& attrs) { return call(structured<MaxPool>, {{&x}}, attrs); }
Tensor max_pool_indices(const Tensor& x, const PoolAttrs& attrs) {
  return call(structured<MaxPoolIndices>, {{&x}}, attrs);
}
Tensor plane_gather(const Tensor& x, const Tensor& indices, bool known) {
  return call(structured<PlaneGather>, {{&x, &indices}}, PlaneAttrs{.size = {}, .known = known});
}
Tensor plane_scatter(const Tensor& y, const Tensor& indices, const PlaneAttrs& attrs) {
  return call(structured<PlaneScatter>, {{&y, &indices}}, attrs);
}

Family pooling_family() {
  static constexpr const Primitive* list[] = {&structured<MaxPool>, &structured<MaxPoolIndices>,
                                              &structured<PlaneGather>, &structured<PlaneScatter>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
