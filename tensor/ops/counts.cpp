/// Reductions composed of others: of truth values, of what is not NaN, of both extremes.
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/ops/detail/composing.h"

namespace ferrite {
namespace detail {
namespace {

/// Which elements are not 0, as bool.
Tensor truth(const Tensor& x) { return x.dtype() == Dtype::boolean ? x : ne(x, 0); }

struct CountNonzero {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "count_nonzero", onnx = "", summary = "how many elements along axes are not 0, i64";

  static Tensor parts(Inputs in, const Attributes& a) { return sum(truth(in[0]), a.axes, a.keepdim); }
};

struct Any {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "any", onnx = "", summary = "whether an element along axes is not 0; false of none";

  static Tensor parts(Inputs in, const Attributes& a) { return gt(sum(truth(in[0]), a.axes, a.keepdim), 0); }
};

struct All {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "all", onnx = "", summary = "whether no element along axes is 0; true of none";

  static Tensor parts(Inputs in, const Attributes& a) { return eq(sum(!truth(in[0]), a.axes, a.keepdim), 0); }
};

struct Nansum {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "nansum", onnx = "", summary = "sum over axes of what is not NaN";

  static Tensor parts(Inputs in, const Attributes& a) {
    return sum(where(eq(in[0], in[0]), in[0], 0.0), a.axes, a.keepdim);
  }
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
};

struct Aminmax {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "aminmax", onnx = "", summary = "the least and the largest element along axes";

  static Tensors parts(Inputs in, const Attributes& a) {
    return {amin(in[0], a.axes, a.keepdim), amax(in[0], a.axes, a.keepdim)};
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
