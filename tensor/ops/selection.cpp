/// Elements that a mask chooses.
#include <algorithm>

#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/values_known.h"
#include "ferrite/tensor/scatter.h"

namespace ferrite {
namespace detail {
namespace {

struct NonzeroAttrs {
  std::int64_t size = 0, fill = -1;
  static constexpr auto fields = attr_list(attr("size", &NonzeroAttrs::size), attr("fill", &NonzeroAttrs::fill));
};

struct Nonzero {
  using Attributes = NonzeroAttrs;
  static constexpr auto name = "nonzero", onnx = "", stablehlo = "";
  static constexpr auto summary = "i64 indices of the first elements that are not 0, in row-major order, then a fill";

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (attrs.size < 0) throw ValueError("nonzero: size must not be negative, got " + std::to_string(attrs.size));
    return {{{attrs.size, in[0].rank()}, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor x(in[0]);
    const Shape strides = x->shape().strides();
    const int rank = x->rank();
    std::int64_t* to = Writer::data<std::int64_t>(out[0]);
    std::int64_t found = 0;
    visit_computed(x->dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* from = x->data<T>();
      for (std::int64_t at = 0; at < x->numel() && found < attrs.size; ++at) {
        if (from[at] == T(0)) continue;
        std::int64_t rest = at;
        for (int k = 0; k < rank; ++k) {
          *to++ = rest / strides[k];
          rest %= strides[k];
        }
        ++found;
      }
    });
    std::fill_n(to, (attrs.size - found) * rank, attrs.fill);
  }
};

struct MaskedScatter {
  static constexpr auto name = "masked_scatter", onnx = "";
  static constexpr auto summary = "x with the source's elements, one after the other, where a mask holds";

  static Tensor parts(Inputs in, const NoAttrs&) {
    const Tensor &x = in[0], &source = in[2];
    const Tensor mask = expand(in[1], x.shape()), row = reshape(mask, {-1});
    if (source.numel() == 0) {
      const Tensor none = checked(sum(row), 0, 0, "masked_scatter: the number of elements that the source must have:");
      return where(mask && gt(none, 0), 0, x);
    }
    const Tensor order = where(row, cumsum(row, 0) - 1, 0);
    const Tensor taken =
        index_select(reshape(source, {-1}), 0, order, {.who = "masked_scatter: element of the source"});
    return where(mask, reshape(taken, x.shape()), x);
  }
};

void check_mask(std::string_view where, const Tensor& mask) {
  if (mask.dtype() != Dtype::boolean) throw_dtype(where, "the mask must be bool, got " + mask.spec().str());
}

std::int64_t count_nonzero(const Tensor& x) {
  const NewFrame frame;
  const Tensor plain = x.unmarked();
  return sum(x.dtype() == Dtype::boolean ? plain : ne(plain, 0)).item<std::int64_t>();
}

}  // namespace

Family selection_family() {
  static constexpr const Primitive* list[] = {&structured<Nonzero>};
  return list;
}
Family masked_scatter_family() {
  static constexpr const Primitive* list[] = {&composite<MaskedScatter>};
  return list;
}

}  // namespace detail

Tensor nonzero(const Tensor& x, const NonzeroOptions& options) {
  if (!options.size) detail::check_values_known("nonzero", x, "give a size");
  const std::int64_t size = options.size ? *options.size : detail::count_nonzero(x);
  return detail::call(detail::structured<detail::Nonzero>, {{&x}}, detail::NonzeroAttrs{size, options.fill});
}

Tensor masked_select(const Tensor& x, const Tensor& mask, const MaskedSelectOptions& options) {
  detail::check_mask("masked_select", mask);
  if (!options.size) detail::check_values_known("masked_select", mask, "give a size");
  const Shape shape = broadcast(x.shape(), mask.shape(), "masked_select");
  const Tensor row = reshape(expand(x, shape), {-1}), holds = reshape(expand(mask, shape), {-1});
  if (!options.size) return index_select(row, 0, squeeze(nonzero(holds), 1));
  const Tensor places = squeeze(nonzero(holds, {.size = options.size}), 1);
  if (row.numel() == 0) return full(places.shape(), options.fill, x.dtype());
  return where(ge(places, 0), index_select(row, 0, maximum(places, 0)), options.fill);
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  detail::check_mask("masked_scatter", mask);
  if (x.dtype() != source.dtype())
    detail::throw_dtype("masked_scatter", "dtypes differ: " + x.spec().str() + " and " + source.spec().str());
  if (broadcast(x.shape(), mask.shape(), "masked_scatter") != x.shape())
    detail::throw_shape("masked_scatter", "mask " + mask.shape().str() + " does not broadcast to " + x.shape().str());
  return detail::composed<detail::MaskedScatter>({{&x, &mask, &source}});
}

}  // namespace ferrite
