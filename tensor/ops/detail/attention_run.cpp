/// Attention and its gradient head by head, some queries at a time, so that scores stay in the cache.
#include "ferrite/tensor/ops/detail/attention_run.h"

#include <algorithm>
#include <cmath>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/room.h"
#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/ops/detail/along_axis.h"

namespace ferrite::detail {
namespace {

/// Queries whose scores are computed together.
constexpr std::int64_t kQueries = 64;

struct Sizes {
  std::int64_t L, S, E, N, shares, heads;
  bool causal;

  Sizes(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionAttrs& a)
      : L(q.shape()[-2]),
        S(k.shape()[-2]),
        E(q.shape()[-1]),
        N(v.shape()[-1]),
        shares(a.grouped ? q.shape()[-3] / k.shape()[-3] : 1),
        heads(q.numel() / (L * E)),
        causal(a.causal) {}
  /// How many keys a block of queries sees.
  std::int64_t seen(std::int64_t first, std::int64_t count) const { return causal ? std::min(S, first + count) : S; }
};

template <class T>
MatrixView<T> transposed(const MatrixView<T>& m) {
  return {m.data, m.col, m.row};
}

/// The matrix of a head of x; `shares` heads read one.
template <class T>
MatrixView<T> matrix_of(const Tensor& x, std::int64_t head, std::int64_t shares) {
  const int rank = x.rank();
  head /= shares;
  std::int64_t at = 0;
  for (int i = rank - 3; i >= 0; --i) {
    at += head % x.shape()[i] * x.strides()[i];
    head /= x.shape()[i];
  }
  return {x.data<T>() + at, x.strides()[rank - 2], x.strides()[rank - 1]};
}

/// A mask of the scores [..., H, L, S]; it broadcasts to them.
class Mask {
 public:
  /// The mask may be undefined. q tells the leading axes.
  Mask(const Tensor& mask, const Tensor& q, std::int64_t keys) : lead_(q.shape()) {
    if (!mask.defined()) return;
    Shape dense = mask.shape();
    if (dense.rank() == 0) dense.push_back(1);
    dense[-1] = keys;
    mask_ = dense == mask.shape() && mask.strides()[mask.rank() - 1] == 1 ? mask : contiguous(expand(mask, dense));
    const int rank = mask_.rank();
    row_ = rank > 1 && mask_.shape()[-2] > 1 ? mask_.strides()[rank - 2] : 0;
  }
  bool defined() const { return mask_.defined(); }
  /// The first row of a head.
  std::int64_t begin_of(std::int64_t head) const {
    const int extra = lead_.rank() - mask_.rank();
    std::int64_t at = 0;
    for (int i = lead_.rank() - 3; i >= 0; --i) {
      const int own = i - extra;
      if (own >= 0 && mask_.shape()[own] > 1) at += head % lead_[i] * mask_.strides()[own];
      head /= lead_[i];
    }
    return at;
  }
  /// Hides n scores of a row of a head from what the mask says; whether any is left.
  template <class T>
  bool apply(std::int64_t begin, std::int64_t row, T* scores, std::int64_t n) const {
    const auto& rows = rows_in_use.of<T>();
    const std::int64_t at = begin + row * row_;
    if (mask_.dtype() != Dtype::boolean) return rows.add_mask(scores, mask_.data<T>() + at, n);
    return rows.hide(scores, reinterpret_cast<const std::uint8_t*>(mask_.raw()) + at, n);
  }

 private:
  Shape lead_;
  Tensor mask_;
  std::int64_t row_ = 0;  ///< from the mask of a query to that of the next one
};

/// A block of queries of a head.
template <class T>
struct Queries {
  std::int64_t first, count, seen;
  T* scaled;   ///< [count, E]
  T* weights;  ///< [count, seen]
};

/// Scales the queries and computes their weights: 0 of those that see no key.
template <class T>
void weigh(const Queries<T>& b, const MatrixView<T>& q, const MatrixView<T>& k, const Mask& mask, std::int64_t of_head,
           const Sizes& s, T scale) {
  for (std::int64_t i = 0; i < b.count; ++i)
    for (std::int64_t e = 0; e < s.E; ++e) b.scaled[i * s.E + e] = q.data[(b.first + i) * q.row + e * q.col] * scale;
  products_in_use.of<T>().product(b.count, b.seen, s.E, {b.scaled, s.E, 1}, transposed(k), b.weights, b.seen, false);
  const auto& softmax = rows_in_use.of<T>().softmax;
  if (!s.causal && !mask.defined()) return softmax(b.weights, b.weights, {b.count, b.seen});
  for (std::int64_t i = 0; i < b.count; ++i) {
    T* const row = b.weights + i * b.seen;
    std::int64_t own = s.causal ? std::min(b.seen, b.first + i + 1) : b.seen;
    if (mask.defined() && !mask.apply(of_head, b.first + i, row, own)) own = 0;
    if (own > 0) softmax(row, row, {1, own});
    std::fill(row + own, row + b.seen, T(0));
  }
}

// ---- what is hidden and not finite ---------------------------------------------------------------------------
//
// A weight of 0 times NaN is NaN, in the products with values and in those of the gradient. It is rare, and so the
// results tell: where NaN is among them, they are computed again from finite operands.

template <class T>
bool has_nan(const Tensor& x) {
  const T* const at = x.data<T>();
  bool any = false;
  for (std::int64_t i = 0; i < x.numel(); ++i) any |= at[i] != at[i];
  return any;
}
/// A dense copy of x, what is not finite 0.
template <class T>
Tensor finite_part(const Tensor& x) {
  return Tensor::build<T>(x.shape(), [values = x.to_vector<T>()](auto out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::isfinite(values[i]) ? values[i] : T(0);
  });
}
/// Adds what values that are not finite give to the queries that see them, which a product without them left out.
template <class T>
void add_not_finite(const Queries<T>& b, const MatrixView<T>& v, std::int64_t N, T* y) {
  for (std::int64_t j = 0; j < b.seen; ++j)
    for (std::int64_t n = 0; n < N; ++n) {
      const T value = v.data[j * v.row + n * v.col];
      if (std::isfinite(value)) continue;
      for (std::int64_t i = 0; i < b.count; ++i)
        if (const T weight = b.weights[i * b.seen + j]; weight != T(0)) y[i * N + n] += weight * value;
    }
}

/// `all`: the values, where `v` is their finite part.
template <class T>
void run(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask, const Sizes& s, T scale, T* y,
         const Tensor* all = nullptr) {
  in_shares(s.heads, 2 * s.L * s.S, [&](std::int64_t begin, std::int64_t count) {
    Room<T> queries(kQueries * s.E), weights(kQueries * s.S);
    for (std::int64_t head = begin; head < begin + count; ++head) {
      const std::int64_t of_head = mask.defined() ? mask.begin_of(head) : 0;
      for (std::int64_t first = 0; first < s.L; first += kQueries) {
        const std::int64_t rows = std::min(kQueries, s.L - first);
        const Queries<T> b{first, rows, s.seen(first, rows), queries.get(), weights.get()};
        weigh(b, matrix_of<T>(q, head, 1), matrix_of<T>(k, head, s.shares), mask, of_head, s, scale);
        products_in_use.of<T>().product(b.count, s.N, b.seen, {b.weights, b.seen, 1}, matrix_of<T>(v, head, s.shares),
                                        y + (head * s.L + first) * s.N, s.N, false);
        if (all) add_not_finite(b, matrix_of<T>(*all, head, s.shares), s.N, y + (head * s.L + first) * s.N);
      }
    }
  });
}

/// a . b of rows n long, by eight sums.
template <class T>
T dot(const MatrixView<T>& a, const MatrixView<T>& b, std::int64_t row, std::int64_t n) {
  T sums[8] = {};
  for (std::int64_t j = 0; j < n; ++j) sums[j % 8] += a.data[row * a.row + j * a.col] * b.data[row * b.row + j * b.col];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/// Where the gradients of a head are written.
template <class T>
struct Gradients {
  T *dq, *dk, *dv;
};

template <class T>
void run_back(const AttentionGradient& g, const Mask& mask, std::int64_t head, const Sizes& s, T scale,
              const Gradients<T>& to, T* scaled, T* weights, T* of_scores, bool again) {
  const auto& product = products_in_use.of<T>().product;
  const MatrixView<T> q = matrix_of<T>(g.q, head, 1), dy = matrix_of<T>(g.dy, head, 1), y = matrix_of<T>(g.y, head, 1),
                      k = matrix_of<T>(g.k, head, s.shares), v = matrix_of<T>(g.v, head, s.shares);
  const std::int64_t of_head = mask.defined() ? mask.begin_of(head) : 0;
  for (std::int64_t first = 0; first < s.L; first += kQueries) {
    const std::int64_t rows = std::min(kQueries, s.L - first);
    const Queries<T> b{first, rows, s.seen(first, rows), scaled, weights};
    weigh(b, q, k, mask, of_head, s, scale);
    const MatrixView<T> cotangent{dy.data + first * dy.row, dy.row, dy.col};
    product(rows, b.seen, s.N, cotangent, transposed(v), of_scores, b.seen, false);
    for (std::int64_t i = 0; i < rows; ++i) {
      const T along = dot(dy, y, first + i, s.N);
      T* const d = of_scores + i * b.seen;
      const T* const p = weights + i * b.seen;
      for (std::int64_t j = 0; j < b.seen; ++j) d[j] = p[j] * (d[j] - along);
      for (std::int64_t j = 0; again && j < b.seen; ++j)
        if (p[j] == T(0)) d[j] = 0;
    }
    T* const dq = to.dq + first * s.E;
    product(rows, s.E, b.seen, {of_scores, b.seen, 1}, k, dq, s.E, false);
    for (std::int64_t i = 0; i < rows * s.E; ++i) dq[i] *= scale;
    product(b.seen, s.E, rows, {of_scores, 1, b.seen}, {scaled, s.E, 1}, to.dk, s.E, true);
    product(b.seen, s.N, rows, {weights, 1, b.seen}, cotangent, to.dv, s.N, true);
  }
}

/// Heads that share keys come one after the other.
template <class T>
void run_back(const AttentionGradient& g, const Sizes& s, T scale, bool again = false) {
  const Mask mask(g.mask, g.q, s.S);
  T *const dq = Writer::data<T>(g.dq), *const dk = Writer::data<T>(g.dk), *const dv = Writer::data<T>(g.dv);
  in_shares(s.heads / s.shares, 5 * s.shares * s.L * s.S, [&](std::int64_t begin, std::int64_t count) {
    Room<T> scaled(kQueries * s.E), weights(kQueries * s.S), of_scores(kQueries * s.S);
    for (std::int64_t group = begin; group < begin + count; ++group) {
      T *const keys = dk + group * s.S * s.E, *const values = dv + group * s.S * s.N;
      std::fill_n(keys, s.S * s.E, T(0));
      std::fill_n(values, s.S * s.N, T(0));
      for (std::int64_t head = group * s.shares; head < (group + 1) * s.shares; ++head)
        run_back<T>(g, mask, head, s, scale, {dq + head * s.L * s.E, keys, values}, scaled.get(), weights.get(),
                    of_scores.get(), again);
    }
  });
}

/// y without the rows that have no cotangent.
template <class T>
Tensor with_cotangent(const Tensor& y, const Tensor& dy) {
  const auto N = static_cast<std::size_t>(y.shape()[-1]);
  return Tensor::build<T>(y.shape(), [&, results = y.to_vector<T>(), g = dy.to_vector<T>()](auto out) {
    for (std::size_t row = 0; row < out.size(); row += N) {
      bool any = false;
      for (std::size_t n = row; n < row + N; ++n) any |= g[n] != T(0);
      for (std::size_t n = row; n < row + N; ++n) out[n] = any ? results[n] : T(0);
    }
  });
}

template <class T>
void run_of(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask, const Sizes& s, T scale, Tensor& y) {
  run<T>(q, k, v, mask, s, scale, Writer::data<T>(y));
  if ((!s.causal && !mask.defined()) || !has_nan<T>(y)) return;
  run<T>(q, k, finite_part<T>(v), mask, s, scale, Writer::data<T>(y), &v);
}

template <class T>
void run_back_of(const AttentionGradient& g, const Sizes& s, T scale) {
  run_back<T>(g, s, scale);
  if (!s.causal && !g.mask.defined()) return;
  if (!has_nan<T>(g.dq) && !has_nan<T>(g.dk) && !has_nan<T>(g.dv)) return;
  const Tensor y = with_cotangent<T>(g.y, g.dy), q = finite_part<T>(g.q), k = finite_part<T>(g.k),
               v = finite_part<T>(g.v);
  run_back<T>({g.dy, y, q, k, v, g.mask, g.dq, g.dk, g.dv}, s, scale, true);
}

}  // namespace

void run_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionAttrs& a,
                   Tensor& y) {
  const Sizes s(q, k, v, a);
  const Mask hides(mask, q, s.S);
  if (q.dtype() == Dtype::f32) return run_of<float>(q, k, v, hides, s, static_cast<float>(a.scale), y);
  run_of<double>(q, k, v, hides, s, a.scale, y);
}

void run_attention_grad(const AttentionGradient& g, const AttentionAttrs& a) {
  const Sizes s(g.q, g.k, g.v, a);
  if (g.q.dtype() == Dtype::f32) return run_back_of<float>(g, s, static_cast<float>(a.scale));
  run_back_of<double>(g, s, a.scale);
}

}  // namespace ferrite::detail
