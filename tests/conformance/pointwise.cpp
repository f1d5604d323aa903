// Conformance of pointwise operations: values over the domain, special values, layouts, derivatives.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>

#include "cases.h"
#include "conformance/oracles/oracle.h"
#include "support/guarded.h"

namespace conformance {
namespace {

using ferrite::RandomKey;

/// The largest error of a kernel: units in the last place, or an absolute amount. Unlisted operations: 4 units.
struct Bound {
  double units = 4;
  double absolute = 0;
};
Bound bound_of(const Primitive& op) {
  static const std::map<std::string_view, Bound> bounds = {
      {"tanh", {3, 0}},
      {"sin", {4, 2e-7}},
      {"cos", {4, 2e-7}},
      {"log1p", {6, 0}},
      {"sigmoid", {6, 0}},
      {"gelu", {40, 3e-7}},
      {"erf", {8, 0}},
      {"softplus", {8, 0}},
      {"digamma", {16, 2e-15}},
      {"trigamma", {8, 0}},  // polygamma(1, x)
      {"sinc", {4, 3e-16}},  // at whole numbers, where the oracle's pi is rounded
      // Sums that cancel near the zeros of a slope or far below 0, and the errors of softplus and tanh.
      {"gelu_tanh", {8, 5e-7}},
      {"gelu_tanh_grad", {16, 3e-6}},
      {"gelu_grad", {40, 3e-6}},
      {"silu_grad", {16, 3e-6}},
      {"mish", {16, 0}},
      {"mish_grad", {16, 3e-6}},
      {"log_sigmoid", {8, 0}},
      {"tanhshrink", {8, 3e-7}},
  };
  const auto it = bounds.find(op.name);
  return it == bounds.end() ? Bound{} : it->second;
}

bool takes(const Primitive& op, Dtype dtype) { return op.block(dtype) != nullptr; }

/// Returns whether an oracle in doubles is valid for this integer case: no overflow.
bool representable(double v, Dtype dtype) {
  if (ferrite::is_float(dtype) || dtype == Dtype::boolean) return true;
  return std::fabs(v) < (dtype == Dtype::i32 ? 2147483647.0 : 9.0e15);
}

bool inside(const ferrite::detail::Range& domain, int arity, const double* operands) {
  for (int j = 0; j < arity; ++j)
    if (!(operands[j] >= domain.low && operands[j] <= domain.high)) return false;
  return true;
}

/// Checks values. For denormal operands and results the functions promise only an absolute bound.
void check_values(const Primitive& op, Dtype dtype) {
  const auto columns = columns_of(op, dtype);
  const std::vector<double> got = doubles(apply(op, operands_of(op, columns, dtype))[0]);
  const Bound bound = bound_of(op);
  const oracles::Oracle& oracle = oracles::of(op);
  const double tiny = dtype == Dtype::f32 ? 2e-38 : 1e-307;
  int failures = 0;
  for (std::size_t i = 0; i < got.size() && failures < 5; ++i) {
    std::string operands;
    double v[3] = {};
    for (std::size_t j = 0; j < columns.size(); ++j) {
      v[j] = columns[j][i];
      operands += " " + std::to_string(v[j]);
    }
    const double exact = oracle.scalar(v);
    if (!representable(exact, dtype)) continue;
    if (op.reference && !inside(oracle.domain, op.arity, v))
      continue;  // an overflow there depends on the composition, so bits are compared
    const bool close =
        ulps(got[i], exact, dtype) <= bound.units || std::fabs(got[i] - exact) <= std::max(bound.absolute, tiny);
    if (!close) ++failures;
    BOOST_TEST(close, op.name << " in " << name_of(dtype) << " of" << operands << ": got " << got[i] << ", exact "
                              << exact << ", " << ulps(got[i], exact, dtype) << " units");
  }
}

Tensor random_operand(const Primitive& op, std::size_t operand, const Shape& shape, Dtype dtype, std::uint32_t call) {
  const Dtype own = operand_dtype(op, operand, dtype);
  const RandomKey key{5, ferrite::stream_of(op.name) + 2 * operand, call};  // the last bit of the hash may not count
  if (own == Dtype::boolean) return ferrite::cast(ferrite::bernoulli(shape, key, 0.5), Dtype::boolean);
  const auto [low, high] = oracles::of(op).domain;
  const Tensor x = ferrite::uniform(shape, key, std::max(low, -9.0), std::min(high, 9.0), Dtype::f64);
  return ferrite::cast(x, own);
}

Tensors random_operands(const Primitive& op, const Shape& shape, Dtype dtype, std::uint32_t call) {
  Tensors in;
  for (std::size_t j = 0; j < static_cast<std::size_t>(op.arity); ++j)
    in.push_back(random_operand(op, j, shape, dtype, call));
  return in;
}

/// Checks rule 1: a value does not depend on its place in a run.
void check_places(const Primitive& op, Dtype dtype) {
  const Tensors in = random_operands(op, {64}, dtype, 1);
  const std::vector<double> whole = doubles(apply(op, in)[0]);
  int failures = 0;
  for (std::int64_t offset = 0; offset < 16; ++offset)
    for (std::int64_t n = 1; n <= 33; ++n) {
      Tensors part;
      for (const Tensor& x : in) part.push_back(ferrite::slice(x, 0, offset, offset + n));
      const std::vector<double> got = doubles(apply(op, part)[0]);
      const std::vector<double> wanted(whole.begin() + offset, whole.begin() + offset + n);
      const std::int64_t at = first_difference(got, wanted);
      if (at >= 0 && ++failures < 3)
        BOOST_TEST(at == -1, op.name << " in " << name_of(dtype) << ": offset " << offset << ", length " << n
                                     << " differs at " << at);
    }
  BOOST_TEST(failures == 0);
}

/// Checks that broadcast, strided, transposed, zero-size and rank-0 operands have the results of contiguous copies, and
/// so do operands in memory of another owner that can neither be written nor be read farther than documented.
void check_layouts(const Primitive& op, Dtype dtype) {
  const std::vector<std::vector<Shape>> patterns = {
      {{3, 5}, {3, 5}, {3, 5}}, {{3, 5}, {5}, {3, 1}}, {{4, 1, 3}, {2, 1}, {1}}, {{}, {2, 3}, {}},
      {{0, 3}, {1, 3}, {3}},    {{}, {}, {}},          {{2, 40}, {2, 1}, {40}},  {{33, 17}, {17}, {33, 1}}};
  std::uint32_t call = 10;
  for (const std::vector<Shape>& shapes : patterns) {
    Shape common;
    Tensors plain;
    for (std::size_t j = 0; j < static_cast<std::size_t>(op.arity); ++j) {
      common = ferrite::broadcast(common, shapes[j], "test");
      plain.push_back(random_operand(op, j, shapes[j], dtype, call++));
    }
    Tensors expanded, strided, frozen, off;
    for (const Tensor& x : plain) {
      expanded.push_back(ferrite::contiguous(ferrite::expand(x, common)));
      strided.push_back(scattered(x));
      frozen.push_back(support::frozen_copy(x));
      off.push_back(support::frozen_copy(x, static_cast<std::size_t>(size_of(x.dtype()))));
    }
    const std::vector<double> wanted = doubles(apply(op, expanded)[0]);
    BOOST_TEST(apply(op, plain)[0].shape().str() == common.str());
    BOOST_TEST(first_difference(doubles(apply(op, plain)[0]), wanted) == -1,
               op.name << " broadcast to " << common.str());
    BOOST_TEST(first_difference(doubles(apply(op, strided)[0]), wanted) == -1, op.name << " strided, " << common.str());
    BOOST_TEST(first_difference(doubles(apply(op, frozen)[0]), wanted) == -1, op.name << " frozen, " << common.str());
    BOOST_TEST(first_difference(doubles(apply(op, off)[0]), wanted) == -1, op.name << " unaligned, " << common.str());
    Tensors turned;
    for (const Tensor& x : expanded)
      turned.push_back(common.rank() < 2 ? x : ferrite::transpose(scattered(ferrite::transpose(x))));
    BOOST_TEST(first_difference(doubles(apply(op, turned)[0]), wanted) == -1,
               op.name << " transposed, " << common.str());
  }
}

/// Checks plans and fusion on all special values, and on operands that are broadcast.
void check_plans(const Primitive& op, Dtype dtype) {
  check_planned(op, operands_of(op, columns_of(op, dtype), dtype), {});
  for (const Shape& narrow : {Shape{5}, Shape{3, 1}, Shape{}}) {
    Tensors in;
    for (std::size_t j = 0; j < static_cast<std::size_t>(op.arity); ++j)
      in.push_back(
          random_operand(op, j, j + 1 == static_cast<std::size_t>(op.arity) ? narrow : Shape{3, 5}, dtype, 90));
    check_planned(op, in, {});
  }
}

/// Returns a point of the interior, away from kinks and, for two operands, from ties.
Tensor interior_point(const Primitive& op, std::size_t operand) {
  const oracles::Oracle& oracle = oracles::of(op);
  const double low = std::max(oracle.domain.low, -2.0);
  const double high = std::min(oracle.domain.high, 2.0);
  std::vector<double> v = ferrite::uniform({6}, {7, ferrite::stream_of(op.name), static_cast<std::uint32_t>(operand)},
                                           low + 0.05, high, Dtype::f64)
                              .to_vector<double>();
  for (double& x : v)
    for (const double kink : oracle.kinks)
      if (std::fabs(x - kink) < 0.2) x = kink + (x < kink && low < kink - 0.2 ? -0.3 : 0.3);
  return Tensor::from(v, {2, 3});
}

void check_gradients(const Primitive& op) {
  if (!op.differentiable()) return;
  const auto arity = static_cast<std::size_t>(op.arity);
  const std::size_t constants = op.name == "where" ? 1 : 0;
  Tensors fixed;
  if (constants) fixed.push_back(Tensor::from({true, false, true, true, false, false}, {2, 3}));
  Tensors points;
  for (std::size_t j = constants; j < arity; ++j) points.push_back(interior_point(op, j));
  const auto f = [&](const Tensors& x) {
    Tensors in = fixed;
    for (const Tensor& t : x) in.push_back(t);
    return apply(op, in)[0];
  };
  const auto report = ferrite::gradcheck(f, points, {.order = 2});
  BOOST_TEST(report.ok, op.name << ": " << report.str());
  BOOST_TEST(report.compared > 0);
  const std::string fault = fault_of_jvp(f, points);
  BOOST_TEST(fault.empty(), op.name << ": " << fault);
  if (arity < 2) return;
  Tensors narrow = points;  // the gradient of a broadcast operand is a sum
  narrow.back() = ferrite::contiguous(ferrite::select(points.back(), 0, 0));
  const auto broadcast = ferrite::gradcheck(f, narrow, {.order = 2});
  BOOST_TEST(broadcast.ok, op.name << " broadcast: " << broadcast.str());
}

/// Checks derivatives at zeros, equal operands and whole numbers, where they exist and which random points never are.
/// Ties of the largest and the smallest are tested in tests/golden/corners_golden_test.cpp, ends of intervals in
/// activations_golden_test.cpp there.
void check_corner_gradients(const Primitive& op) {
  static constexpr std::string_view bend_at_ties[] = {"maximum", "minimum", "softshrink", "hardshrink"};
  if (!op.differentiable() || op.arity > 2 || std::ranges::count(bend_at_ties, op.name)) return;
  const oracles::Oracle& oracle = oracles::of(op);
  std::vector<double> values;
  for (const double x : {0.0, -0.0, 1.0, -1.0, 0.5})
    if (x > oracle.domain.low && x < oracle.domain.high && std::ranges::count(oracle.kinks, x) == 0)
      values.push_back(x);
  std::vector<std::vector<double>> columns(static_cast<std::size_t>(op.arity));
  for (const double a : values)
    for (const double b : values) {
      columns[0].push_back(a);
      if (op.arity == 2) columns[1].push_back(b);
    }
  const auto f = [&](const Tensors& x) { return apply(op, x)[0]; };
  const auto report = ferrite::gradcheck(f, operands_of(op, columns, Dtype::f64), {.order = 2, .directions = 8});
  BOOST_TEST(report.ok, op.name << " at its corners: " << report.str());
}

/// Checks that the gradient at a kink is a number, not an accident of the formula (an infinite slope is one).
void check_kinks(const Primitive& op) {
  const oracles::Oracle& oracle = oracles::of(op);
  for (const double kink : oracle.kinks) {
    if (op.arity != 1 || kink < oracle.domain.low || kink > oracle.domain.high) continue;
    const Tensor x = ferrite::full({}, kink, Dtype::f64);
    const auto slope = ferrite::grad([&](const Tensor& t) { return apply(op, {t})[0]; })(x).item<double>();
    BOOST_TEST(!std::isnan(slope), op.name << " has no gradient at its kink " << kink);
  }
}

}  // namespace

void check_pointwise(const Primitive& op) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64, Dtype::boolean}) {
    if (!takes(op, dtype)) continue;
    check_values(op, dtype);
    check_places(op, dtype);
    check_layouts(op, dtype);
    check_plans(op, dtype);
  }
  BOOST_TEST(difference_from_reference(op, operands_of(op, columns_of(op, Dtype::f32), Dtype::f32)) == -1,
             op.name << " and its composition");
  check_gradients(op);
  check_corner_gradients(op);
  check_kinks(op);
}

}  // namespace conformance
