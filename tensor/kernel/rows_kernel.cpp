/// Composites along rows: softmax, layer norm, variances, norms.
#include "ferrite/tensor/kernel/lanes_within.h"
#include "ferrite/tensor/kernel/packet_exp.h"
#include "ferrite/tensor/kernel/packet_log.h"
#include "ferrite/tensor/kernel/rows.h"

#include <limits>

#include "ferrite/tensor/kernel/reduce_run.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

/// Computes to[i] = f(x[i]) in whole packets, the last one padded, as pointwise operations do; f may store as well.
template <class T, class F>
[[gnu::always_inline]] inline void map(const T* x, T* to, std::int64_t n, const F& f) {
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t i = 0;
  for (; i + W <= n; i += W) f(Packet<T>::load(x + i)).store(to + i);
  if (i == n) return;
  alignas(64) T last[static_cast<std::size_t>(W)] = {};
  std::copy_n(x + i, n - i, last);
  put(to + i, f(Packet<T>::load(last)), n - i);
}
/// Computes to[i] = f(a[i], b[i]) in whole packets.
template <class T, class F>
[[gnu::always_inline]] inline void map(const T* a, const T* b, T* to, std::int64_t n, const F& f) {
  using P = Packet<T>;
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t i = 0;
  for (; i + W <= n; i += W) f(P::load(a + i), P::load(b + i)).store(to + i);
  if (i == n) return;
  alignas(64) T last_a[static_cast<std::size_t>(W)] = {}, last_b[static_cast<std::size_t>(W)] = {};
  std::copy_n(a + i, n - i, last_a);
  std::copy_n(b + i, n - i, last_b);
  put(to + i, f(P::load(last_a), P::load(last_b)), n - i);
}
/// Returns f of one number.
template <class T, class F>
[[gnu::always_inline]] inline T one(T x, const F& f) {
  T y;
  map(&x, &y, 1, f);
  return y;
}

/// A run of f(x), computed where it is reduced.
template <class T, class F>
struct Mapped {
  const T* x;
  const F& f;
  T* rest;  // kSplit<T> elements
  [[gnu::always_inline]] Packet<T> packet(std::int64_t i) const { return f(Packet<T>::load(x + i)); }
  [[gnu::always_inline]] const T* few(std::int64_t i, std::int64_t n) const { return map(x + i, rest, n, f), rest; }
};
template <class T, class F>
struct MappedPairs {
  const T *a, *b;
  const F& f;
  T* rest;
  [[gnu::always_inline]] Packet<T> packet(std::int64_t i) const {
    return f(Packet<T>::load(a + i), Packet<T>::load(b + i));
  }
  [[gnu::always_inline]] const T* few(std::int64_t i, std::int64_t n) const {
    return map(a + i, b + i, rest, n, f), rest;
  }
};
/// A run of f(x), which is also stored.
template <class T, class F>
struct Stored {
  const T* x;
  const F& f;
  T* to;
  [[gnu::always_inline]] Packet<T> packet(std::int64_t i) const {
    const Packet<T> y = f(Packet<T>::load(x + i));
    y.store(to + i);
    return y;
  }
  [[gnu::always_inline]] const T* few(std::int64_t i, std::int64_t n) const { return map(x + i, to + i, n, f), to + i; }
};

/// Reduces f(x).
template <class Op, class T, class F>
[[gnu::always_inline]] inline T reduce_of(const T* x, std::int64_t n, const F& f) {
  alignas(64) T rest[static_cast<std::size_t>(kSplit<T>)];
  return reduce<Op, T>(n, Mapped<T, F>{x, f, rest});
}
/// Sums f(x).
template <class T, class F>
[[gnu::always_inline]] inline T sum_of(const T* x, std::int64_t n, const F& f) {
  return reduce_of<SumOf>(x, n, f);
}
/// Sums f(a, b).
template <class T, class F>
[[gnu::always_inline]] inline T sum_of(const T* a, const T* b, std::int64_t n, const F& f) {
  alignas(64) T rest[static_cast<std::size_t>(kSplit<T>)];
  return reduce<SumOf, T>(n, MappedPairs<T, F>{a, b, f, rest});
}

/// Returns the largest f(x). For numbers below infinity that are not all 0 it does not depend on the order: then the
/// machine's own maximum is used, which ignores NaN; otherwise the order of reductions.
template <class T, class F>
[[gnu::always_inline]] inline T largest_of(const T* x, std::int64_t n, const F& f) {
  using P = Packet<T>;
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t i = 0;
  const P least(std::numeric_limits<T>::lowest());
  P best[2] = {P(MaxOf::identity<T>), P(MaxOf::identity<T>)}, odd[2] = {P(T(0)), P(T(0))};
  const auto take = [&](int k, const P& v) {
    best[k] = first_max(best[k], v);
    odd[k] = fma(first_max(v, least), P(T(0)), odd[k]);  // NaN for +infinity, too; masked scores are -infinity
  };
  for (; i + 2 * W <= n; i += 2 * W) {
    take(0, f(P::load(x + i)));
    take(1, f(P::load(x + i + W)));
  }
  if (n >= W && i < n) {  // some elements are read twice
    if (i + W <= n) take(0, f(P::load(x + i)));
    take(1, f(P::load(x + n - W)));
  }
  if (n >= W && all(odd[0] + odd[1] == P(T(0)))) {
    const T most = fold<kLanes<T>>(first_max(best[0], best[1]), [](P a, P b) { return first_max(a, b); });
    if (most != T(0)) return most;
  }
  return reduce_of<MaxOf>(x, n, f);
}

/// Returns the largest element, 0 where it is not finite: the shift that keeps exp in range.
template <class T>
T shift(const T* x, std::int64_t n) {
  const T m = largest_of(x, n, [](Packet<T> v) { return v; });
  return std::abs(m) < std::numeric_limits<T>::infinity() ? m : T(0);
}

/// Quotients by one divisor, correctly rounded like those of a division but without one: the product with the inverse
/// and with its error is off by less than a unit of its last place, and a step of Newton's method from there rounds as
/// the division does (Markstein 1990). That holds where the remainder is exact, so the divisor lies within `kLeast` and
/// `kMost`, and the dividend is no smaller than `kTiny`.
template <class T>
class Quotients {
 public:
  static constexpr T kLeast = T(0.5), kMost = T(1 << 20) * T(1 << 20),
                     kTiny = sizeof(T) == 4 ? T(0x1p-60) : T(0x1p-900);
  explicit Quotients(T by) : by_(by), inverse_(T(1) / by_.raw[0]) {
    lacks_ = fma(-by_, inverse_, Packet<T>(T(1))) * inverse_;
  }
  [[gnu::always_inline]] Packet<T> operator()(Packet<T> x) const {
    const Packet<T> q = fma(x, inverse_, x * lacks_);
    return fma(fma(-by_, q, x), inverse_, q);
  }

 private:
  Packet<T> by_, inverse_, lacks_;
};

/// Computes y[i] / by in place. Takes some packets at a time, so that one comparison finds out whether any of them is
/// too small.
template <class T>
[[gnu::always_inline]] inline void divide(T* y, std::int64_t n, T by) {
  using P = Packet<T>;
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t i = 0;
  if constexpr (kRoundsOnce) {
    if (by >= Quotients<T>::kLeast && by <= Quotients<T>::kMost) {
      const Quotients<T> quotient(by);
      for (; i + 4 * W <= n; i += 4 * W) {
        const P e[4] = {P::load(y + i), P::load(y + i + W), P::load(y + i + 2 * W), P::load(y + i + 3 * W)};
        const P least = first_min(first_min(e[0], e[1]), first_min(e[2], e[3]));
        if (any(least < P(Quotients<T>::kTiny))) [[unlikely]] {
          map(y + i, y + i, 4 * W, [all = P(by)](P v) { return v / all; });
          continue;
        }
        for (std::int64_t v = 0; v < 4; ++v) quotient(e[v]).store(y + i + v * W);
      }
    }
  }
  map(y + i, y + i, n - i, [all = P(by)](P e) { return e / all; });
}

/// Computes the softmax of a row; x may be y.
template <class T>
[[gnu::noinline]] void softmax_row(const T* x, T* y, std::int64_t n) {
  const Packet<T> m(shift(x, n));
  const auto f = [m](Packet<T> v) { return exp(v - m); };
  divide(y, n, reduce<SumOf, T>(n, Stored<T, decltype(f)>{x, f, y}));
}
template <class T>
void softmax(const T* x, T* y, const DenseRows& rows) {
  for (std::int64_t r = 0; r < rows.count; ++r, x += rows.n, y += rows.n) softmax_row(x, y, rows.n);
}
/// Computes the weights of rows, which end with whole packets of their lanes: the hidden elements there are -infinity,
/// which adds zeros to sums.
template <class T>
void weights(T* scores, const ScoreRows& rows) {
  const auto seen = [&](std::int64_t r) { return std::min(rows.n, rows.first + r); };
  const auto whole = [](std::int64_t n) { return (n + kSplit<T> - 1) / kSplit<T> * kSplit<T>; };
  const Packet<T> hidden(-std::numeric_limits<T>::infinity());
  for (std::int64_t r = 0; r < rows.count; ++r) {
    T* const row = scores + r * rows.step;
    for (std::int64_t i = whole(seen(r)) - kLanes<T>; i + kLanes < T >> seen(r); i -= kLanes<T>)
      LanesWithin<T>(seen(r) - i, kLanes<T>).store(row + i, hidden);
  }
  for (std::int64_t r = 0; r < rows.count; ++r) {
    T* const row = scores + r * rows.step;
    softmax_row(row, row, whole(seen(r)));
    std::fill(row + seen(r), row + rows.n, T(0));
  }
}

template <class T>
void log_softmax(const T* x, T* y, const DenseRows& rows) {
  const std::int64_t n = rows.n;
  for (std::int64_t r = 0; r < rows.count; ++r, x += n, y += n) {
    const Packet<T> m(shift(x, n));
    const T total = sum_of(x, n, [&](Packet<T> v) { return exp(v - m); });
    const Packet<T> less(one(total, [](Packet<T> v) { return log(v); }));
    map(x, y, n, [&](Packet<T> v) { return v - m - less; });
  }
}

template <class T>
void logsumexp(const T* x, T* y, const DenseRows& rows) {
  for (std::int64_t r = 0; r < rows.count; ++r, x += rows.n) {
    const T m = shift(x, rows.n);
    const T total = sum_of(x, rows.n, [by = Packet<T>(m)](Packet<T> v) { return exp(v - by); });
    y[r] = one(total, [](Packet<T> v) { return log(v); }) + m;
  }
}

template <class T>
T mean(const T* x, std::int64_t n) {
  return reduce_run<SumOf>(x, n) / static_cast<T>(n);
}

template <class T>
struct Normaliser {
  Packet<T> centre, scale;
  [[gnu::always_inline]] Packet<T> operator()(Packet<T> v) const { return (v - centre) * scale; }
};
template <class T>
[[gnu::always_inline]] inline Normaliser<T> normaliser(const T* x, std::int64_t n, T epsilon) {
  const Packet<T> centre(mean(x, n));
  const T squares = sum_of(x, n, [centre](Packet<T> v) { return (v - centre) * (v - centre); });
  return {centre, Packet<T>(T(1) / std::sqrt(squares / static_cast<T>(n) + epsilon))};
}

template <class T>
void layer_norm(const T* x, T* y, T epsilon, const DenseRows& rows) {
  const std::int64_t n = rows.n;
  for (std::int64_t r = 0; r < rows.count; ++r, x += n, y += n) map(x, y, n, normaliser(x, n, epsilon));
}

template <class T>
void softmax_grad(const T* g, const T* y, T* to, const DenseRows& rows) {
  const std::int64_t n = rows.n;
  for (std::int64_t r = 0; r < rows.count; ++r, g += n, y += n, to += n) {
    const Packet<T> total(sum_of(g, y, n, [](Packet<T> c, Packet<T> p) { return c * p; }));
    map(g, y, to, n, [&](Packet<T> c, Packet<T> p) { return p * (c - total); });
  }
}

template <class T>
void log_softmax_grad(const T* g, const T* y, T* to, const DenseRows& rows) {
  const std::int64_t n = rows.n;
  for (std::int64_t r = 0; r < rows.count; ++r, g += n, y += n, to += n) {
    const T sum = reduce_run<SumOf>(g, n);
    const Packet<T> total(sum);
    if (sum == T(0)) {
      map(g, y, to, n, [&](Packet<T> c, Packet<T>) { return c - total; });
      continue;
    }
    map(g, y, to, n, [&](Packet<T> c, Packet<T> l) { return c - exp(l) * total; });
  }
}

template <class T>
void layer_norm_grad(const T* g, const T* x, T* to, T epsilon, const DenseRows& rows) {
  const std::int64_t n = rows.n;
  for (std::int64_t r = 0; r < rows.count; ++r, g += n, x += n, to += n) {
    const Normaliser<T> normal = normaliser(x, n, epsilon);
    const T along = sum_of(g, x, n, [&](Packet<T> c, Packet<T> v) { return c * normal(v); });
    const Packet<T> level(mean(g, n)), slope(along / static_cast<T>(n));
    map(g, x, to, n, [&](Packet<T> c, Packet<T> v) { return (c - level - normal(v) * slope) * normal.scale; });
  }
}

template <class T>
void var(const T* x, T* y, T divisor, const DenseRows& rows) {
  for (std::int64_t r = 0; r < rows.count; ++r, x += rows.n) {
    const Packet<T> centre(mean(x, rows.n));
    const Packet<T> rest(sum_of(x, rows.n, [&](Packet<T> v) { return v - centre; }) / static_cast<T>(rows.n));
    const auto squared = [&](Packet<T> v) { return (v - centre - rest) * (v - centre - rest); };
    y[r] = sum_of(x, rows.n, squared) / divisor;
  }
}

template <class T>
void squares(const T* x, T* y, const DenseRows& rows) {
  for (std::int64_t r = 0; r < rows.count; ++r)
    y[r] = sum_of(x + r * rows.n, rows.n, [](Packet<T> v) { return v * v; });
}
template <class T>
void cubes(const T* x, T* y, const DenseRows& rows) {
  for (std::int64_t r = 0; r < rows.count; ++r)
    y[r] = sum_of(x + r * rows.n, rows.n, [](Packet<T> v) { return abs(v) * (v * v); });
}
template <class T>
void sizes(const T* x, T* y, const DenseRows& rows) {
  for (std::int64_t r = 0; r < rows.count; ++r)
    y[r] = sum_of(x + r * rows.n, rows.n, [](Packet<T> v) { return abs(v); });
}
template <class T>
void largest(const T* x, T* y, const DenseRows& rows) {
  for (std::int64_t r = 0; r < rows.count; ++r)
    y[r] = largest_of(x + r * rows.n, rows.n, [](Packet<T> v) { return abs(v); });
}

template <class T>
bool hide(T* scores, const std::uint8_t* seen, std::int64_t n) {
  unsigned any = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    scores[i] = seen[i] ? scores[i] : -std::numeric_limits<T>::infinity();
    any |= seen[i];
  }
  return any != 0;
}
template <class T>
bool add_mask(T* scores, const T* mask, std::int64_t n) {
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  unsigned any = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const bool seen = mask[i] != kHidden;
    scores[i] = seen ? scores[i] + mask[i] : kHidden;
    any |= seen;
  }
  return any != 0;
}

template <class T>
constexpr RowKernels<T> kernels_of() {
  return {.softmax = softmax<T>,
          .weights = weights<T>,
          .hide = hide<T>,
          .add_mask = add_mask<T>,
          .log_softmax = log_softmax<T>,
          .logsumexp = logsumexp<T>,
          .layer_norm = layer_norm<T>,
          .softmax_grad = softmax_grad<T>,
          .log_softmax_grad = log_softmax_grad<T>,
          .layer_norm_grad = layer_norm_grad<T>,
          .var = var<T>,
          .squares = squares<T>,
          .cubes = cubes<T>,
          .sizes = sizes<T>,
          .largest = largest<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(RowKernels, row_kernels, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
