/// Products of the elements that an index sends to one place, and their gradient: each factor's is the product of the
/// others, to any order, also where some are 0.
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/dual_products.h"
#include "ferrite/tensor/ops/detail/known_index.h"
#include "ferrite/tensor/ops/detail/scatter_elements.h"
#include "ferrite/tensor/ops/detail/scatters.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite::detail {
namespace {

Tensors scatter_prod_others(const Tensor& x, int axis, const Tensor& index, const Tensor& source);

struct ScatterProd {
  using Attributes = AxisAttrs;
  static constexpr auto name = "scatter_prod", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "x multiplied with the source's elements at an index along an axis, in row-major order";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_scatter(name, in, attrs.axis);
    if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      scatter_by<T>(name, in, out[0], {.axis = attrs.axis}, [&](T& place, T x) {
        if constexpr (std::is_integral_v<T>) {
          place = static_cast<T>(static_cast<std::uint64_t>(place) * static_cast<std::uint64_t>(x));
        } else {
          place *= x;
        }
      });
    });
  }
  static constexpr Effects effects{.throws = true, .allocates = true};
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Tensor& index = v.in(1);
    const Tensors others = scatter_prod_others(v.in(0), attrs.axis, index, v.in(2));
    Tensors g(3);
    if (v.wants(0)) g[0] = v.grad() * others[0];
    if (v.wants(2)) g[2] = gather_known(v.grad(), attrs.axis, index) * others[1];
    return g;
  }
};

/// All factors of all places in one row, ordered by their places.
class Factors {
 public:
  Factors(const Shape& x, int axis, const Tensor& index) : x_(x), source_(index.shape()), most_(source_[axis] + 1) {
    const Tensor numbers = arange(x.numel());
    const Tensor to = gather_known(reshape(numbers, x), axis, index);
    const Tensor places = joined(numbers, to);
    order_ = argsort(places);
    place_ = gather_known(places, 0, order_);
  }
  Tensor ordered(const Tensor& of_x, const Tensor& of_source) const {
    return gather_known(joined(of_x, of_source), 0, order_);
  }
  Tensors apart(const Tensor& row) const {
    const Tensor back = gather_known(row, 0, argsort(order_));
    const std::int64_t n = x_.numel();
    return {reshape(slice(back, 0, 0, n), x_), reshape(slice(back, 0, n, back.numel()), source_)};
  }
  /// No place has more.
  std::int64_t most() const { return most_; }
  /// Moved by n places along the row, `value` where that comes from a factor of another place.
  Tensor moved(const Tensor& row, std::int64_t n, double value) const {
    return where(eq(place_, pad(place_, {n}, {-n}, -1)), pad(row, {n}, {-n}), value);
  }

 private:
  static Tensor joined(const Tensor& a, const Tensor& b) {
    return concat({reshape(a, {a.numel()}), reshape(b, {b.numel()})}, 0);
  }

  Shape x_, source_;
  std::int64_t most_;
  Tensor order_, place_;
};

struct ScatterProdOthers {
  using Attributes = AxisAttrs;
  static constexpr auto name = "scatter_prod_others", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "for x's elements and for the source's the product of the others in the same place: the gradient of scatter_prod";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_scatter(name, in, attrs.axis);
    if (!is_float(in[0].dtype())) throw_dtype(name, "takes floats, got " + in[0].spec().str());
    return {in[0].spec(), in[2].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const NewFrame frame;
    const Tensors others = reference(in, attrs);
    for (std::size_t i = 0; i < out.size(); ++i) copy_to(Writer::raw(out[i]), others[i]);
  }
  static constexpr Effects effects{.throws = true, .allocates = true};
  /// The product of the factors that are not 0, without the element; nothing where another one is 0.
  static Tensors reference(Inputs in, const Attributes& attrs) {
    const Tensor &x = in[0], &index = in[1], &source = in[2];
    const auto factor = [](const Tensor& t) { return where(eq(t, 0), 1, t); };
    const auto is_zero = [&](const Tensor& t) { return cast(eq(t, 0), x.dtype()); };
    const auto taken = [&](const Tensor& t) { return gather_known(t, attrs.axis, index); };
    const Tensor plain = scatter_prod(factor(x), attrs.axis, index, factor(source));
    const Tensor zeros_here = is_zero(x) + scatter_known(x.spec(), attrs.axis, index, is_zero(source));
    const auto others = [&](const Tensor& t, const Tensor& all, const Tensor& count) {
      return where(eq(count, is_zero(t)), all / factor(t), 0);
    };
    return {others(x, plain, zeros_here), others(source, taken(plain), taken(zeros_here))};
  }
  /// The derivative along c of the product of the others is theirs in numbers x + c e.
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Factors factors(v.in_spec(0).shape, attrs.axis, v.in(1));
    const Dual x{factors.ordered(v.in(0), v.in(2)), factors.ordered(v.grad_or_zeros(0), v.grad_or_zeros(1))};
    const auto moved = [&](const Tensor& row, std::int64_t n, double value) { return factors.moved(row, n, value); };
    const Tensors g = factors.apart(derivative_of_others(x, factors.most(), moved));
    return {g[0], {}, g[1]};
  }
};

Tensors scatter_prod_others(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  return structured<ScatterProdOthers>.apply(OperandList(Tensors{x, index, source}), AxisAttrs{axis});
}

}  // namespace

Tensor scatter_prod(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  return call(structured<ScatterProd>, {{&x, &index, &source}}, AxisAttrs{axis});
}

Family scatter_prod_family() {
  static constexpr const Primitive* list[] = {&structured<ScatterProd>, &structured<ScatterProdOthers>};
  return list;
}

}  // namespace ferrite::detail
