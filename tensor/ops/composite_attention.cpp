/// Attention, composed: masks, grouped queries, positions by rotation.
#include <cmath>

#include "ferrite/tensor/attention.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/attention_parts.h"
#include "ferrite/tensor/ops/detail/composing.h"

namespace ferrite {
namespace detail {
namespace {

/// The axes before the last so many.
Shape leading(const Shape& s, int last) {
  Shape lead;
  for (int i = 0; i + last < s.rank(); ++i) lead.push_back(s[i]);
  return lead;
}

/// q, k and v with the leading axes that theirs broadcast to, as views.
Tensors with_equal_lead(Inputs in, bool grouped) {
  const int last = grouped ? 3 : 2;
  Shape lead;
  for (const std::size_t i : {0U, 1U, 2U})
    lead = broadcast(lead, leading(in[i].shape(), last), "scaled_dot_product_attention");
  Tensors all;
  for (const std::size_t i : {0U, 1U, 2U}) {
    Shape shape = lead;
    for (int j = last; j > 0; --j) shape.push_back(in[i].shape()[-j]);
    all.push_back(expand(in[i], shape));
  }
  return all;
}

struct AttentionWeights {
  using Attributes = AttentionAttrs;
  static constexpr auto name = "attention_weights", onnx = "";
  static constexpr auto summary = "softmax of the scaled products of queries and keys over the keys that are seen";

  static Tensor parts(Inputs in, const Attributes& a) {
    return weights_of_hidden(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), a);
  }
};

struct ScaledDotProductAttention {
  using Attributes = AttentionAttrs;
  static constexpr auto name = "scaled_dot_product_attention", onnx = "Attention";
  static constexpr auto summary = "the values that are seen, weighted by attention_weights";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor mask = in.size() > 3 ? in[3] : Tensor();
    if (takes_attention(in[0].shape(), in[1].shape(), in[2].shape(), a.grouped))
      return attention(in[0], in[1], in[2], mask, a);
    const Tensors equal = with_equal_lead(in, a.grouped);
    if (takes_attention(equal[0].shape(), equal[1].shape(), equal[2].shape(), a.grouped))
      return attention(equal[0], equal[1], equal[2], mask, a);
    return product_by_head(composed_weights(in[0], in[1], mask, a), in[2], a.grouped);  // something is empty
  }
};

struct RotaryAttrs {
  double base = 10000;
  bool interleaved = false;
  static constexpr auto fields =
      attr_list(attr("base", &RotaryAttrs::base), attr("interleaved", &RotaryAttrs::interleaved));
};

double frequency(double base, std::int64_t pair, std::int64_t D) {
  return std::pow(base, -2 * static_cast<double>(pair) / static_cast<double>(D));
}

struct RotaryEmbedding {
  using Attributes = RotaryAttrs;
  static constexpr auto name = "rotary_embedding", onnx = "RotaryEmbedding";
  static constexpr auto summary = "pairs of features turned by angles that grow with the position";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    const std::int64_t D = x.shape()[-1], half = D / 2;
    std::vector<double> by_pair;
    for (std::int64_t i = 0; i < half; ++i) by_pair.push_back(frequency(a.base, i, D));
    const Tensor angles = unsqueeze(cast(in[1], Dtype::f64), -1) * Tensor::from(by_pair, {half});
    const Tensor c = cast(cos(angles), x.dtype()), s = cast(sin(angles), x.dtype());
    const auto turned = [&](const Tensor& first, const Tensor& second, int axis, bool joins) {
      const Tensor u = first * c - second * s, v = second * c + first * s;
      return joins ? concat({u, v}, axis) : stack({u, v}, axis);
    };
    if (!a.interleaved) return turned(slice(x, -1, 0, half), slice(x, -1, half), -1, true);
    return reshape(turned(slice(x, -1, 0, kEnd, 2), slice(x, -1, 1, kEnd, 2), -1, false), x.shape());
  }
};

// ---- checks ----------------------------------------------------------------------------------------------

/// The constants of a call. Throws what the declarations say.
AttentionAttrs checked_attention(std::string_view where, const Tensor& q, const Tensor& k, const Tensor* v,
                                 const AttentionOptions& o) {
  check_float(q, where);
  const std::string all = "q " + q.spec().str() + ", k " + k.spec().str() + (v ? ", v " + v->spec().str() : "");
  if (k.dtype() != q.dtype() || (v && v->dtype() != q.dtype()))
    throw_dtype(where, "dtypes differ: " + all + "; cast them to one");
  const int least = o.enable_gqa ? 3 : 2;
  if (q.rank() < least || k.rank() < least || (v && v->rank() < least))
    throw_shape(where, "operands need at least " + std::to_string(least) + " axes: " + all);
  if (q.shape()[-1] != k.shape()[-1] || (v && v->shape()[-2] != k.shape()[-2]))
    throw_shape(where, "q and k must have the same width" + std::string(v ? ", k and v the same number of rows" : "") +
                           ": " + all);
  if (o.enable_gqa) {
    const std::int64_t heads = q.shape()[-3], groups = k.shape()[-3];
    if (groups < 1 || heads % groups != 0 || (v && v->shape()[-3] != groups))
      throw_shape(where, "the heads of the keys and values must divide those of the queries: " + all);
  }
  if (o.scale && !std::isfinite(*o.scale))
    throw ValueError(std::string(where) + ": the scale must be finite, got " + Scalar(*o.scale).str());
  if (o.mask.defined() && o.mask.dtype() != Dtype::boolean && o.mask.dtype() != q.dtype())
    throw_dtype(where, "the mask must be bool or of the queries' dtype: " + all + ", mask " + o.mask.spec().str());
  const double width = static_cast<double>(std::max<std::int64_t>(q.shape()[-1], 1));
  return {o.scale.value_or(1 / std::sqrt(width)), o.causal, o.enable_gqa};
}

/// A mask may not make the scores larger.
void check_mask(std::string_view where, const Tensor& mask, Shape scores) {
  const Shape own = mask.shape();
  bool fits = own.rank() <= scores.rank();
  for (int i = 1; fits && i <= own.rank(); ++i) fits = own[-i] == 1 || own[-i] == scores[-i];
  if (!fits) throw_shape(where, "the mask " + own.str() + " does not broadcast to the scores " + scores.str());
}

/// [..., H, L, S] of q and k.
Shape scores_of(std::string_view where, const Tensor& q, const Tensor& k, bool grouped) {
  const int last = grouped ? 3 : 2;
  Shape s = broadcast(leading(q.shape(), last), leading(k.shape(), last), where);
  if (grouped) s.push_back(q.shape()[-3]);
  s.push_back(q.shape()[-2]);
  s.push_back(k.shape()[-2]);
  return s;
}

}  // namespace

Family composite_attention_family() {
  static constexpr const Primitive* list[] = {&composite<AttentionWeights>, &composite<ScaledDotProductAttention>,
                                              &composite<RotaryEmbedding>};
  return list;
}

}  // namespace detail

using detail::composed;

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& o) {
  constexpr std::string_view where = "attention_weights";
  const auto attrs = detail::checked_attention(where, q, k, nullptr, o);
  const Shape scores = detail::scores_of(where, q, k, o.enable_gqa);
  if (!o.mask.defined()) return composed<detail::AttentionWeights>({{&q, &k}}, attrs);
  detail::check_mask(where, o.mask, scores);
  return composed<detail::AttentionWeights>({{&q, &k, &o.mask}}, attrs);
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  constexpr std::string_view where = "scaled_dot_product_attention";
  const auto attrs = detail::checked_attention(where, q, k, &v, o);
  const Shape scores = detail::scores_of(where, q, k, o.enable_gqa);
  if (!o.mask.defined()) return composed<detail::ScaledDotProductAttention>({{&q, &k, &v}}, attrs);
  detail::check_mask(where, o.mask, scores);
  return composed<detail::ScaledDotProductAttention>({{&q, &k, &v, &o.mask}}, attrs);
}

Tensor rotary_embedding(const Tensor& x, const Tensor& positions, const RotaryOptions& o) {
  constexpr std::string_view where = "rotary_embedding";
  detail::check_float(x, where);
  if (x.rank() < 2 || x.shape()[-1] % 2 != 0)
    detail::throw_shape(where, "expects [..., T, D] with an even D, got " + x.shape().str());
  if (!is_integer(positions.dtype()))
    detail::throw_dtype(where, "positions must be i64 or i32, got " + positions.spec().str());
  Shape rows = x.shape();
  rows.erase(rows.rank() - 1);
  if (positions.rank() > rows.rank() || broadcast(rows, positions.shape(), where) != rows)
    detail::throw_shape(where, "positions " + positions.shape().str() + " do not broadcast to " + rows.str());
  if (!(o.base > 0) || !std::isfinite(o.base))
    throw ValueError(std::string(where) + ": the base must be positive, got " + Scalar(o.base).str());
  return composed<detail::RotaryEmbedding>({{&x, &positions}}, {o.base, o.interleaved});
}

}  // namespace ferrite
