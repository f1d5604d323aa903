/// How running sums, products and extremes are written: in f64, as they are computed here.
#include <limits>

#include "ferrite/compile/scan.h"
#include "ferrite/exchange/onnx_export/export_lowering.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite::onnx::detail {
namespace {

Dtype wide(Dtype t) { return is_float(t) ? Dtype::f64 : Dtype::i64; }

ExportValues cumsum(GraphBuilder& b, const ExportCall& c) {
  const ExportValue x = b.convert(c.in[0], wide(c.out[0].dtype));
  const ExportValue sums = b.node("CumSum", {x, b.scalar(c.axis(), Dtype::i64)}, x.spec,
                                  {{"reverse", std::int64_t{c.named("reverse", false)}}});
  return {b.convert(sums, c.out[0].dtype)};
}

/// A scan along the axis: the first carry and the step, on operands in the wider type.
ExportValues scanned(GraphBuilder& b, const ExportCall& c, double first,
                     const std::function<Tensor(const Tensor& carry, const Tensors& x)>& step) {
  const int axis = c.axis();
  const bool reverse = c.named("reverse", false);
  const auto run = [&](const Tensors& in) -> Tensors {
    Tensors xs;
    for (const Tensor& x : in) xs.push_back(movedim(cast(x, wide(c.out[0].dtype)), {axis}, {0}));
    Shape state = xs[0].shape();
    state.erase(0);
    const auto next = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
      const Tensor y = step(carry[0], x);
      return {{y}, {y}};
    };
    const Tensor begin = is_float(xs[0].dtype()) ? full(state, first, xs[0].dtype())
                                                 : full(state, static_cast<std::int64_t>(first), xs[0].dtype());
    const ScanResult r = scan(next, {begin}, xs, {.reverse = reverse});
    return {cast(movedim(r.y[0], {0}, {axis}), c.out[0].dtype)};
  };
  return lower_traced(b, run, c.in);
}

ExportValues cumprod(GraphBuilder& b, const ExportCall& c) {
  return scanned(b, c, 1, [](const Tensor& y, const Tensors& x) { return y * x[0]; });
}
ExportValues linear_recurrence(GraphBuilder& b, const ExportCall& c) {
  const int axis = c.axis();
  const std::int64_t n = c.out[0].shape[axis], first = c.named("reverse", false) ? n - 1 : 0;
  // y[0] = b[0] whatever a[0] is: zeros stand there.
  const auto without_first = [&](const Tensors& in) -> Tensors {
    Shape column = Shape::filled(in[0].rank(), 1);
    column[axis] = n;
    return {where(eq(reshape(arange(n), column), first), 0, in[0])};
  };
  const ExportValue a = lower_traced(b, without_first, {c.in[0]})[0];
  const ExportValues operands{a, c.in[1]};
  const ExportCall rest{c.op, operands, c.attrs, c.out, c.read};
  return scanned(b, rest, 0, [](const Tensor& y, const Tensors& x) { return x[0] * y + x[1]; });
}
ExportValues logcumsumexp(GraphBuilder& b, const ExportCall& c) {
  return scanned(b, c, -std::numeric_limits<double>::infinity(),
                 [](const Tensor& y, const Tensors& x) { return logaddexp(y, x[0]); });
}

/// Value and index go round; of equal elements the last one stays, and a NaN for good.
ExportValues running_extreme(GraphBuilder& b, const ExportCall& c, bool largest) {
  const int axis = c.axis();
  const bool reverse = c.named("reverse", false);
  const auto run = [&](const Tensors& in) -> Tensors {
    const Dtype dtype = in[0].dtype();
    const Tensor x = movedim(dtype == Dtype::boolean ? cast(in[0], Dtype::i32) : in[0], {axis}, {0});
    Shape state = x.shape();
    state.erase(0);
    const Tensor first = select(x, 0, reverse ? -1 : 0);
    const auto step = [&](const Tensors& carry, const Tensors& now) -> ScanStep {
      Tensor takes = largest ? now[0] >= carry[0] : now[0] <= carry[0];
      if (is_float(dtype)) takes = takes || !(now[0] <= now[0]);
      if (is_float(dtype)) takes = takes && (carry[0] <= carry[0] || !(now[0] <= now[0]));
      const Tensor value = where(takes, now[0], carry[0]);
      const Tensor place = where(takes, now[1], carry[1]);
      return {{value, place}, {value, place}};
    };
    const ScanResult r = scan(step, {first, zeros(state, Dtype::i64)}, {x, arange(x.shape()[0])}, {.reverse = reverse});
    return {cast(movedim(r.y[0], {0}, {axis}), dtype), movedim(r.y[1], {0}, {axis})};
  };
  return lower_traced(b, run, c.in);
}
ExportValues cummax(GraphBuilder& b, const ExportCall& c) { return running_extreme(b, c, true); }
ExportValues cummin(GraphBuilder& b, const ExportCall& c) { return running_extreme(b, c, false); }

}  // namespace

ExportFamily export_running() {
  static constexpr NamedExportLowering list[] = {{"cumsum", cumsum},
                                                 {"cumprod", cumprod},
                                                 {"linear_recurrence", linear_recurrence},
                                                 {"logcumsumexp", logcumsumexp},
                                                 {"cummax", cummax},
                                                 {"cummin", cummin}};
  return list;
}

}  // namespace ferrite::onnx::detail
