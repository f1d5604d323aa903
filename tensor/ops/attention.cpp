/// Attention: softmax of scaled products of queries and keys times values, and positions by rotation.
#include "ferrite/tensor/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/attention_parts.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite {
namespace detail {

// ---- the composition that defines attention ---------------------------------------------------------------

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// Returns whether query i sees key j of a causal attention [L, S].
Tensor up_to_own(std::int64_t L, std::int64_t S) { return ge(reshape(arange(L), {L, 1}), arange(S)); }

}  // namespace

Tensor product_by_head(const Tensor& a, const Tensor& b, bool grouped) {
  if (!grouped || a.shape()[-3] == b.shape()[-3]) return matmul(a, b);
  const std::int64_t heads = a.shape()[-3], groups = b.shape()[-3];
  Shape split = a.shape();
  split[-3] = groups;
  split.insert(split.rank() - 2, heads / groups);
  const Tensor y = matmul(reshape(a, split), unsqueeze(b, -3));
  Shape joined = y.shape();
  joined.erase(joined.rank() - 3);
  joined[-3] = heads;
  return reshape(y, joined);
}

Tensor of_all_heads(const Tensor& x, std::int64_t heads) {
  if (x.rank() < 3 || x.shape()[-3] == heads) return x;
  Shape joined = x.shape(), split = joined;
  split.insert(split.rank() - 2, heads / joined[-3]);
  joined[-3] = heads;
  return reshape(expand(unsqueeze(x, -3), split), joined);
}

namespace {

/// Returns the softmax of scores over the keys that are seen. Rows that see nothing are computed as if they saw all
/// keys, so that no NaN arises whose gradient is not 0, and are then set to 0. `anything`: hidden scores may be NaN.
Tensor weights_of_scores(Tensor scores, const Tensor& mask, const AttentionAttrs& a, bool anything) {
  const std::int64_t L = scores.shape()[-2], S = scores.shape()[-1];
  if (!mask.defined()) return softmax(a.causal ? where(up_to_own(L, S), scores, kHidden) : scores, -1);
  const bool adds = mask.dtype() != Dtype::boolean;
  Tensor seen = adds ? ne(mask, kHidden) : mask;
  if (a.causal) seen = seen && up_to_own(L, S);
  const Tensor sees = gt(sum(cast(seen, scores.dtype()), {-1}, true), 0);
  if (adds) scores = scores + where(sees, mask, 0);
  if (!adds || a.causal || anything) scores = where(seen || !sees, scores, kHidden);
  return where(sees, softmax(scores, -1), 0);
}

}  // namespace

Tensor composed_weights(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttrs& a) {
  return weights_of_scores(product_by_head(q * a.scale, transpose(k), a.grouped), mask, a, false);
}

Tensor finite_part(const Tensor& x) { return where(isfinite(x), x, 0.0); }

Tensor weights_of_hidden(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttrs& a,
                         const Tensor& counts) {
  if (!mask.defined() && !a.causal) return composed_weights(q, k, mask, a);
  const Tensor scores = product_by_head(q * a.scale, transpose(finite_part(k)), a.grouped);
  Tensor spoils = transpose(any(!isfinite(k), {-1}, true));  // [..., 1, S]
  if (a.grouped) spoils = of_all_heads(spoils, q.shape()[-3]);
  if (counts.defined()) spoils = spoils && counts;
  return weights_of_scores(where(spoils, std::numeric_limits<double>::quiet_NaN(), scores), mask, a, true);
}

// ---- head by head, some queries at a time, so that scores stay in the cache -------------------------------

namespace {

struct AttentionGradient {
  const Tensor &dy, &y, &q, &k, &v;  ///< of any layout
  const Tensor& mask;                ///< may be undefined
  Tensor &dq, &dk, &dv;
};
/// Number of queries whose scores are computed together.
constexpr std::int64_t kQueries = 64;

struct Sizes {
  std::int64_t L, S, E, N, shares, heads;
  std::int64_t step;  ///< distance from the scores of a query to those of the next one
  bool causal;

  Sizes(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionAttrs& a)
      : L(q.shape()[-2]),
        S(k.shape()[-2]),
        E(q.shape()[-1]),
        N(v.shape()[-1]),
        shares(a.grouped ? q.shape()[-3] / k.shape()[-3] : 1),
        heads(q.numel() / (L * E)),
        step(apart(S)),
        causal(a.causal) {}
  /// Returns the number of keys that a block of queries sees.
  std::int64_t seen(std::int64_t first, std::int64_t count) const { return causal ? std::min(S, first + count) : S; }

 private:
  /// Returns a distance of whole lines, an odd number of them where rows are long, so that scores of one key do not
  /// fall into one set of the cache.
  static std::int64_t apart(std::int64_t S) {
    const std::int64_t lines = (S + 15) / 16;
    return 16 * (lines < 32 ? lines : lines | 1);
  }
};

template <class T>
MatrixView<T> transposed(const MatrixView<T>& m) {
  return {m.data, m.col, m.row};
}

/// Returns the matrix of a head of x; `shares` heads read the same one.
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
  /// Prepares a mask, which may be undefined, for the leading axes of q.
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
  /// Returns the offset of the first row of a head.
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
  /// Hides n scores of a row of a head according to the mask. Returns whether any is left.
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
  std::int64_t row_ = 0;  ///< distance from the mask of a query to that of the next one
};

/// A block of queries of a head.
template <class T>
struct Queries {
  std::int64_t first, count, seen;
  T* scaled;          ///< [count, E]
  T* weights;         ///< [count, seen]
  std::int64_t step;  ///< distance from row to row of the weights
};

/// The keys, or values, of a head in the form that the products of all its queries read: by columns, packed if that
/// pays.
template <class T>
class Columns {
 public:
  Columns(const Tensor& x, const Sizes& s)
      : x_(x),
        keys_(s.S),
        width_(x.shape()[-1]),
        shares_(s.shares),
        packs_(std::is_same_v<T, float> && width_ <= kBlockK && s.shares * s.L > kQueries) {
    if (packs_) panels_.emplace((keys_ + 15) / 16 * 16 * width_);
  }
  void go_to(std::int64_t head) {
    if (head / shares_ == group_) return;
    group_ = head / shares_;
    of_head_ = transposed(matrix_of<T>(x_, head, shares_));
    if (packs_) products_in_use.of<T>().pack_panels(keys_, width_, of_head_, panels_->get());
  }
  /// Computes c [rows, seen] = a [rows, width] times the columns that are seen; elements after them in the last line
  /// may change.
  void multiply(std::int64_t rows, std::int64_t seen, const MatrixView<T>& a, T* c, std::int64_t step) {
    const auto& products = products_in_use.of<T>();
    if (!packs_ || a.col != 1) return products.product(rows, seen, width_, a, of_head_, c, step, false);
    products.product_of_panels(rows, keys_, seen, width_, a.data, a.row, panels_->get(), c, step);
  }

 private:
  const Tensor& x_;
  std::int64_t keys_, width_, shares_, group_ = -1;
  bool packs_;
  MatrixView<T> of_head_{};
  std::optional<Room<T>> panels_;
};

/// Scales the queries and computes their weights, which are 0 for a query that sees no key.
template <class T>
void weigh(const Queries<T>& b, const MatrixView<T>& q, Columns<T>& keys, const Mask& mask, std::int64_t of_head,
           const Sizes& s, T scale) {
  for (std::int64_t i = 0; i < b.count; ++i)
    for (std::int64_t e = 0; e < s.E; ++e) b.scaled[i * s.E + e] = q.data[(b.first + i) * q.row + e * q.col] * scale;
  keys.multiply(b.count, b.seen, {b.scaled, s.E, 1}, b.weights, b.step);
  const auto& kernels = rows_in_use.of<T>();
  if (!mask.defined()) return kernels.weights(b.weights, {b.count, b.seen, b.step, s.causal ? b.first + 1 : b.seen});
  for (std::int64_t i = 0; i < b.count; ++i) {
    T* const row = b.weights + i * b.step;
    const std::int64_t own = s.causal ? std::min(b.seen, b.first + i + 1) : b.seen;
    if (mask.apply(of_head, b.first + i, row, own)) {
      kernels.weights(row, {1, b.seen, b.step, own});
    } else {
      std::fill(row, row + b.seen, T(0));
    }
  }
}

// ---- hidden elements that are not finite -------------------------------------------------------------------
//
// A weight of 0 times NaN is NaN, in the products with values and in those of the gradient. Since this is rare, it is
// detected from the results: where they contain NaN, they are computed again from finite operands.

template <class T>
bool has_nan(const Tensor& x) {
  const T* const at = x.data<T>();
  const std::int64_t n = x.numel();
  int any = 0;
  for (std::int64_t i = 0; i < n; ++i) any |= at[i] != at[i] ? 1 : 0;
  return any != 0;
}
/// Returns a dense copy of x with 0 in place of what is not finite.
template <class T>
Tensor zeros_for_infinite(const Tensor& x) {
  return Tensor::build<T>(x.shape(), [values = x.to_vector<T>()](auto out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::isfinite(values[i]) ? values[i] : T(0);
  });
}
/// Adds the contributions of values that are not finite to the queries that see them, which a product without them left
/// out.
template <class T>
void add_not_finite(const Queries<T>& b, const MatrixView<T>& v, std::int64_t N, T* y) {
  for (std::int64_t j = 0; j < b.seen; ++j)
    for (std::int64_t n = 0; n < N; ++n) {
      const T value = v.data[j * v.row + n * v.col];
      if (std::isfinite(value)) continue;
      for (std::int64_t i = 0; i < b.count; ++i)
        if (const T weight = b.weights[i * b.step + j]; weight != T(0)) y[i * N + n] += weight * value;
    }
}

/// Computes y of all heads. `all` holds the values, where `v` is their finite part.
template <class T>
void run(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask, const Sizes& s, T scale, T* y,
         const Tensor* all = nullptr) {
  in_shares(s.heads, 2 * s.L * s.S, [&](std::int64_t begin, std::int64_t count) {
    Room<T> queries(kQueries * s.E), weights(kQueries * s.step);
    Columns<T> keys(k, s);
    for (std::int64_t head = begin; head < begin + count; ++head) {
      keys.go_to(head);
      const std::int64_t of_head = mask.defined() ? mask.begin_of(head) : 0;
      for (std::int64_t first = 0; first < s.L; first += kQueries) {
        const std::int64_t rows = std::min(kQueries, s.L - first);
        const Queries<T> b{first, rows, s.seen(first, rows), queries.get(), weights.get(), s.step};
        weigh(b, matrix_of<T>(q, head, 1), keys, mask, of_head, s, scale);
        products_in_use.of<T>().product(b.count, s.N, b.seen, {b.weights, b.step, 1}, matrix_of<T>(v, head, s.shares),
                                        y + (head * s.L + first) * s.N, s.N, false);
        if (all) add_not_finite(b, matrix_of<T>(*all, head, s.shares), s.N, y + (head * s.L + first) * s.N);
      }
    }
  });
}

/// Returns a . b of rows of length n, in eight sums.
template <class T>
T dot(const MatrixView<T>& a, const MatrixView<T>& b, std::int64_t row, std::int64_t n) {
  T sums[8] = {};
  for (std::int64_t j = 0; j < n; ++j) sums[j % 8] += a.data[row * a.row + j * a.col] * b.data[row * b.row + j * b.col];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/// The destinations of the gradients of a head.
template <class T>
struct Gradients {
  T *dq, *dk, *dv;
};

/// The workspace of the blocks of queries of a thread.
template <class T>
struct BackwardRoom {
  explicit BackwardRoom(const AttentionGradient& g, const Sizes& s)
      : scaled(kQueries * s.E),
        weights(kQueries * s.step),
        of_scores(kQueries * s.step),
        keys(g.k, s),
        values(g.v, s) {}
  Room<T> scaled, weights, of_scores;
  Columns<T> keys, values;
};

template <class T>
void run_back(const AttentionGradient& g, const Mask& mask, std::int64_t head, const Sizes& s, T scale,
              const Gradients<T>& to, BackwardRoom<T>& room, bool again) {
  const auto& product = products_in_use.of<T>().product;
  const MatrixView<T> q = matrix_of<T>(g.q, head, 1), dy = matrix_of<T>(g.dy, head, 1), y = matrix_of<T>(g.y, head, 1),
                      k = matrix_of<T>(g.k, head, s.shares);
  const std::int64_t of_head = mask.defined() ? mask.begin_of(head) : 0;
  T* const of_scores = room.of_scores.get();
  room.keys.go_to(head), room.values.go_to(head);
  for (std::int64_t first = 0; first < s.L; first += kQueries) {
    const std::int64_t rows = std::min(kQueries, s.L - first);
    const Queries<T> b{first, rows, s.seen(first, rows), room.scaled.get(), room.weights.get(), s.step};
    weigh(b, q, room.keys, mask, of_head, s, scale);
    const MatrixView<T> cotangent{dy.data + first * dy.row, dy.row, dy.col};
    room.values.multiply(rows, b.seen, cotangent, of_scores, s.step);
    for (std::int64_t i = 0; i < rows; ++i) {
      const T along = dot(dy, y, first + i, s.N);
      T* const d = of_scores + i * s.step;
      const T* const p = b.weights + i * s.step;
      for (std::int64_t j = 0; j < b.seen; ++j) d[j] = p[j] * (d[j] - along);
      for (std::int64_t j = 0; again && j < b.seen; ++j)
        if (p[j] == T(0)) d[j] = 0;
    }
    T* const dq = to.dq + first * s.E;
    product(rows, s.E, b.seen, {of_scores, s.step, 1}, k, dq, s.E, false);
    for (std::int64_t i = 0; i < rows * s.E; ++i) dq[i] *= scale;
    product(b.seen, s.E, rows, {of_scores, 1, s.step}, {b.scaled, s.E, 1}, to.dk, s.E, true);
    product(b.seen, s.N, rows, {b.weights, 1, s.step}, cotangent, to.dv, s.N, true);
  }
}

/// Computes the gradients of all heads; heads that share keys are processed consecutively.
template <class T>
void run_back(const AttentionGradient& g, const Sizes& s, T scale, bool again = false) {
  const Mask mask(g.mask, g.q, s.S);
  T *const dq = Writer::data<T>(g.dq), *const dk = Writer::data<T>(g.dk), *const dv = Writer::data<T>(g.dv);
  in_shares(s.heads / s.shares, 5 * s.shares * s.L * s.S, [&](std::int64_t begin, std::int64_t count) {
    BackwardRoom<T> room(g, s);
    for (std::int64_t group = begin; group < begin + count; ++group) {
      T *const keys = dk + group * s.S * s.E, *const values = dv + group * s.S * s.N;
      std::fill_n(keys, s.S * s.E, T(0));
      std::fill_n(values, s.S * s.N, T(0));
      for (std::int64_t head = group * s.shares; head < (group + 1) * s.shares; ++head)
        run_back<T>(g, mask, head, s, scale, {dq + head * s.L * s.E, keys, values}, room, again);
    }
  });
}

/// Returns y with zeros in the rows that have no cotangent.
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
  run<T>(q, k, zeros_for_infinite<T>(v), mask, s, scale, Writer::data<T>(y), &v);
}

template <class T>
void run_back_of(const AttentionGradient& g, const Sizes& s, T scale) {
  run_back<T>(g, s, scale);
  if (!s.causal && !g.mask.defined()) return;
  if (!has_nan<T>(g.dq) && !has_nan<T>(g.dk) && !has_nan<T>(g.dv)) return;
  const Tensor y = with_cotangent<T>(g.y, g.dy), q = zeros_for_infinite<T>(g.q), k = zeros_for_infinite<T>(g.k),
               v = zeros_for_infinite<T>(g.v);
  run_back<T>({g.dy, y, q, k, v, g.mask, g.dq, g.dk, g.dv}, s, scale, true);
}

/// Computes y from q, k and v of any layout, and a mask that broadcasts to the scores or is undefined. With `causal`,
/// keys that are hidden from all queries of a block are not read. The bits are those of the composition where hidden
/// values are finite: what is hidden adds zeros to the ends of the same sums. Where they are not, the bits are those
/// with zeros in their place.
void run_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionAttrs& a,
                   Tensor& y) {
  const Sizes s(q, k, v, a);
  const Mask hides(mask, q, s.S);
  if (q.dtype() == Dtype::f32) return run_of<float>(q, k, v, hides, s, static_cast<float>(a.scale), y);
  run_of<double>(q, k, v, hides, s, a.scale, y);
}

/// Computes the gradients from weights that are recomputed: dS = P (dP - dy . y) for dP = dy v^T; then dq = scale dS k,
/// dk = dS^T (scale q), dv = P^T dy, summed over queries in ascending blocks.
void run_attention_grad(const AttentionGradient& g, const AttentionAttrs& a) {
  const Sizes s(g.q, g.k, g.v, a);
  if (g.q.dtype() == Dtype::f32) return run_back_of<float>(g, s, static_cast<float>(a.scale));
  run_back_of<double>(g, s, a.scale);
}

// ---- as one operation, and its gradient, which recomputes scores -------------------------------------------

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

/// Returns the gradients of q, k, v and the scores from dy, y, q, k, v and perhaps a mask, in operations. Values that
/// are not finite show in the results of queries that see them, which are not finite either.
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

// ---- the public functions: masks, grouped queries, positions by rotation ----------------------------------

namespace {

/// Returns the axes before the last `last`.
Shape leading(const Shape& s, int last) {
  Shape lead;
  for (int i = 0; i + last < s.rank(); ++i) lead.push_back(s[i]);
  return lead;
}

/// Returns q, k and v with the leading axes that theirs broadcast to, as views.
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
    return product_by_head(composed_weights(in[0], in[1], mask, a), in[2], a.grouped);  // an operand is empty
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

/// Returns the constants of a call. Throws as the declarations say.
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

/// Checks that a mask does not make the scores larger.
void check_mask(std::string_view where, const Tensor& mask, Shape scores) {
  const Shape own = mask.shape();
  bool fits = own.rank() <= scores.rank();
  for (int i = 1; fits && i <= own.rank(); ++i) fits = own[-i] == 1 || own[-i] == scores[-i];
  if (!fits) throw_shape(where, "the mask " + own.str() + " does not broadcast to the scores " + scores.str());
}

/// Returns the shape of the scores of q and k, [..., H, L, S].
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
