/// Reductions composed of others: of truth values, of what is not NaN, of both extremes.
#include <cmath>

#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/ops/detail/composing.h"
#include "ferrite/tensor/ops/detail/groups.h"

namespace ferrite {
namespace detail {
namespace {

std::vector<Sample> all_dtypes() {
  std::vector<Sample> list = {
      {.inputs = {{{3, 5}}}, .attrs = ReductionAttrs{{1}}, .values = {0, 1, 0, -0.0, 2, 0, 0, NAN}},
      {.inputs = {{{2, 3, 4}}}, .attrs = ReductionAttrs{{0, 2}, true}},
      {.inputs = {{{}}}, .attrs = ReductionAttrs{}},
      {.inputs = {{{2, 0}}}, .attrs = ReductionAttrs{{1}}}};
  for (const Dtype t : kDtypes)
    if (!is_float(t) && !is_storage_only(t))
      list.push_back({.inputs = {{{3, 4}, t}}, .attrs = ReductionAttrs{{0}}, .indices = {1, 0, 0, 1, 1, 0, 1, 0, 0}});
  return list;
}

/// Which elements are not 0, as bool.
Tensor truth(const Tensor& x) { return x.dtype() == Dtype::boolean ? x : ne(x, 0); }

struct CountNonzero {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "count_nonzero", onnx = "", summary = "how many elements along axes are not 0, i64";

  static Tensor parts(Inputs in, const Attributes& a) { return sum(truth(in[0]), a.axes, a.keepdim); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      return static_cast<double>(std::count_if(v.begin(), v.end(), [](double x) { return x != 0; }));
    });
  }
  static std::vector<Sample> samples() { return all_dtypes(); }
};

struct Any {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "any", onnx = "", summary = "whether an element along axes is not 0; false of none";

  static Tensor parts(Inputs in, const Attributes& a) { return gt(sum(truth(in[0]), a.axes, a.keepdim), 0); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; });
    });
  }
  static std::vector<Sample> samples() { return all_dtypes(); }
};

struct All {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "all", onnx = "", summary = "whether no element along axes is 0; true of none";

  static Tensor parts(Inputs in, const Attributes& a) { return eq(sum(!truth(in[0]), a.axes, a.keepdim), 0); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; });
    });
  }
  static std::vector<Sample> samples() { return all_dtypes(); }
};

std::vector<Sample> with_nans() {
  return {{.inputs = {{{3, 5}}}, .attrs = ReductionAttrs{{1}}},
          {.inputs = {{{2, 3, 4}}}, .attrs = ReductionAttrs{{0, 2}, true}},
          {.inputs = {{{3, 3}}},
           .attrs = ReductionAttrs{{1}},
           .values = {1, NAN, 2, NAN, NAN, NAN, 0, 3, -1},
           .smooth = false},
          {.inputs = {{{}}}, .attrs = ReductionAttrs{}},
          {.inputs = {{{2, 0}}}, .attrs = ReductionAttrs{{1}}}};
}

struct Nansum {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "nansum", onnx = "", summary = "sum over axes of what is not NaN";

  static Tensor parts(Inputs in, const Attributes& a) {
    return sum(where(eq(in[0], in[0]), in[0], 0.0), a.axes, a.keepdim);
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      double total = 0;
      for (const double x : v) total += std::isnan(x) ? 0 : x;
      return total;
    });
  }
  static std::vector<Sample> samples() { return with_nans(); }
};

struct Nanmean {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "nanmean", onnx = "",
                        summary = "mean over axes of what is not NaN; NaN where there is none";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor number = eq(in[0], in[0]);
    const Tensor total = sum(where(number, in[0], 0.0), a.axes, a.keepdim);
    return total / cast(sum(number, a.axes, a.keepdim), in[0].dtype());
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      double total = 0, n = 0;
      for (const double x : v)
        if (!std::isnan(x)) total += x, ++n;
      return total / n;
    });
  }
  static std::vector<Sample> samples() { return with_nans(); }
};

struct Aminmax {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "aminmax", onnx = "", summary = "the least and the largest element along axes";

  static Tensors parts(Inputs in, const Attributes& a) {
    return {amin(in[0], a.axes, a.keepdim), amax(in[0], a.axes, a.keepdim)};
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const auto extreme = [&](Dense& to, double sign) {
      reduce_groups(in[0], a.axes, to, [&](const std::vector<double>& v) {
        double best = v[0];
        for (const double x : v)
          if (sign * x > sign * best || std::isnan(x)) best = x;
        return best;
      });
    };
    extreme(out[0], -1);
    extreme(out[1], 1);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = ReductionAttrs{{1}}, .smooth_at_ties = false},
            {.inputs = {{{2, 3, 4}}}, .attrs = ReductionAttrs{{0, 2}, true}, .smooth_at_ties = false},
            {.inputs = {{{2, 3}, Dtype::i64}}, .attrs = ReductionAttrs{{0}}, .indices = {3, 1, 2, 3, 0}}};
  }
};

template <class Op>
auto along(const Tensor& x, const Shape& axes, bool keepdim) {
  return composed<Op>({{&x}}, {axes_of(axes, x.rank(), Op::name), keepdim});
}

}  // namespace

Family count_family() {
  static constexpr const Primitive* list[] = {&composite<CountNonzero>, &composite<Any>,     &composite<All>,
                                              &composite<Nansum>,       &composite<Nanmean>, &composite<Aminmax>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor count_nonzero(const Tensor& x, const Shape& axes, bool keepdim) { return along<CountNonzero>(x, axes, keepdim); }
Tensor any(const Tensor& x, const Shape& axes, bool keepdim) { return along<Any>(x, axes, keepdim); }
Tensor all(const Tensor& x, const Shape& axes, bool keepdim) { return along<All>(x, axes, keepdim); }
Tensor nansum(const Tensor& x, const Shape& axes, bool keepdim) {
  return is_float(x.dtype()) ? along<Nansum>(x, axes, keepdim) : sum(x, axes, keepdim);
}
Tensor nanmean(const Tensor& x, const Shape& axes, bool keepdim) {
  check_float(x, "nanmean");
  return along<Nanmean>(x, axes, keepdim);
}
Tensors aminmax(const Tensor& x, const Shape& axes, bool keepdim) { return along<Aminmax>(x, axes, keepdim); }

}  // namespace ferrite
