/// Random choices: positions by their weights, classes by their logits, orders.
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/detail/draws.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- by weights and by logits -----------------------------------------------------------------------------

namespace detail {
namespace {

struct MultinomialAttrs : KeyAttrs {
  std::int64_t n = 1;
  bool replacement = false;
  static constexpr auto fields =
      KeyAttrs::fields.with(attr("n", &MultinomialAttrs::n), attr("replacement", &MultinomialAttrs::replacement));
  MultinomialAttrs() = default;
  MultinomialAttrs(const KeyAttrs& key, std::int64_t count, bool again) : KeyAttrs(key), n(count), replacement(again) {}
};

/// Throws ValueError unless a row has enough positive weights.
template <class T>
void check_weights(const T* w, std::int64_t C, const MultinomialAttrs& a) {
  std::int64_t positive = 0;
  for (std::int64_t c = 0; c < C; ++c) {
    if (!(w[c] >= 0) || !std::isfinite(w[c]))
      throw ValueError("multinomial: weights must be finite and must not be negative, got " +
                       (std::isnan(w[c]) ? "nan" : Scalar(static_cast<double>(w[c])).str()));
    positive += w[c] > 0 ? 1 : 0;
  }
  const std::int64_t wanted = a.replacement ? 1 : a.n;
  if (positive < wanted)
    throw ValueError("multinomial: a row has " + std::to_string(positive) + " positive weights of the " +
                     std::to_string(wanted) + " needed");
}

/// Returns the first position at which the running sum of weights exceeds u times the total.
template <class T>
std::int64_t chosen(const T* w, std::int64_t C, double u) {
  double total = 0;
  for (std::int64_t c = 0; c < C; ++c) total += static_cast<double>(w[c]);
  const double wanted = u * total;
  double sum = 0;
  std::int64_t last = 0;
  for (std::int64_t c = 0; c < C; ++c) {
    if (!(w[c] > 0)) continue;
    last = c;
    sum += static_cast<double>(w[c]);
    if (sum > wanted) break;
  }
  return last;
}

struct Multinomial {
  using Attributes = MultinomialAttrs;
  static constexpr auto name = "multinomial", onnx = "", stablehlo = "";
  static constexpr auto summary = "n positions of the last axis, as likely as their weights";
  static constexpr Effects effects{.throws = true, .draws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes& a) {
    if (!is_float(in[0].dtype())) throw_dtype(name, "weights must be f32 or f64, got " + in[0].spec().str());
    if (in[0].rank() < 1) throw_shape(name, "weights must be [..., C], got []");
    if (a.n < 1) throw ValueError("multinomial: n must be at least 1, got " + std::to_string(a.n));
    check_key(name, in, 1);
    Shape shape = in[0].shape();
    shape[shape.rank() - 1] = a.n;
    return {{shape, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    if (in[0].dtype() == Dtype::f32) {
      run<float>(in, out[0], a);
    } else {
      run<double>(in, out[0], a);
    }
  }

 private:
  template <class T>
  static void run(Inputs in, Tensor& out, const Attributes& a) {
    const RandomKey key = key_of(in, 1, a);
    const RowMajor weights(in[0]);
    const std::int64_t C = in[0].shape()[-1], rows = out.numel() / a.n;
    std::int64_t* const to = Writer::data<std::int64_t>(out);
    for (std::int64_t r = 0; r < rows; ++r) check_weights(weights->data<T>() + r * C, C, a);
    parallel_for(rows, [&](std::int64_t r) {
      const T* const w = weights->data<T>() + r * C;
      if (a.replacement) {
        for (std::int64_t j = 0; j < a.n; ++j)
          to[r * a.n + j] = chosen(w, C, open_unit(key, static_cast<std::uint64_t>(r * a.n + j)));
        return;
      }
      // Chooses the positions whose exponential clocks, with rates w, ring first.
      std::vector<std::pair<double, std::int64_t>> clocks;
      for (std::int64_t c = 0; c < C; ++c)
        if (w[c] > 0)
          clocks.emplace_back(
              -log_positive(open_unit(key, static_cast<std::uint64_t>(r * C + c))) / static_cast<double>(w[c]), c);
      std::partial_sort(clocks.begin(), clocks.begin() + a.n, clocks.end());
      for (std::int64_t j = 0; j < a.n; ++j) to[r * a.n + j] = clocks[static_cast<std::size_t>(j)].second;
    });
  }
};

struct Categorical {
  using Attributes = KeyAttrs;
  static constexpr auto name = "categorical", onnx = "";
  static constexpr auto summary = "a class of the last axis, as likely as softmax says";
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor weights = softmax(in[0], -1);
    InlineVector<const Tensor*, 4> operands{&weights};
    for (std::size_t i = 1; i < in.size(); ++i) operands.push_back(&in[i]);
    return squeeze(call(structured<Multinomial>, {operands.data(), operands.size()}, MultinomialAttrs(a, 1, true)), -1);
  }
};

struct FilterAttrs {
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
  static constexpr auto fields = attr_list(attr("temperature", &FilterAttrs::temperature),
                                           attr("top_k", &FilterAttrs::top_k), attr("top_p", &FilterAttrs::top_p));
};

struct FilterLogits {
  using Attributes = FilterAttrs;
  static constexpr auto name = "filter_logits", onnx = "", stablehlo = "";
  static constexpr auto summary = "logits / temperature, -infinity outside the top_k largest and their top_p";
  static constexpr Reads reads = reads_outputs;

  static Specs infer(Inputs in, const Attributes& a) {
    if (!is_float(in[0].dtype())) throw_dtype(name, "logits must be f32 or f64, got " + in[0].spec().str());
    if (in[0].rank() < 1) throw_shape(name, "logits must be [..., C], got []");
    if (!(a.temperature >= 0) || !std::isfinite(a.temperature))
      throw ValueError("filter_logits: the temperature must be finite and must not be negative, got " +
                       Scalar(a.temperature).str());
    if (a.top_k < 0) throw ValueError("filter_logits: top_k must not be negative, got " + std::to_string(a.top_k));
    if (!(a.top_p >= 0 && a.top_p <= 1))
      throw ValueError("filter_logits: top_p must lie in 0..1, got " + Scalar(a.top_p).str());
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    if (in[0].dtype() == Dtype::f32) {
      run<float>(in[0], out[0], a);
    } else {
      run<double>(in[0], out[0], a);
    }
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    const Tensor kept = gt(v.out(), -std::numeric_limits<double>::infinity());
    return {where(kept, v.grad() / (a.temperature == 0 ? 1.0 : a.temperature), 0.0)};
  }

 private:
  template <class T>
  static void run(const Tensor& logits, Tensor& out, const Attributes& a) {
    const RowMajor in(logits);
    const std::int64_t C = logits.shape()[-1], rows = C ? out.numel() / C : 0;
    const T t = a.temperature == 0 ? T(1) : static_cast<T>(a.temperature);
    const std::int64_t k = a.temperature == 0 ? 1 : a.top_k == 0 ? C : std::min(a.top_k, C);
    T* const all = Writer::data<T>(out);
    parallel_for(rows, [&](std::int64_t r) {
      const T* const x = in->template data<T>() + r * C;
      T* const to = all + r * C;
      if (k == C && a.top_p == 1) {
        for (std::int64_t c = 0; c < C; ++c) to[c] = x[c] / t;
        return;
      }
      std::vector<std::int64_t> order(static_cast<std::size_t>(C));
      std::iota(order.begin(), order.end(), 0);
      // NaN comes first: it remains, and the draw refuses it.
      const auto height = [&](std::int64_t i) { return std::isnan(x[i]) ? std::numeric_limits<T>::infinity() : x[i]; };
      const auto larger = [&](std::int64_t i, std::int64_t j) {
        return height(i) != height(j) ? height(i) > height(j) : i < j;
      };
      std::partial_sort(order.begin(), order.begin() + k, order.end(), larger);
      std::fill_n(to, C, -std::numeric_limits<T>::infinity());
      const auto weight = [&](std::int64_t i) {
        const std::int64_t c = order[static_cast<std::size_t>(i)];
        return std::exp((static_cast<double>(x[c]) - static_cast<double>(x[order[0]])) / static_cast<double>(t));
      };
      double total = 0, before = 0;
      for (std::int64_t i = 0; i < k && a.top_p < 1; ++i) total += weight(i);
      for (std::int64_t i = 0; i < k; ++i) {
        if (a.top_p < 1 && i > 0 && before / total >= a.top_p) break;
        if (a.top_p < 1) before += weight(i);
        const std::int64_t c = order[static_cast<std::size_t>(i)];
        to[c] = x[c] / t;
      }
    });
  }
};

struct SampleAttrs : KeyAttrs {
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
  static constexpr auto fields =
      KeyAttrs::fields.with(attr("temperature", &SampleAttrs::temperature), attr("top_k", &SampleAttrs::top_k),
                            attr("top_p", &SampleAttrs::top_p));
  SampleAttrs() = default;
  SampleAttrs(const KeyAttrs& key, const FilterAttrs& f)
      : KeyAttrs(key), temperature(f.temperature), top_k(f.top_k), top_p(f.top_p) {}
  FilterAttrs filter() const { return {temperature, top_k, top_p}; }
};

struct SampleLogits {
  using Attributes = SampleAttrs;
  static constexpr auto name = "sample_logits", onnx = "", summary = "a class of what filter_logits keeps";
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor kept = call(structured<FilterLogits>, {{&in[0]}}, a.filter());
    InlineVector<const Tensor*, 4> operands{&kept};
    for (std::size_t i = 1; i < in.size(); ++i) operands.push_back(&in[i]);
    return Categorical::parts({operands.data(), operands.size()}, a);
  }
};

template <class Op, class A>
Tensor choose(const Tensor& x, const DrawKey& key, const A& attrs) {
  Tensor out = composed<Op>(DrawOperands({&x}, key), attrs);
  key.drawn();
  return out;
}

}  // namespace

}  // namespace detail

Tensor multinomial(const Tensor& weights, std::int64_t n, const DrawKey& key, bool replacement) {
  const detail::MultinomialAttrs attrs(detail::KeyAttrs::of(key.constant()), n, replacement);
  Tensor out = detail::call(detail::structured<detail::Multinomial>, detail::DrawOperands({&weights}, key), attrs);
  key.drawn();
  return out;
}

Tensor categorical(const Tensor& logits, const DrawKey& key) {
  if (logits.rank() < 1) detail::throw_shape("categorical", "logits must be [..., C], got []");
  return detail::choose<detail::Categorical>(logits, key, detail::KeyAttrs::of(key.constant()));
}

Tensor filter_logits(const Tensor& logits, const SamplingOptions& o) {
  return detail::call(detail::structured<detail::FilterLogits>, {{&logits}},
                      detail::FilterAttrs{o.temperature, o.top_k, o.top_p});
}

Tensor sample_logits(const Tensor& logits, const DrawKey& key, const SamplingOptions& o) {
  return detail::choose<detail::SampleLogits>(
      logits, key, detail::SampleAttrs(detail::KeyAttrs::of(key.constant()), {o.temperature, o.top_k, o.top_p}));
}

Tensor multinomial(const Tensor& weights, std::int64_t n, const RandomKey& key, bool replacement) {
  return multinomial(weights, n, DrawKey(key), replacement);
}
Tensor categorical(const Tensor& logits, const RandomKey& key) { return categorical(logits, DrawKey(key)); }
Tensor sample_logits(const Tensor& logits, const RandomKey& key, const SamplingOptions& options) {
  return sample_logits(logits, DrawKey(key), options);
}

// ---- permutations, and tensors shuffled by them -----------------------------------------------------------

namespace detail {
namespace {

struct PermutationAttrs : KeyAttrs {
  std::int64_t n = 0;
  static constexpr auto fields = KeyAttrs::fields.with(attr("n", &PermutationAttrs::n));
  PermutationAttrs() = default;
  PermutationAttrs(const KeyAttrs& key, std::int64_t count) : KeyAttrs(key), n(count) {}
};

struct Permutation {
  using Attributes = PermutationAttrs;
  static constexpr auto name = "permutation", onnx = "", stablehlo = "";
  static constexpr auto summary = "0..n - 1 in random order (Fisher and Yates)";
  static constexpr Effects effects{.draws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes& a) {
    if (a.n < 0) throw ValueError("permutation: the length must not be negative, got " + std::to_string(a.n));
    check_key(name, in, 0);
    return {{{a.n}, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const NewFrame frame;
    copy_to(Writer::raw(out[0]), ferrite::permutation(a.n, key_of(in, 0, a)));
  }
};

struct ShuffleAttrs : KeyAttrs {
  int axis = 0;
  static constexpr auto fields = KeyAttrs::fields.with(attr("axis", &ShuffleAttrs::axis));
  ShuffleAttrs() = default;
  ShuffleAttrs(const KeyAttrs& key, int along) : KeyAttrs(key), axis(along) {}
};

struct Shuffle {
  using Attributes = ShuffleAttrs;
  static constexpr auto name = "shuffle", onnx = "", summary = "slices along an axis in the order of a permutation";
  static Tensor parts(Inputs in, const Attributes& a) {
    InlineVector<const Tensor*, 4> operands;
    for (std::size_t i = 1; i < in.size(); ++i) operands.push_back(&in[i]);
    const Tensor order =
        call(structured<Permutation>, {operands.data(), operands.size()}, PermutationAttrs(a, in[0].shape()[a.axis]));
    return index_select(in[0], a.axis, order);
  }
};

}  // namespace

}  // namespace detail

Tensor permutation(std::int64_t n, const DrawKey& key) {
  Tensor out = detail::call(detail::structured<detail::Permutation>, detail::DrawOperands({}, key),
                            detail::PermutationAttrs(detail::KeyAttrs::of(key.constant()), n));
  key.drawn();
  return out;
}

Tensor shuffle(const Tensor& x, const DrawKey& key, std::int64_t axis) {
  const detail::ShuffleAttrs attrs(detail::KeyAttrs::of(key.constant()), axis_of(axis, x.rank(), "shuffle"));
  Tensor out = detail::composed<detail::Shuffle>(detail::DrawOperands({&x}, key), attrs);
  key.drawn();
  return out;
}

Tensor shuffle(const Tensor& x, const RandomKey& key, std::int64_t axis) { return shuffle(x, DrawKey(key), axis); }

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family choice_family() {
  static constexpr const Primitive* list[] = {&structured<Multinomial>, &structured<FilterLogits>,
                                              &structured<Permutation>};
  return list;
}

Family composite_choice_family() {
  static constexpr const Primitive* list[] = {&composite<Categorical>, &composite<SampleLogits>, &composite<Shuffle>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
