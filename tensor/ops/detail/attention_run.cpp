/// Attention that nothing records: head by head, some queries at a time, so that scores stay in the cache.
#include "ferrite/tensor/ops/detail/attention_run.h"

#include <algorithm>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/room.h"
#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/ops/detail/along_axis.h"

namespace ferrite::detail {
namespace {

/// Queries whose scores are computed together.
constexpr std::int64_t kQueries = 64;

struct Sizes {
  std::int64_t L, S, E, N;
  bool causal;
};

/// Where the matrix of a head begins; `shares` queries' heads read one of x's.
std::int64_t first_of(const Tensor& x, const Shape& lead, std::int64_t head, std::int64_t shares) {
  std::int64_t at = 0;
  for (int i = lead.rank() - 1; i >= 0; --i) {
    const std::int64_t index = head % lead[i];
    at += (i == lead.rank() - 1 ? index / shares : index) * x.strides()[i];
    head /= lead[i];
  }
  return at;
}

template <class T>
struct Head {
  MatrixView<T> q, k, v;  ///< k by columns [E, S]
  T* y;                   ///< [L, N]
};

/// Memory for some queries: scaled [kQueries, E], and their scores [kQueries, S].
template <class T>
void run_head(const Head<T>& h, const Sizes& s, T scale, T* queries, T* scores) {
  const auto& product = kernels().floats<T>().product;
  const auto& softmax = rows_in_use.get().template of<T>().softmax;
  for (std::int64_t first = 0; first < s.L; first += kQueries) {
    const std::int64_t count = std::min(kQueries, s.L - first), seen = s.causal ? std::min(s.S, first + count) : s.S;
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t e = 0; e < s.E; ++e)
        queries[i * s.E + e] = h.q.data[(first + i) * h.q.row + e * h.q.col] * scale;
    product(count, seen, s.E, {queries, s.E, 1}, h.k, scores, seen, false);
    if (!s.causal) softmax(scores, scores, {count, seen});
    for (std::int64_t i = 0; s.causal && i < count; ++i) {
      T* const row = scores + i * seen;
      const std::int64_t own = std::min(seen, first + i + 1);
      softmax(row, row, {1, own});
      std::fill(row + own, row + seen, T(0));
    }
    product(count, s.N, seen, {scores, seen, 1}, h.v, h.y + first * s.N, s.N, false);
  }
}

template <class T>
void run_heads(const Tensor& q, const Tensor& k, const Tensor& v, const Shape& lead, const Sizes& s,
               std::int64_t shares, double scale, Tensor& y) {
  T* const to = Writer::data<T>(y);
  in_shares(lead.numel(), 2 * s.L * s.S, [&](std::int64_t begin, std::int64_t count) {
    Room<T> queries(kQueries * s.E), scores(kQueries * s.S);
    for (std::int64_t head = begin; head < begin + count; ++head) {
      const auto matrix = [&](const Tensor& x, std::int64_t of) {
        return MatrixView<T>{x.data<T>() + first_of(x, lead, head, of), x.strides()[-2], x.strides()[-1]};
      };
      const MatrixView<T> by_rows = matrix(k, shares);
      run_head<T>({matrix(q, 1), {by_rows.data, by_rows.col, by_rows.row}, matrix(v, shares), to + head * s.L * s.N}, s,
                  static_cast<T>(scale), queries.get(), scores.get());
    }
  });
}

}  // namespace

Tensor run_attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, bool causal, bool grouped) {
  const int rank = q.rank();
  const Sizes s{q.shape()[-2], k.shape()[-2], q.shape()[-1], v.shape()[-1], causal};
  for (const Tensor* x : {&q, &k, &v})
    if (x->is_abstract() || x->rank() != rank || x->numel() == 0) return {};
  Shape lead, result;
  std::int64_t shares = 1;
  for (int i = 0; i < rank - 2; ++i) {
    const bool heads = grouped && i == rank - 3;
    if (heads) shares = q.shape()[i] / k.shape()[i];
    if (k.shape()[i] * (heads ? shares : 1) != q.shape()[i] || v.shape()[i] != k.shape()[i]) return {};
    lead.push_back(q.shape()[i]);
  }
  result = lead;
  result.push_back(s.L);
  result.push_back(s.N);
  Tensor y = Tensor::empty({result, q.dtype()});
  q.dtype() == Dtype::f32 ? run_heads<float>(q, k, v, lead, s, shares, scale, y)
                          : run_heads<double>(q, k, v, lead, s, shares, scale, y);
  return y;
}

}  // namespace ferrite::detail
