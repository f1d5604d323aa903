/// Linear recurrences over sequences, and their gradient.
#include "ferrite/tensor/linear_scan.h"

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/linear_scan.h"

namespace ferrite {
namespace detail {
namespace {

/// Throws for operands that do not fit; b is operand `b`, optional ones begin at `begin`.
void check(std::string_view name, Inputs in, std::size_t b, std::size_t begin) {
  const Spec wanted = in[b].spec();
  const Shape& s = wanted.shape;
  if (!is_float(wanted.dtype) || is_storage_only(wanted.dtype) || (s.rank() != 3 && (s.rank() != 4 || s[3] != 2)))
    throw_shape(name, "expects b [B, T, D], or complex [B, T, D, 2], of floats, got " + wanted.str());
  const Spec a = in[0].spec();
  if (a.dtype != wanted.dtype) throw_dtype(name, "takes floats of one dtype, got " + a.str() + " and " + wanted.str());
  if (a.shape != s && a.shape != step_of(s))
    throw_shape(name, "expects a " + s.str() + ", or " + step_of(s).str() + " for all steps, got " + a.shape.str());
  const auto o = optional_of(in, begin);
  const auto fits = [&](const Tensor* x, const Spec& spec, const char* what) {
    if (x && x->spec() != spec)
      throw_shape(name, std::string("expects ") + what + spec.str() + ", got " + x->spec().str());
  };
  fits(o.h0, {state_of(s), wanted.dtype}, "h0 ");
  fits(o.lengths, {{s[0]}, Dtype::i64}, "lengths ");
  fits(o.resets, {{s[0], s[1]}, Dtype::boolean}, "resets ");
  if (!o.fits) throw_shape(name, "expects h0, lengths i64 [B] and resets bool [B, T], each once and in this order");
}

// ---- shifts, for the composition ---------------------------------------------------------------------------

/// The steps of a scan in the order in which it runs.
struct Order {
  std::int64_t T;
  bool reverse;
  Tensor lengths, resets;
  int rank;  ///< rank of b

  /// Returns a mask [B, T] or [1, T] in a shape that broadcasts to b.
  Tensor beside(const Tensor& mask) const {
    Tensor m = unsqueeze(mask, -1);
    return rank == 4 ? unsqueeze(m, -1) : m;
  }
  /// Returns a mask that broadcasts to b: the first step of each row.
  Tensor first() const {
    const Tensor steps = unsqueeze(arange(T), 0);
    if (!lengths.defined()) return beside(eq(steps, reverse ? T - 1 : 0));
    const Tensor ends = unsqueeze(lengths, 1);
    return beside(reverse ? eq(steps, ends - 1) : eq(steps, 0) && gt(ends, 0));
  }
  /// Returns a mask that broadcasts to b: the steps before which a reset makes h count as 0.
  Tensor fresh() const {
    const Shape one{resets.shape()[0], 1};
    const Tensor none = full(one, false, Dtype::boolean);
    const Tensor at = reverse && T > 0 ? concat({slice(resets, 1, 1, T), none}, 1) : resets;
    return reverse ? beside(at) && !first() : beside(at);
  }
  /// Returns x[t-1] in the order of the scan: `begin` at the first step (zeros where undefined), and zeros after
  /// resets.
  Tensor before(const Tensor& x, const Tensor& begin) const {
    Tensor y = moved(x, reverse ? -1 : 1);
    y = where(first(), begin.defined() ? Operand(unsqueeze(begin, 1)) : Operand(0), y);
    return resets.defined() ? where(fresh(), 0, y) : y;
  }
  /// Returns x[t+1] in the order of the scan.
  Tensor after(const Tensor& x) const { return moved(x, reverse ? 1 : -1); }
  /// Returns the first step's x, [B, T, ...] -> [B, ...]; 0 where a reset or no step precedes it.
  Tensor at_first(const Tensor& x) const {
    const Tensor only = where(first(), x, 0);
    return sum(resets.defined() ? where(fresh(), 0, only) : only, {1});
  }

 private:
  static Tensor moved(const Tensor& x, std::int64_t n) {
    Shape before = Shape::filled(x.rank(), 0), after = before;
    if (x.shape()[1] == 0) return x;
    before[1] = n, after[1] = -n;
    return pad(x, before, after);
  }
};

Tensor conjugate(const Tensor& x, bool complex) {
  if (!complex) return x;
  return stack({select(x, -1, 0), -select(x, -1, 1)}, -1);
}
Tensor times(const Tensor& x, const Tensor& y, bool complex) {
  if (!complex) return x * y;
  const Tensor a = select(x, -1, 0), b = select(x, -1, 1), c = select(y, -1, 0), d = select(y, -1, 1);
  return stack({a * c - b * d, a * d + b * c}, -1);
}

// ---- records -------------------------------------------------------------------------------------------------

struct LinearScanGrad {
  using Attributes = LinearScanGradAttrs;
  static constexpr auto name = "linear_scan_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "the gradients of a linear_scan, from a, h and the cotangent of h";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;
  static constexpr std::size_t kOptional = 3;

  /// Returns, in order, the types of the gradients of a, if wanted ([B, D] where a is the same for all steps), of b,
  /// and of h0 if there is one.
  static Specs infer(Inputs in, const Attributes& attrs) {
    check(name, in, 1, kOptional);
    if (in[2].spec() != in[1].spec())
      throw_shape(name, "h and its cotangent differ: " + in[1].spec().str() + " and " + in[2].spec().str());
    const Spec b = in[1].spec(), state{state_of(b.shape), b.dtype};
    Specs out;
    if (attrs.of_a) out.push_back(in[0].shape() == b.shape ? b : state);
    out.push_back(b);
    if (optional_of(in, kOptional).h0) out.push_back(state);
    return out;
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor h(in[1]), dh(in[2]);
    visit_float(h->dtype(), [&](auto zero) {
      using T = decltype(zero);
      const bool same = in[0].shape() != h->shape();
      T* da = attrs.of_a ? Writer::data<T>(out[0]) : nullptr;
      T* db = Writer::data<T>(out[attrs.of_a ? 1 : 0]);
      T* dh0 = optional_of(in, kOptional).h0 ? Writer::data<T>(out[attrs.of_a ? 2 : 1]) : nullptr;
      const LinearScanRows<T> rows(in[0], h->shape(), in, kOptional, attrs.reverse);
      rows.each([&](const LinearScanRow<T>& row, std::int64_t at, std::int64_t state) {
        T* const a = da ? da + (same ? state : at) : nullptr;
        linear_scan_in_use.of<T>().gradient(row, h->data<T>() + at, dh->data<T>() + at, a, db + at,
                                            dh0 ? dh0 + state : nullptr);
        rows.fill(row, db + at);
        if (a && !same) rows.fill(row, a);
      });
    });
  }
  static Tensors reference(Inputs in, const Attributes& attrs) {
    const Tensor &a = in[0], &h = in[1], &dh = in[2];
    const auto o = optional_of(in, kOptional);
    const auto given = [](const Tensor* x) { return x ? *x : Tensor(); };
    const Order order{h.shape()[1], attrs.reverse, given(o.lengths), given(o.resets), h.rank()};
    const bool complex = is_complex(h.shape()), same = a.shape() != h.shape();
    const Tensor next = conjugate(same ? a : order.after(a), complex);
    const Tensor db = linear_scan(next, dh, {}, {!attrs.reverse, order.lengths, order.resets});
    Tensors out;
    if (attrs.of_a) {
      const Tensor da = times(db, conjugate(order.before(h, given(o.h0)), complex), complex);
      out.push_back(same ? sum(da, {1}) : da);
    }
    out.push_back(db);
    if (o.h0) out.push_back(order.at_first(times(conjugate(same ? expand(a, h.shape()) : a, complex), db, complex)));
    return out;
  }
};

struct LinearScan {
  using Attributes = LinearScanAttrs;
  static constexpr auto name = "linear_scan", onnx = "", stablehlo = "";
  static constexpr TimeRule time = TimeRule::linear_recurrence;
  static constexpr auto summary = "h[t] = a[t] h[t-1] + b[t] over the steps of sequences, real or complex";
  static constexpr Reads reads{0b11101, 0b1};
  static constexpr std::size_t kOptional = 2;

  static Specs infer(Inputs in, const Attributes&) {
    check(name, in, 1, kOptional);
    return {in[1].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor b(in[1]);
    visit_float(b->dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* h = Writer::data<T>(out[0]);
      const LinearScanRows<T> rows(in[0], b->shape(), in, kOptional, attrs.reverse);
      rows.each([&](const LinearScanRow<T>& row, std::int64_t at, std::int64_t) {
        linear_scan_in_use.of<T>().scan(row, b->data<T>() + at, h + at);
        rows.fill(row, h + at);
      });
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const bool same = v.in_spec(0).shape != v.out_spec().shape, has_h0 = v.inputs() > 2 && is_float(v.in_spec(2).dtype);
    Tensors operands{v.in(0), v.out(), v.grad()};
    for (std::size_t k = kOptional; k < v.inputs(); ++k) operands.push_back(v.in(k));
    const LinearScanGradAttrs wanted{attrs.reverse, v.wants(0)};
    Tensors all = structured<LinearScanGrad>.apply(OperandList(operands), wanted);
    Tensors g(v.inputs());
    std::size_t next = 0;
    if (v.wants(0)) g[0] = same ? sum(all[next], {0}) : all[next];
    next += v.wants(0) ? 1U : 0U;
    if (v.wants(1)) g[1] = all[next];
    if (has_h0 && v.wants(2)) g[2] = all[next + 1];
    return g;
  }
};

}  // namespace

Family linear_scan_family() {
  static constexpr const Primitive* list[] = {&structured<LinearScan>, &structured<LinearScanGrad>};
  return list;
}

}  // namespace detail

Tensor linear_scan(const Tensor& a, const Tensor& b, const Tensor& h0, const LinearScanOptions& o) {
  Tensor lengths = o.lengths;
  if (lengths.defined() && lengths.dtype() == Dtype::i64 && b.rank() >= 2)
    lengths = checked(lengths, 0, b.shape()[1], "linear_scan: a length of");
  Tensors in{a, b};
  for (const Tensor* t : {&h0, static_cast<const Tensor*>(&lengths), &o.resets})
    if (t->defined()) in.push_back(*t);
  return detail::structured<detail::LinearScan>.apply(OperandList(in), detail::LinearScanAttrs{o.reverse})[0];
}

}  // namespace ferrite
