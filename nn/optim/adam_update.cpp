/// The operation that begins Adam's updates, and one update as a function.
#include "ferrite/nn/optim/adam_update.h"

#include <cmath>

#include "ferrite/nn/optim/detail/optimizer_values.h"
#include "ferrite/nn/optim/detail/rule_update.h"
#include "ferrite/tensor/define.h"

namespace ferrite::nn {
namespace detail {
using namespace ferrite::detail;

namespace {

/// The operation that begins an update by Adam: counts it and computes the bias corrections.
struct AdamBegin {
  using Attributes = AdamBetas;
  static constexpr auto name = "adam_begin", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "t' = t + 1, or t + u where it is given, 1 - beta1^t' and 1 - beta2^t'; t and u i64, the others f64";
  static constexpr Reads reads = reads_nothing;

  static Specs infer(Inputs in, const Attributes&) {
    const Spec spec = in[0].spec();
    if (in.size() > 2) throw_shape(name, "it takes t and u, got " + std::to_string(in.size()) + " operands");
    for (const Tensor& x : in)
      if (x.dtype() != Dtype::i64) throw_dtype(name, "t and u are i64, got " + x.spec().str());
    if (in.size() == 2 && in[1].shape() != spec.shape)
      throw_shape(name, "u is " + in[1].spec().str() + ", t is " + spec.str());
    const Spec corrections{spec.shape, Dtype::f64};
    return {spec, corrections, corrections};
  }

  /// Reuses the powers of the previous parameter: nearly always all counts are the same.
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor steps(in[0]), counted(in[in.size() - 1]);
    const auto* const t = steps->data<std::int64_t>();
    const auto* const u = in.size() > 1 ? counted->data<std::int64_t>() : nullptr;
    auto* const next = Writer::data<std::int64_t>(out[0]);
    auto *const first = Writer::data<double>(out[1]), *const second = Writer::data<double>(out[2]);
    for (std::int64_t i = 0; i < out[0].numel(); ++i) {
      next[i] = t[i] + (u ? u[i] : 1);
      const bool same = i > 0 && next[i] == next[i - 1];
      first[i] = same ? first[i - 1] : 1 - std::pow(attrs.beta1, static_cast<double>(next[i]));
      second[i] = same ? second[i - 1] : 1 - std::pow(attrs.beta2, static_cast<double>(next[i]));
    }
  }

  static Tensors reference(Inputs in, const Attributes& attrs) {
    const Tensor t = in.size() > 1 ? in[0] + in[1] : in[0] + 1, exact = cast(t, Dtype::f64);
    return {t, 1 - pow(attrs.beta1, exact), 1 - pow(attrs.beta2, exact)};
  }
};

}  // namespace

Tensors begin_adam(const Tensor& steps, const Tensor& updated, const Attrs& betas) {
  if (!updated.defined()) return structured<AdamBegin>.apply({{&steps}}, betas);
  return structured<AdamBegin>.apply({{&steps, &updated}}, betas);
}

std::span<const Primitive* const> optimizer_operations() {
  static const Primitive* const list[] = {&structured<AdamBegin>, &rule_operation()};
  return list;
}

}  // namespace detail

Tensors adam_update(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v, const Tensor& rate,
                    const Tensor& correction1, const Tensor& correction2, const AdamConstants& c) {
  const Attrs attrs = detail::rule_attrs({{.kind = detail::RuleKind::adam,
                                           .decay = detail::decay_of(c.weight_decay, c.decoupled),
                                           .weight_decay = c.weight_decay,
                                           .constants = {c.beta2, 1 - c.beta2, c.epsilon},
                                           .numbers = {c.beta1, 1 - c.beta1}},
                                          /*states=*/3,
                                          /*numbers=*/1U << 2 | 1U << 3 | 1U << detail::kRate});
  return detail::update_by_rule({{&w, &g, &m, &v, &correction1, &correction2, &rate}}, attrs);
}

}  // namespace ferrite::nn
