#pragma once
/// Helpers of the oracles of attention.
#include <cmath>
#include <limits>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/attention_parts.h"

namespace oracles {

/// The score of a hidden key.
inline constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// Returns element [lead, row, column] of a dense tensor, each head of which `heads` of queries share.
inline double element_of(const Dense& x, const Shape& lead, std::int64_t heads, std::int64_t row, std::int64_t column) {
  Shape at = lead;
  if (at.rank() > 0 && x.shape[-3] != heads) at[-1] /= heads / x.shape[-3];
  at.push_back(row);
  at.push_back(column);
  return x.at(at);
}

/// Returns the weights of query i; the mask may be null.
inline std::vector<double> query_weights(const Dense& queries, const Dense& keys, const Dense* mask,
                                         const AttentionAttrs& a, const Shape& lead, std::int64_t i) {
  const Shape &q = queries.shape, &k = keys.shape;
  const std::int64_t heads = heads_of(q);
  std::vector<double> w(static_cast<std::size_t>(k[-2]));
  double largest = kHidden, total = 0;
  for (std::int64_t j = 0; j < k[-2]; ++j) {
    double s = 0;
    for (std::int64_t e = 0; e < q[-1]; ++e)
      s += element_of(queries, lead, heads, i, e) * element_of(keys, lead, heads, j, e);
    s *= a.scale;
    Shape at = lead;
    at.push_back(i);
    at.push_back(j);
    const double m = mask ? mask->broadcast_at(at) : 0;
    if (mask) s = mask->dtype == Dtype::boolean ? (m != 0 ? s : kHidden) : s + m;
    if (a.causal && j > i) s = kHidden;
    w[static_cast<std::size_t>(j)] = s;
    largest = std::max(largest, s);
  }
  for (double& s : w) total += s = s == kHidden ? 0 : std::exp(s - largest);
  if (total > 0)
    for (double& s : w) s /= total;
  return w;
}

/// Returns the leading axes of an index of a result, without its last two.
inline Shape lead_of(const Shape& index) {
  Shape lead = index;
  lead.erase(lead.rank() - 1);
  lead.erase(lead.rank() - 1);
  return lead;
}

}  // namespace oracles
