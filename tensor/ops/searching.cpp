/// Searches in sorted rows.
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/along_axis.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite {
namespace detail {
namespace {

struct SearchAttrs {
  bool right = false;
  static constexpr auto fields = attr_list(attr("right", &SearchAttrs::right));
};

/// The first position whose element is not below the value (with `right`: is above it); a NaN is behind all.
template <class T>
std::int64_t place_of(T value, const T* sorted, std::int64_t n, bool right) {
  std::int64_t begin = 0;
  while (n > 0) {
    const std::int64_t half = n / 2;
    const T middle = sorted[begin + half];
    const bool here = right ? middle > value : middle >= value;
    begin = here ? begin : begin + half + 1;
    n = here ? half : n - half - 1;
  }
  return begin;
}

struct SearchSorted {
  using Attributes = SearchAttrs;
  static constexpr auto name = "searchsorted", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "i64 position at which each value keeps a sorted row sorted; before equal ones, or behind";

  static Specs infer(Inputs in, const Attributes&) {
    const Shape &row = in[0].shape(), &values = in[1].shape();
    if (in[0].dtype() != in[1].dtype())
      throw_dtype(name, "dtypes differ: " + in[0].spec().str() + " and " + in[1].spec().str());
    if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
    bool fits = row.rank() == 1 || (row.rank() > 0 && row.rank() == values.rank());
    for (int i = 0; i + 1 < row.rank() && fits; ++i) fits = row[i] == values[i];
    if (!fits)
      throw_shape(name, "values " + values.str() + " do not fit sorted rows " + row.str() +
                            "; the rows have rank 1 or all axes but the last in common");
    return {{values, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor sorted(in[0]), values(in[1]);
    const std::int64_t n = sorted->shape()[-1], rows = sorted->rank() == 1 ? 1 : n ? sorted->numel() / n : 0;
    std::int64_t* to = Writer::data<std::int64_t>(out[0]);
    if (n == 0) return std::fill_n(to, values->numel(), std::int64_t{0}), void();
    const std::int64_t each = rows ? values->numel() / rows : 0;
    visit_computed(sorted->dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *row = sorted->data<T>(), *from = values->data<T>();
      in_shares(values->numel(), 16, [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t i = first; i < first + count; ++i)
          to[i] = place_of(from[i], row + i / each * n, n, attrs.right);
      });
    });
  }
};

}  // namespace

Family searching_family() {
  static constexpr const Primitive* list[] = {&structured<SearchSorted>};
  return list;
}

}  // namespace detail

Tensor searchsorted(const Tensor& sorted, const Tensor& values, const SearchOptions& options) {
  return detail::call(detail::structured<detail::SearchSorted>, {{&sorted, &values}},
                      detail::SearchAttrs{options.right});
}
Tensor bucketize(const Tensor& values, const Tensor& boundaries, const SearchOptions& options) {
  if (boundaries.rank() != 1)
    detail::throw_shape("bucketize", "the boundaries must have rank 1, got " + boundaries.shape().str());
  return searchsorted(boundaries, values, options);
}

}  // namespace ferrite
