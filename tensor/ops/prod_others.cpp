/// The gradient of a product: each element's is the product of the others, to any order, also where some are 0.
#include "ferrite/tensor/ops/detail/prod_others.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/dual_products.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {
namespace detail {
namespace {

/// The axes of a product seen as one, the last of a matrix [rows, n]; and back.
class Folded {
 public:
  Folded(const Shape& shape, const Shape& axes) {
    std::int64_t n = 1;
    Shape last;
    for (int i = 0; i < shape.rank(); ++i) {
      bool reduced = false;
      for (const std::int64_t a : axes) reduced |= a == i;
      (reduced ? last : order_).push_back(i);
      if (reduced) n *= shape[i];
    }
    for (const std::int64_t i : last) order_.push_back(i);
    back_ = order_;
    for (int k = 0; k < order_.rank(); ++k) {
      back_[static_cast<int>(order_[k])] = k;
      permuted_.push_back(shape[static_cast<int>(order_[k])]);
    }
    matrix_ = {n ? shape.numel() / n : 0, n};
  }
  Tensor operator()(const Tensor& x) const { return reshape(permute(x, order_), matrix_); }
  Tensor unfolded(const Tensor& m) const { return permute(reshape(m, permuted_), back_); }
  std::int64_t n() const { return matrix_[1]; }

 private:
  Shape order_, back_, permuted_, matrix_;
};

/// Moved by n places along the last axis, `value` in what becomes free.
Tensor moved(const Tensor& x, std::int64_t n, double value) { return pad(x, {0, n}, {0, -n}, value); }

struct ProdOthersAttrs {
  Shape axes{};
  static constexpr auto fields = attr_list(attr("axes", &ProdOthersAttrs::axes));
};

struct ProdOthers {
  using Attributes = ProdOthersAttrs;
  static constexpr auto name = "prod_others", onnx = "", stablehlo = "";
  static constexpr auto summary = "for each element the product of the others along axes: the gradient of prod";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (!is_float(in[0].dtype())) throw_dtype(name, "takes floats, got " + in[0].spec().str());
    check_axes(name, attrs.axes, in[0].rank());
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const NewFrame frame;
    copy_to(Writer::raw(out[0]), reference(in, attrs)[0]);
  }
  /// The whole product without the element, where at most one is 0.
  static Tensors reference(Inputs in, const Attributes& attrs) {
    const Tensor& x = in[0];
    const Shape& axes = attrs.axes;
    const Tensor zero = eq(x, 0);
    const Tensor zeros_here = sum(zero, axes, true);
    const Tensor others = where(zero, 1, x);
    const Tensor rest = prod(others, axes, true);
    const Tensor at_zero = where(eq(zeros_here, 1), rest, 0);
    const Tensor elsewhere = where(eq(zeros_here, 0), rest / others, 0);
    return {where(zero, at_zero, elsewhere)};
  }
  /// The derivative along c of the product of the others is theirs in numbers x + c e.
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Folded fold(v.in_spec(0).shape, attrs.axes);
    const Dual x{fold(v.in(0)), fold(v.grad())};
    return {fold.unfolded(derivative_of_others(x, fold.n(), moved))};
  }
};

}  // namespace

Tensor prod_others(const Tensor& x, const Shape& axes) {
  return call(structured<ProdOthers>, {{&x}}, ProdOthersAttrs{axes});
}

Family prod_others_family() {
  static constexpr const Primitive* list[] = {&structured<ProdOthers>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
