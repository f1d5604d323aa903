/// Attention as one operation, and its gradient: scores are computed block by block, and again for the
/// gradient, instead of being stored.
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/ops/detail/attention_parts.h"
#include "ferrite/tensor/ops/detail/attention_run.h"

namespace ferrite {
namespace detail {
namespace {

Tensor mask_or_none(Inputs in, std::size_t operands) { return in.size() > operands ? in[operands] : Tensor(); }

/// Throws for operands that the operations do not take.
void check(std::string_view where, Inputs in, std::size_t begin, const AttentionAttrs& a) {
  const Spec q = in[begin].spec(), k = in[begin + 1].spec(), v = in[begin + 2].spec();
  if (!is_float(q.dtype) || is_storage_only(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype ||
      !takes_attention(q.shape, k.shape, v.shape, a.grouped))
    throw_shape(where, "expects q [..., L, E], k [..., S, E] and v [..., S, N] of floats, got " + q.str() + ", " +
                           k.str() + " and " + v.str());
  if (in.size() <= begin + 3) return;
  const Spec mask = in[begin + 3].spec();
  Shape scores = q.shape;
  scores[-1] = k.shape[-2];
  bool fits = mask.shape.rank() <= scores.rank() && (mask.dtype == Dtype::boolean || mask.dtype == q.dtype);
  for (int i = 1; fits && i <= mask.shape.rank(); ++i) fits = mask.shape[-i] == 1 || mask.shape[-i] == scores[-i];
  if (!fits)
    throw_shape(where, "expects a mask, bool or of the queries' dtype, that broadcasts to " + scores.str() + ", got " +
                           mask.str());
}

Shape result_of(const Shape& q, const Shape& v) {
  Shape y = q;
  y[-1] = v[-1];
  return y;
}

std::int64_t products(std::span<const Spec> in, std::size_t q, std::int64_t with_width, std::int64_t with_values) {
  const Shape &s = in[q].shape, &v = in[q + 2].shape;
  return s.numel() / s[-1] * v[-2] * (with_width * s[-1] + with_values * v[-1]);
}

/// dy, y, q, k, v and perhaps a mask -> the gradients of q, k, v and the scores, in operations. Of a value that is not
/// finite the results of queries that see it tell, which are not, either.
Tensors composed_gradient(Inputs in, const AttentionAttrs& a) {
  const Tensor &dy = in[0], mask = mask_or_none(in, 5);
  Tensor y = in[1], q = in[2], k = in[3], v = in[4];
  const std::int64_t heads = heads_of(q.shape()), groups = heads_of(k.shape()), shares = heads / groups;
  const auto of_own_heads = [&](const Tensor& x) {
    if (shares == 1) return x;
    Shape split = x.shape();
    split[-3] = groups;
    split.insert(split.rank() - 2, shares);
    return sum(reshape(x, split), {split.rank() - 3});
  };
  if (shares > 1) k = of_all_heads(k, heads), v = of_all_heads(v, heads);
  const bool hides = mask.defined() || a.causal;
  Tensor reads;
  if (hides) {  // queries without a cotangent may be anything, and see anything
    reads = any(ne(dy, 0), {-1}, true);
    q = where(isfinite(q) || reads, q, 0.0);
    y = where(isfinite(y) || reads, y, 0.0);
  }
  const Tensor weights = weights_of_hidden(q, k, mask, {a.scale, a.causal, false}, reads);
  if (hides) k = finite_part(k), v = finite_part(v);
  const Tensor of_scores = weights * (matmul(dy, transpose(v)) - sum(dy * y, {-1}, true));
  return {matmul(of_scores, k) * a.scale, of_own_heads(matmul(transpose(of_scores), q * a.scale)),
          of_own_heads(matmul(transpose(weights), dy)), of_scores};
}

struct AttentionGrad {
  using Attributes = AttentionAttrs;
  static constexpr auto name = "attention_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "the gradients of q, k and v of attention, from its result and its cotangent";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const Attributes& a) {
    check(name, in, 2, a);
    const Spec y{result_of(in[2].shape(), in[4].shape()), in[2].dtype()};
    if (in[0].spec() != y || in[1].spec() != y)
      throw_shape(name, "the cotangent and the result must be " + y.str() + ", got " + in[0].spec().str() + " and " +
                            in[1].spec().str());
    return {in[2].spec(), in[3].spec(), in[4].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const Tensor mask = mask_or_none(in, 5);
    run_attention_grad({in[0], in[1], in[2], in[3], in[4], mask, out[0], out[1], out[2]}, a);
  }
  static Tensors reference(Inputs in, const Attributes& a) {
    Tensors all = composed_gradient(in, a);
    all.pop_back();
    return all;
  }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const Attributes&) {
    return products(in, 2, 3, 2);
  }
};

struct Attention {
  using Attributes = AttentionAttrs;
  static constexpr auto name = "attention", onnx = "", stablehlo = "";
  static constexpr auto summary = "softmax of the scaled products of queries and keys, times the values";
  static constexpr Reads reads = reads_all;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const Attributes& a) {
    check(name, in, 0, a);
    return {{result_of(in[0].shape(), in[2].shape()), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    run_attention(in[0], in[1], in[2], mask_or_none(in, 3), a, out[0]);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    const Tensor &dy = v.grad(), &y = v.out(), &q = v.in(0), &k = v.in(1), &values = v.in(2);
    if (v.inputs() == 3) return structured<AttentionGrad>.apply({{&dy, &y, &q, &k, &values}}, a);
    const Tensor& mask = v.in(3);
    Tensors g = structured<AttentionGrad>.apply({{&dy, &y, &q, &k, &values, &mask}}, a);
    g.push_back(v.wants(3) ? sum_to(composed_gradient({{&dy, &y, &q, &k, &values, &mask}}, a)[3], mask.shape())
                           : Tensor());
    return g;
  }
  static Tensors reference(Inputs in, const Attributes& a) {
    return {product_by_head(composed_weights(in[0], in[1], mask_or_none(in, 3), a), in[2], a.grouped)};
  }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const Attributes&) {
    return products(in, 0, 1, 1);
  }
};

}  // namespace

Family attention_family() {
  static constexpr const Primitive* list[] = {&structured<Attention>, &structured<AttentionGrad>};
  return list;
}

bool takes_attention(const Shape& q, const Shape& k, const Shape& v, bool grouped) {
  const int rank = q.rank();
  if (rank < (grouped ? 3 : 2) || k.rank() != rank || v.rank() != rank) return false;
  if (q.numel() == 0 || k.numel() == 0 || v.numel() == 0 || q[-1] != k[-1] || k[-2] != v[-2]) return false;
  for (int i = 0; i < rank - 2; ++i) {
    const bool heads = grouped && i == rank - 3;
    if (v[i] != k[i] || (heads ? q[i] % k[i] != 0 : q[i] != k[i])) return false;
  }
  return true;
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionAttrs& a) {
  if (!mask.defined()) return call(structured<Attention>, {{&q, &k, &v}}, a);
  return call(structured<Attention>, {{&q, &k, &v, &mask}}, a);
}

}  // namespace detail
}  // namespace ferrite
