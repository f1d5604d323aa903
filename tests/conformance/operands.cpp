// The operands with which operations are tested: values of pointwise operations, and those of samples.
#include <cmath>

#include "cases.h"
#include "conformance/oracles/oracle.h"

namespace conformance {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Returns the values to try for an operand: the domain with its ends, and special floats.
std::vector<double> candidates(const Primitive& op, Dtype dtype, bool many) {
  const auto [low, high] = oracles::of(op).domain;
  std::vector<double> v;
  if (dtype == Dtype::boolean) return {0, 1};
  if (!ferrite::is_float(dtype)) return {0, 1, -1, 2, 3, -7, 100, 46340, -46341, std::trunc(low), std::trunc(high)};
  v = {low,   high,   0.0,   -0.0, 1,     -1,    0.5,  kInf, -kInf,  kNan,
       1e-40, -1e-40, 3e-39, 1e38, -1e38, 1e-30, 88.9, -88,  -103.5, 1e5};
  const int n = many ? 4000 : 12;
  for (int i = 0; i <= n; ++i) v.push_back(low + (high - low) * i / n);
  for (double& x : v)
    if (dtype == Dtype::f32) x = static_cast<double>(static_cast<float>(x));
  return v;
}

}  // namespace

Dtype operand_dtype(const Primitive& op, std::size_t operand, Dtype dtype) {
  return op.name == "where" && operand == 0 ? Dtype::boolean : dtype;
}

std::vector<std::vector<double>> columns_of(const Primitive& op, Dtype dtype) {
  const auto arity = static_cast<std::size_t>(op.arity);
  std::vector<std::vector<double>> columns(arity);
  if (arity == 1) {
    columns[0] = candidates(op, dtype, true);
    return columns;
  }
  std::vector<std::size_t> at(arity, 0);
  std::vector<std::vector<double>> lists;
  for (std::size_t j = 0; j < arity; ++j) lists.push_back(candidates(op, operand_dtype(op, j, dtype), false));
  for (;;) {
    for (std::size_t j = 0; j < arity; ++j) columns[j].push_back(lists[j][at[j]]);
    std::size_t j = 0;
    while (j < arity && ++at[j] == lists[j].size()) at[j++] = 0;
    if (j == arity) return columns;
  }
}

Tensors operands_of(const Primitive& op, const std::vector<std::vector<double>>& columns, Dtype dtype) {
  Tensors in;
  for (std::size_t j = 0; j < columns.size(); ++j)
    in.push_back(tensor_of(columns[j], {static_cast<std::int64_t>(columns[j].size())}, operand_dtype(op, j, dtype)));
  return in;
}

Tensors inputs_of(const Primitive& op, const Sample& sample, Dtype real, std::uint32_t call) {
  Tensors in;
  std::size_t next = 0;
  std::size_t next_value = 0;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    Spec s = sample.inputs[i];
    if (ferrite::has_gradient(s.dtype)) {
      const Dtype dtype = ferrite::is_float(s.dtype) ? real : s.dtype;
      s.dtype = ferrite::is_float(s.dtype) ? real : Dtype::f32;
      if (!sample.values.empty()) {
        std::vector<double> v(static_cast<std::size_t>(s.shape.numel()));
        for (double& x : v) x = sample.values[next_value++ % sample.values.size()];
        in.push_back(tensor_of(v, s.shape, dtype));
        continue;
      }
      // Streams that differ in their last bit alone may be the same.
      const ferrite::RandomKey key{3, ferrite::stream_of(op.name) + 2 * i, call};
      const Tensor drawn = ferrite::uniform(s.shape, key, sample.range.low, sample.range.high, s.dtype);
      in.push_back(ferrite::cast(drawn, dtype));
      continue;
    }
    std::vector<double> v(static_cast<std::size_t>(s.shape.numel()));
    for (double& x : v) x = static_cast<double>(sample.indices.at(next++ % sample.indices.size()));
    in.push_back(tensor_of(v, s.shape, s.dtype));
  }
  return in;
}

}  // namespace conformance
