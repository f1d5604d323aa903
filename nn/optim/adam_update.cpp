/// The operations of Adam: its update, and what one begins with.
#include <algorithm>
#include <cmath>

#include "ferrite/nn/optim/detail/adam_in_place.h"
#include "ferrite/nn/optim/detail/adam_kernel.h"
#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/nn/optim/detail/shares.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/kernel/levels.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"
#include "ferrite_levels.h"

namespace ferrite::nn {
namespace detail {
using namespace ferrite::detail;

#define FERRITE_DECLARE(level)           \
  namespace level {                      \
  extern const AdamKernels adam_kernels; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {

#define FERRITE_TABLE(level) &nn::detail::level::adam_kernels,
constexpr const AdamKernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
constinit const TableInUse<AdamKernels> adam_in_use(kTables);

/// The numbers of an update of n elements from the constants and what changes from one to the next.
template <class T>
AdamNumbers<T> numbers_of(const AdamAttrs& attrs, T rate, T correction1, T correction2, std::int64_t n) {
  [[maybe_unused]] constexpr std::int64_t kWorthAReciprocal = 128;  // fewer elements are divided before it is known
  AdamNumbers<T> k = {.beta1 = static_cast<T>(attrs.beta1),
                      .rest1 = static_cast<T>(1 - attrs.beta1),
                      .beta2 = static_cast<T>(attrs.beta2),
                      .rest2 = static_cast<T>(1 - attrs.beta2),
                      .epsilon = static_cast<T>(attrs.epsilon),
                      .weight_decay = static_cast<T>(attrs.weight_decay.value_or(0)),
                      .shrink = rate * static_cast<T>(attrs.decoupled_decay.value_or(0)),
                      .root2 = std::sqrt(correction2),
                      .pace = rate / correction1,
                      .decay = attrs.decoupled_decay ? Decay::weights
                               : attrs.weight_decay  ? Decay::gradient
                                                     : Decay::none};
  if constexpr (std::is_same_v<T, float>) {
    k.reciprocal = n >= kWorthAReciprocal && k.root2 >= 0x1p-20F && k.root2 <= 1;
    if (k.reciprocal) {
      const double exact = 1 / static_cast<double>(k.root2);
      k.high = static_cast<float>(exact);
      k.low = static_cast<float>(exact - static_cast<double>(k.high));
    }
  }
  return k;
}

void sweep(const AdamNumbers<float>& k, const AdamRun<float>& run, std::int64_t n) { adam_in_use.get().f32(k, run, n); }
void sweep(const AdamNumbers<double>& k, const AdamRun<double>& run, std::int64_t n) {
  adam_in_use.get().f64(k, run, n);
}

/// An update, its share for each thread.
template <class T>
void update(const AdamNumbers<T>& numbers, const AdamRun<T>& run, std::int64_t n) {
  if (!is_shared(n)) return sweep(numbers, run, n);
  each_share(n, [&](std::int64_t at, std::int64_t count) { sweep(numbers, run.from(at), count); });
}

/// A number that parameters share, or their element at that place.
template <class T>
T number(const Tensor& x, std::size_t place = 0) {
  const std::size_t at = x.rank() == 0 ? 0 : place;
  return x.dtype() == Dtype::f32 ? static_cast<T>(x.data<float>()[at]) : static_cast<T>(x.data<double>()[at]);
}

/// One parameter's update by Adam.
struct AdamUpdate {
  using Attributes = AdamAttrs;
  static constexpr auto name = "adam_update", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "Adam's update of w by g: m' = beta1 m + (1 - beta1) g, v' = beta2 v + (1 - beta2) g^2, w' = w - rate / "
      "correction1 * m' / (sqrt(v') / sqrt(correction2) + epsilon)";
  static constexpr Reads reads = reads_all;
  static constexpr std::uint8_t in_place[] = {0, 2, 3};
  static constexpr Effects effects{};

  /// The only place that rejects operands.
  static void check(Inputs in) {
    const Tensor& w = in[0];
    if (!is_float(w.dtype())) throw_dtype(name, "w is " + w.spec().str() + "; it takes f32 or f64");
    for (std::size_t i = 1; i < 4; ++i) {
      if (in[i].dtype() != w.dtype()) throw_dtype(name, differs(i, in[i], w) + "; cast one of them");
      if (in[i].shape() != w.shape()) throw_shape(name, differs(i, in[i], w));
    }
    for (std::size_t i = 4; i < 7; ++i) {
      if (!is_float(in[i].dtype())) throw_dtype(name, no_number(i, in[i]));
      if (in[i].rank() != 0) throw_shape(name, no_number(i, in[i]));
    }
  }

  static Specs infer(Inputs in, const Attributes&) {
    check(in);
    const Spec spec = in[0].spec();
    return {spec, spec, spec};
  }

  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) { eval_at(in, out, attrs, 0); }
  /// The same where the corrections may be those of several parameters, of which this one has that place.
  static void eval_at(Inputs in, std::span<Tensor> out, const Attributes& attrs, std::size_t place) {
    if (in[0].dtype() == Dtype::f32) {
      run<float>(in, out, attrs, place);
    } else {
      run<double>(in, out, attrs, place);
    }
  }

  /// The definition, in other operations.
  static Tensors reference(Inputs in, const Attributes& attrs) {
    const double beta1 = attrs.beta1, beta2 = attrs.beta2;
    const Dtype dtype = in[0].dtype();
    const Tensor rate = cast(in[4], dtype);
    Tensor w = in[0], g = in[1];
    if (attrs.decoupled_decay) w = w - (rate * *attrs.decoupled_decay) * w;
    if (attrs.weight_decay) g = g + *attrs.weight_decay * w;
    const Tensor m = beta1 * in[2] + (1 - beta1) * g;
    const Tensor v = beta2 * in[3] + (1 - beta2) * square(g);
    const Tensor denominator = sqrt(v) / sqrt(cast(in[6], dtype)) + attrs.epsilon;
    return {w - (rate / cast(in[5], dtype)) * (m / denominator), m, v};
  }

  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const double beta1 = attrs.beta1, beta2 = attrs.beta2;
    const double decay = attrs.weight_decay.value_or(0), decoupled = attrs.decoupled_decay.value_or(0);
    const Dtype dtype = v.in_spec(0).dtype;
    const Tensor rate = cast(v.in(4), dtype), correction1 = cast(v.in(5), dtype), correction2 = cast(v.in(6), dtype);
    const Tensor g = decay > 0 ? v.in(1) + decay * v.in(0) : v.in(1);
    const Tensor &m = v.out(1), root = sqrt(v.out(2)), root2 = sqrt(correction2);
    const Tensor denominator = root / root2 + attrs.epsilon;
    const Tensor dw = v.grad_or_zeros(0), step = dw / denominator, pace = rate / correction1;
    const Tensor d_denominator = pace * step * m / denominator;
    const Tensor dm = v.grad_or_zeros(1) - pace * step;
    const Tensor dv = v.grad_or_zeros(2) + d_denominator / (2 * root2 * root);
    const Tensor dg = (1 - beta1) * dm + (2 * (1 - beta2)) * g * dv;
    const Tensor d_pace = -sum(step * m);
    Tensor to_w = decoupled > 0 ? dw * (1 - decoupled * rate) : dw;
    if (decay > 0) to_w = to_w + decay * dg;
    Tensor to_rate = d_pace / correction1;
    if (decoupled > 0) to_rate = to_rate - decoupled * sum(dw * v.in(0));
    const Tensor to_correction1 = -(d_pace * pace / correction1);
    const Tensor to_correction2 = sum(d_denominator * root) * -0.5 / (correction2 * root2);
    return {to_w,
            dg,
            beta1 * dm,
            beta2 * dv,
            cast(to_rate, v.in_spec(4).dtype),
            cast(to_correction1, v.in_spec(5).dtype),
            cast(to_correction2, v.in_spec(6).dtype)};
  }

  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const double beta1 = attrs.beta1, beta2 = attrs.beta2;
    const double rate = in[4].values[0], correction1 = in[5].values[0], correction2 = in[6].values[0];
    for (std::size_t i = 0; i < in[0].values.size(); ++i) {
      const double w = in[0].values[i];
      const double g = in[1].values[i] + attrs.weight_decay.value_or(0) * w;
      const double m = out[1].values[i] = beta1 * in[2].values[i] + (1 - beta1) * g;
      const double v = out[2].values[i] = beta2 * in[3].values[i] + (1 - beta2) * g * g;
      const double shrunk = w * (1 - rate * attrs.decoupled_decay.value_or(0));
      out[0].values[i] = shrunk - rate * (m / correction1) / (std::sqrt(v / correction2) + attrs.epsilon);
    }
  }

  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    const auto add = [&](const Shape& shape, const AdamConstants& constants) {
      Sample s{.inputs = {{shape}, {shape}, {shape}, {shape}, {{}}, {{}}, {{}}}, .attrs = adam_attrs(constants)};
      s.range = {0.1, 1};
      list.push_back(s);
    };
    add({3, 2}, {.beta1 = 0.9, .beta2 = 0.8, .epsilon = 0.1});
    add({5}, {.beta1 = 0.5, .beta2 = 0.9, .epsilon = 0.01, .weight_decay = 0.3});
    add({2, 2}, {.beta1 = 0.7, .beta2 = 0.6, .epsilon = 0.1, .weight_decay = 0.4, .decoupled = true});
    add({}, {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 0.1});
    add({0, 3}, {});
    add({37}, {.epsilon = 0.1, .weight_decay = 0.1});
    return list;
  }

 private:
  static constexpr std::string_view kArguments[] = {"w", "g", "m", "v", "rate", "correction1", "correction2"};

  static std::string differs(std::size_t i, const Tensor& x, const Tensor& w) {
    return std::string(kArguments[i]) + " is " + x.spec().str() + ", w is " + w.spec().str();
  }
  static std::string no_number(std::size_t i, const Tensor& x) {
    return std::string(kArguments[i]) + " must be a float of rank 0, got " + x.spec().str();
  }

  template <class T>
  static void run(Inputs in, std::span<Tensor> out, const Attributes& attrs, std::size_t place) {
    Tensor copies[4];  // of operands that do not lie row-major; counting handles would cost as much as a small update
    const auto read = [&](std::size_t i) {
      return (in[i].contiguous() ? in[i] : copies[i] = dense(in[i])).template data<T>();
    };
    const AdamRun<T> run{
        read(0), read(1), read(2), read(3), Writer::data<T>(out[0]), Writer::data<T>(out[1]), Writer::data<T>(out[2])};
    const std::int64_t n = out[0].numel();
    update(numbers_of<T>(attrs, number<T>(in[4]), number<T>(in[5], place), number<T>(in[6], place), n), run, n);
  }
};

/// What an update by Adam begins with.
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

  /// Nearly always all counts are the same, and so are their powers.
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

  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (std::size_t i = 0; i < in[0].values.size(); ++i) {
      const double t = out[0].values[i] = in[0].values[i] + (in.size() > 1 ? in[1].values[i] : 1);
      out[1].values[i] = -std::expm1(t * std::log(attrs.beta1));
      out[2].values[i] = -std::expm1(t * std::log(attrs.beta2));
    }
  }

  static std::vector<Sample> samples() {
    const AdamBetas attrs{0.8, 0.95};
    return {{.inputs = {{{}, Dtype::i64}}, .attrs = attrs, .indices = {4}},
            {.inputs = {{{2, 3}, Dtype::i64}}, .attrs = attrs, .indices = {0, 0, 7, 19, 20, 20}},
            {.inputs = {{{5}, Dtype::i64}, {{5}, Dtype::i64}}, .attrs = attrs, .indices = {0, 1, 1, 1, 0}}};
  }
};

}  // namespace

Attrs adam_attrs(const AdamConstants& c) {
  AdamAttrs attrs{{c.beta1, c.beta2}, c.epsilon};
  if (c.weight_decay > 0) (c.decoupled ? attrs.decoupled_decay : attrs.weight_decay) = c.weight_decay;
  return attrs;
}

bool AdamInPlace::prepare(const AdamVariables& variables, const Tensor& g, const AdamPace& pace) {
  const Tensor &w = held_by(variables.w), &m = held_by(variables.m), &v = held_by(variables.v);
  if (g.is_abstract() || &m == &v || !owned_alone(m) || !owned_alone(v)) return false;
  const Tensor* const all[] = {&w, &g, &m, &v, &pace.rate, &pace.correction1, &pace.correction2};
  std::copy(std::begin(all), std::end(all), operands_);
  place_ = pace.place;
  if (!g.contiguous()) dense_ = dense(g);
  if (!owned_alone(w)) fresh_ = Tensor::empty(w.spec());
  return true;
}

void AdamInPlace::run(const Variable& w, const Attrs& attrs) {
  if (dense_.defined()) operands_[1] = &dense_;
  Tensor out[] = {fresh_.defined() ? fresh_ : *operands_[0], *operands_[2], *operands_[3]};
  const ProfileEvent event(AdamUpdate::name, Scope());
  AdamUpdate::eval_at(Inputs(operands_, 7), out, attrs.as<AdamAttrs>(), place_);
  if (fresh_.defined()) w.assign(fresh_);
}

void update_by_adam(const AdamVariables& variables, const Tensor& g, const AdamPace& pace, const Attrs& attrs) {
  const Tensor w_read = variables.w.value(), m_read = variables.m.value(), v_read = variables.v.value();
  const Tensor correction1 = number_at(pace.correction1, pace.place);
  const Tensor correction2 = number_at(pace.correction2, pace.place);
  const Tensor* const operands[] = {&w_read, &g, &m_read, &v_read, &pace.rate, &correction1, &correction2};
  const Tensors out = structured<AdamUpdate>.apply(Inputs(operands), attrs);
  variables.m.assign(out[1]);
  variables.v.assign(out[2]);
  variables.w.assign(out[0]);
}

Tensors begin_adam(const Tensor& steps, const Tensor& updated, const Attrs& betas) {
  if (!updated.defined()) return structured<AdamBegin>.apply({{&steps}}, betas);
  return structured<AdamBegin>.apply({{&steps, &updated}}, betas);
}

std::span<const Primitive* const> adam_operations() {
  static constexpr const Primitive* list[] = {&structured<AdamBegin>, &structured<AdamUpdate>};
  return list;
}

}  // namespace detail

Tensors adam_update(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v, const Tensor& rate,
                    const Tensor& correction1, const Tensor& correction2, const AdamConstants& constants) {
  return ferrite::detail::structured<detail::AdamUpdate>.apply({{&w, &g, &m, &v, &rate, &correction1, &correction2}},
                                                               detail::adam_attrs(constants));
}

}  // namespace ferrite::nn
