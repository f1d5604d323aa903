/// Losses of pairs and triples.
#include "ferrite/nn/losses/ranking.h"

#include <limits>

#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace detail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns max(x, 0) with gradient 1 at 0, as in PyTorch's clamp.
Tensor at_least_zero(const Tensor& x) { return clamp(x, 0.0, kInfinity); }

struct MarginAttrs {
  double margin = 0;
  static constexpr auto fields = attr_list(attr("margin", &MarginAttrs::margin));
};

struct MarginRankingLoss {
  using Attributes = MarginAttrs;
  static constexpr auto name = "margin_ranking_loss", summary = "max(0, margin - target (first - second))";
  static Tensor of(Inputs in, const Attributes& a) { return at_least_zero(-in[2] * (in[0] - in[1]) + a.margin); }
};

struct HingeEmbeddingLoss {
  using Attributes = MarginAttrs;
  static constexpr auto name = "hinge_embedding_loss";
  static constexpr auto summary = "x where the target is 1, max(0, margin - x) where it is -1";
  static Tensor of(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &t = in[1];
    return where(ne(t, 1), at_least_zero(a.margin - x), 0.0) + where(ne(t, -1), x, 0.0);
  }
};

struct CosineEmbeddingLoss {
  using Attributes = MarginAttrs;
  static constexpr auto name = "cosine_embedding_loss", onnx = "";
  static constexpr auto summary = "1 - cos where the target is 1, max(0, cos - margin) where it is -1";
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &y = in[1], &t = in[2];
    const Tensor lengths = (sum(square(x), {-1}) + 1e-12) * (sum(square(y), {-1}) + 1e-12);
    const Tensor cosine = sum(x * y, {-1}) / sqrt(lengths);
    return where(eq(t, 1), 1 - cosine, 0.0) + where(eq(t, -1), at_least_zero(cosine - a.margin), 0.0);
  }
};

struct TripletAttrs {
  double margin = 1, p = 2, epsilon = 1e-6;
  bool swap = false;
  static constexpr auto fields = attr_list(attr("margin", &TripletAttrs::margin), attr("p", &TripletAttrs::p),
                                           attr("epsilon", &TripletAttrs::epsilon), attr("swap", &TripletAttrs::swap));
};

/// Returns the p-norm of the differences along the last axis; its gradient is 0 where the norm is 0.
Tensor distance(const Tensor& x, const Tensor& y, const TripletAttrs& a) {
  const Tensor d = abs(x - y + a.epsilon);
  if (a.p == 1) return sum(d, {-1});
  if (a.p == kInfinity) return amax(d, {-1});
  const Tensor total = a.p == 2 ? sum(square(d), {-1}) : sum(pow(d, a.p), {-1});
  const Tensor none = eq(total, 0), some = where(none, 1.0, total);
  return where(none, 0.0, a.p == 2 ? sqrt(some) : pow(some, 1 / a.p));
}

struct TripletMarginLoss {
  using Attributes = TripletAttrs;
  static constexpr auto name = "triplet_margin_loss", onnx = "";
  static constexpr auto summary = "max(0, margin + |anchor - positive| - |anchor - negative|) of the last axis";
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor near = distance(in[0], in[1], a);
    Tensor far = distance(in[0], in[2], a);
    if (a.swap) far = minimum(far, distance(in[1], in[2], a));
    return at_least_zero(near - far + a.margin);
  }
};

}  // namespace

Records ranking_records() {
  static constexpr const Primitive* list[] = {&composite<ElementLoss<MarginRankingLoss>>,
                                              &composite<ElementLoss<HingeEmbeddingLoss>>,
                                              &composite<CosineEmbeddingLoss>, &composite<TripletMarginLoss>};
  return list;
}

namespace {

/// Vectors along the last axis, in which padding is replaced if there are masks.
struct Vectors {
  Vectors(std::string_view name, std::initializer_list<const Tensor*> all, const LossOptions& options) {
    const Tensor& first = **all.begin();
    check_float(name, "the vectors", first);
    for (const Tensor* x : all) check_same(name, first, *x);
    if (first.rank() == 0) throw_shape(name, "expects vectors [..., D], got []");
    rows = first.shape();
    rows.erase(rows.rank() - 1);
    counts = counted(name, {rows, first.dtype()}, options);
    const Counted every = counts.with_axis(-1);
    for (const Tensor* x : all) list.push_back(without(every, *x));
  }
  Shape rows;
  Counted counts;
  Tensors list;
};

}  // namespace
}  // namespace detail

Tensor margin_ranking_loss(const Tensor& first, const Tensor& second, const Tensor& target, double margin,
                           const LossOptions& options) {
  constexpr std::string_view where = detail::MarginRankingLoss::name;
  detail::check_finite(where, "the margin", margin);
  detail::check_float(where, "the scores", first);
  detail::check_same(where, first, second);
  detail::check_same(where, first, target);
  const Tensor operands[] = {first, second, target};
  return detail::element_loss<detail::MarginRankingLoss>(operands, {margin}, options);
}

Tensor hinge_embedding_loss(const Tensor& distance, const Tensor& target, double margin, const LossOptions& options) {
  detail::check_finite("hinge_embedding_loss", "the margin", margin);
  return detail::pair_loss<detail::HingeEmbeddingLoss>(distance, target, options, {margin});
}

Tensor cosine_embedding_loss(const Tensor& first, const Tensor& second, const Tensor& target, double margin,
                             const LossOptions& options) {
  constexpr std::string_view where = detail::CosineEmbeddingLoss::name;
  detail::check_finite(where, "the margin", margin);
  const detail::Vectors v(where, {&first, &second}, options);
  if (target.spec() != Spec{v.rows, first.dtype()})
    detail::throw_shape(where,
                        "the target must be " + Spec{v.rows, first.dtype()}.str() + ", got " + target.spec().str());
  const Tensor losses = detail::composed<detail::CosineEmbeddingLoss>({{&v.list[0], &v.list[1], &target}}, {margin});
  return detail::reduced(losses, v.counts, options);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletParameters& parameters, const LossOptions& options) {
  constexpr std::string_view where = detail::TripletMarginLoss::name;
  detail::check_finite(where, "the margin", parameters.margin);
  detail::check_finite(where, "epsilon", parameters.epsilon);
  if (!(parameters.p >= 1))
    throw ValueError("triplet_margin_loss: p must be at least 1, got " + Scalar(parameters.p).str());
  const detail::Vectors v(where, {&anchor, &positive, &negative}, options);
  const detail::TripletAttrs attrs{parameters.margin, parameters.p, parameters.epsilon, parameters.swap};
  const Tensor losses = detail::composed<detail::TripletMarginLoss>({{&v.list[0], &v.list[1], &v.list[2]}}, attrs);
  return detail::reduced(losses, v.counts, options);
}

}  // namespace ferrite::nn
