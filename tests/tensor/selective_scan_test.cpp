// The selective scan and its gradients: compared with mambapy, in pieces, row by row, with threads, padding and resets.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "tensor/selective_scan_cases.h"

using namespace ferrite;
using namespace selective_scan_cases;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Dtype kFloats[] = {Dtype::f32, Dtype::f64};
const std::string kCases[] = {"one", "batch", "wide", "long", "usual"};

/// Returns one row of the operands.
Operands row(const Operands& o, std::int64_t b) {
  Operands one = o;
  for (Tensor* t : {&one.x, &one.delta, &one.B, &one.C, &one.options.state, &one.options.lengths, &one.options.resets})
    if (t->defined()) *t = slice(*t, 0, b, b + 1);
  return one;
}

/// Returns the gradients of the mean of squares of y and of the last state, by x, delta, A, B, C and, if given, D and
/// the state.
Tensors gradients(Operands o) {
  Tape tape;
  Tensors wrt;
  for (Tensor* t : {&o.x, &o.delta, &o.A, &o.B, &o.C, &o.D, &o.options.state})
    if (t->defined()) {
      *t = tape.watch(*t);
      wrt.push_back(*t);
    }
  const SelectiveScan out = o.run();
  return tape.grad(sum(square(out.y)) + sum(square(out.state)), std::span<const Tensor>(wrt.data(), wrt.size()));
}

void check_identical(const Tensors& a, const Tensors& b, const std::string& what) {
  BOOST_REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); ++k) BOOST_TEST(support::identical(a[k], b[k]), what << " " << k);
}

struct ThreadsInTest {
  explicit ThreadsInTest(int n) { set_threads(n); }
  ~ThreadsInTest() { set_threads(1); }
};

/// Computes y and the last state step by step, in doubles.
struct Loop {
  std::vector<double> y, state;

  explicit Loop(const Operands& o) {
    const auto values = [](const Tensor& t) {
      const Tensor all = contiguous(cast(t, Dtype::f64));
      const auto v = all.values<double>();
      return std::vector<double>(v.begin(), v.end());
    };
    const auto x = values(o.x), delta = values(o.delta), A = values(o.A), B = values(o.B), C = values(o.C),
               D = values(o.D);
    state = values(o.options.state);
    const auto rows = static_cast<std::size_t>(o.x.shape()[0]), T = static_cast<std::size_t>(o.x.shape()[1]),
               channels = D.size(), states = A.size() / channels;
    for (std::size_t i = 0; i < rows * T; ++i)
      for (std::size_t d = 0; d < channels; ++d) {
        const double u = delta[i * channels + d] * x[i * channels + d];
        double sum = D[d] * x[i * channels + d];
        for (std::size_t n = 0; n < states; ++n) {
          double& h = state[(i / T * channels + d) * states + n];
          h = std::exp(delta[i * channels + d] * A[d * states + n]) * h + u * B[i * states + n];
          sum += h * C[i * states + n];
        }
        y.push_back(sum);
      }
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(selective_scan_operation)

/// Gradients of first and second order are compared, too: tests/data/make_selective_scan_fixtures.py.
BOOST_AUTO_TEST_CASE(it_is_the_scan_of_mambapy) {
  const io::TensorFile file = support::fixture("selective_scan.safetensors");
  for (const Dtype dtype : kFloats)
    for (const std::string& name : kCases) {
      const auto get = [&](const std::string& what) { return cast(file.tensor(name + "/" + what), dtype); };
      const auto wanted = [&](const std::string& what) { return file.tensor(name + "/" + what); };
      const double most = dtype == Dtype::f32 ? 1e-6 : 1e-12;
      Tape tape;
      Tensors in;
      for (int k = 0; k < 6; ++k) in.push_back(tape.watch(get("in" + std::to_string(k))));
      const Tensor y = selective_scan(in[0], in[1], in[2], in[3], in[4], in[5]);
      BOOST_TEST(support::within(cast(y, Dtype::f64), wanted("out"), most), name);
      const Tensors g = tape.grad(y, std::span<const Tensor>(in.data(), in.size()), {.create_graph = true}, get("cot"));
      Tensor total;
      for (std::size_t k = 0; k < 6; ++k) {
        const std::string number = std::to_string(k);
        BOOST_TEST(support::within(cast(g[k], Dtype::f64), wanted("g" + number), most), name << " gradient " << k);
        const Tensor part = sum(g[k] * get("v" + number));
        total = total.defined() ? total + part : part;
      }
      const Tensors h = tape.grad(total, std::span<const Tensor>(in.data(), in.size()));
      for (std::size_t k = 0; k < 6; ++k)
        BOOST_TEST(
            support::within(cast(h[k], Dtype::f64), wanted("h" + std::to_string(k)), dtype == Dtype::f32 ? 1e-5 : most),
            name << " double backward " << k);
    }
}

/// Pieces have one step and many, fewer and more than the kernels process at once, with a reset in one of them.
BOOST_AUTO_TEST_CASE(pieces_are_the_whole) {
  for (const Dtype dtype : kFloats)
    for (const bool resets : {false, true}) {
      Operands o = operands(2, 75, 19, 6, dtype);
      if (resets) o.options.resets = lt(uniform({2, 75}, {.seed = 2}, 0, 1), 0.1);
      const SelectiveScan whole = o.run();
      for (const std::vector<std::int64_t>& ends :
           {std::vector<std::int64_t>{1, 2, 18, 50, 75}, std::vector<std::int64_t>{33, 75}}) {
        Tensor state = o.options.state;
        Tensors y;
        for (std::size_t k = 0; k < ends.size(); ++k) {
          const SelectiveScan piece = steps(o, k ? ends[k - 1] : 0, ends[k], state).run();
          y.push_back(piece.y), state = piece.state;
        }
        BOOST_TEST(support::identical(concat(std::span<const Tensor>(y.data(), y.size()), 1), whole.y));
        BOOST_TEST(support::identical(state, whole.state));
      }
      Tensor state = o.options.state;
      for (std::int64_t t = 0; t < 75; ++t) {
        const SelectiveScan step = steps(o, t, t + 1, state).run();
        BOOST_TEST(support::identical(step.y, slice(whole.y, 1, t, t + 1)), "step " << t);
        state = step.state;
      }
      BOOST_TEST(support::identical(state, whole.state));
    }
}

/// The channels fill more than one group of the gradient, so that its sums over channels come from several.
BOOST_AUTO_TEST_CASE(rows_and_threads_change_no_bit) {
  for (const Dtype dtype : kFloats)
    for (const std::int64_t channels : {5, 64, 270}) {
      Operands o = operands(3, 21, channels, 5, dtype);
      o.options.lengths = i64s({21, 7, 16});
      const SelectiveScan whole = o.run();
      const Tensors g = gradients(o);
      for (std::int64_t b = 0; b < 3; ++b) {
        const SelectiveScan one = row(o, b).run();
        BOOST_TEST(support::identical(one.y, slice(whole.y, 0, b, b + 1)));
        BOOST_TEST(support::identical(one.state, slice(whole.state, 0, b, b + 1)));
        const Tensors alone = gradients(row(o, b));
        for (const std::size_t k : {0U, 1U, 3U, 4U, 6U})
          BOOST_TEST(support::identical(alone[k], slice(g[k], 0, b, b + 1)), "gradient " << k);
      }
      const ThreadsInTest threads(3);
      const SelectiveScan again = o.run();
      BOOST_TEST(support::identical(again.y, whole.y));
      BOOST_TEST(support::identical(again.state, whole.state));
      check_identical(gradients(o), g, "by threads");
    }
}

/// There are several groups of channels: dB and dC are sums over all of them.
BOOST_AUTO_TEST_CASE(gradients_of_many_channels_are_sums_over_groups) {
  Operands o = operands(2, 20, 150, 3, Dtype::f64);
  const Tensors g = gradients(o);
  Operands first = o, last = o;
  const auto cut = [](Operands& to, std::int64_t begin, std::int64_t end) {
    to.x = slice(to.x, 2, begin, end), to.delta = slice(to.delta, 2, begin, end);
    to.A = slice(to.A, 0, begin, end), to.D = slice(to.D, 0, begin, end);
    to.options.state = slice(to.options.state, 1, begin, end);
  };
  cut(first, 0, 70), cut(last, 70, 150);
  const Tensors a = gradients(first), b = gradients(last);
  for (const std::size_t k : {3U, 4U}) BOOST_TEST(support::within(g[k], a[k] + b[k], 1e-13));
  BOOST_TEST(support::within(g[0], concat({a[0], b[0]}, 2), 1e-13));
  BOOST_TEST(support::within(g[2], concat({a[2], b[2]}, 0), 1e-13));
  BOOST_TEST(support::within(g[5], concat({a[5], b[5]}, 0), 1e-13));
}

BOOST_AUTO_TEST_CASE(long_sequences_are_a_plain_loop) {
  for (const Dtype dtype : kFloats)
    for (const std::int64_t T : {1, 100000}) {
      const Operands o = operands(1, T, 3, 2, dtype);
      const Loop loop(o);
      const SelectiveScan out = o.run();
      const double most = dtype == Dtype::f32 ? 1e-6 : 1e-13;
      BOOST_TEST(support::within(cast(out.y, Dtype::f64), Tensor::from(loop.y, {1, T, 3}), most), "T " << T);
      BOOST_TEST(support::within(cast(out.state, Dtype::f64), Tensor::from(loop.state, {1, 3, 2}), most));
      for (const Tensor& g : gradients(o)) BOOST_TEST(std::isfinite(cast(sum(abs(g)), Dtype::f64).item<double>()));
    }
}

/// Lengths are compared with separate rows, whatever the padding holds.
BOOST_AUTO_TEST_CASE(nothing_passes_from_the_padding) {
  for (const Dtype dtype : kFloats) {
    Operands o = operands(3, 20, 5, 4, dtype);
    o.options.lengths = i64s({20, 0, 9});
    const Tensor padding = unsqueeze(ge(arange(20), unsqueeze(o.options.lengths, 1)), 2);
    for (Tensor* t : {&o.x, &o.delta, &o.B, &o.C}) *t = where(padding, kNaN, *t);
    const SelectiveScan out = o.run();
    const Tensors g = gradients(o);
    BOOST_TEST(support::identical(where(padding, out.y, 0), zeros(out.y.shape(), dtype)));
    BOOST_TEST(support::identical(slice(out.state, 0, 1, 2), slice(o.options.state, 0, 1, 2)));
    const Operands whole = steps(row(o, 2), 0, 9, slice(o.options.state, 0, 2, 3));
    Operands shorter = whole;
    shorter.options.lengths = {};
    const SelectiveScan cut = shorter.run();
    BOOST_TEST(support::identical(cut.y, slice(slice(out.y, 0, 2, 3), 1, 0, 9)));
    BOOST_TEST(support::identical(cut.state, slice(out.state, 0, 2, 3)));
    const Tensors of_cut = gradients(shorter);
    for (const std::size_t k : {0U, 1U, 3U, 4U}) {
      BOOST_TEST(support::identical(slice(slice(g[k], 0, 2, 3), 1, 0, 9), of_cut[k]), "gradient " << k);
      BOOST_TEST(support::identical(where(padding, g[k], 0), zeros(g[k].shape(), dtype)), "gradient " << k);
    }
    for (const Tensor& d : g) BOOST_TEST(std::isfinite(cast(sum(abs(d)), Dtype::f64).item<double>()));
    BOOST_TEST(support::identical(slice(g[6], 0, 2, 3), of_cut[6]));
    // Row 1 has no steps: the gradient of its state is the cotangent that arrives at it.
    BOOST_TEST(support::identical(slice(g[6], 0, 1, 2), 2 * slice(o.options.state, 0, 1, 2)));
  }
}

/// The steps after a reset are a separate sequence, and so are those before; NaN and infinity end there.
BOOST_AUTO_TEST_CASE(a_reset_begins_anew) {
  for (const Dtype dtype : kFloats)
    for (const std::int64_t at : {1, 7, 16, 17}) {
      Operands o = operands(1, 40, 5, 6, dtype);
      o.options.resets = eq(unsqueeze(arange(40), 0), at);
      const SelectiveScan out = o.run();
      Operands before = steps(o, 0, at, o.options.state), after = steps(o, at, 40, {});
      before.options.resets = after.options.resets = {};
      const SelectiveScan first = before.run(), last = after.run();
      BOOST_TEST(support::identical(concat({first.y, last.y}, 1), out.y), "reset at " << at);
      BOOST_TEST(support::identical(out.state, last.state));
      // Without the cotangent of the state before the reset, which is not read.
      const auto of_y = [](Operands p) {
        Tape tape;
        p.x = tape.watch(p.x), p.delta = tape.watch(p.delta), p.A = tape.watch(p.A), p.B = tape.watch(p.B);
        const Tensor from = tape.watch(p.options.state);
        p.options.state = from;
        return tape.grad(sum(square(p.run().y)), {p.x, p.delta, p.A, p.B, from});
      };
      Operands zero = after;
      zero.options.state = zeros(o.options.state.shape(), dtype);
      const Tensors g = of_y(o), a = of_y(before), b = of_y(zero);
      const double most = dtype == Dtype::f32 ? 1e-6 : 1e-13;
      for (const std::size_t k : {0U, 1U, 3U}) BOOST_TEST(support::within(g[k], concat({a[k], b[k]}, 1), most), k);
      BOOST_TEST(support::within(g[2], a[2] + b[2], most));
      BOOST_TEST(support::within(g[4], a[4], most));

      for (const double bad : {kNaN, std::numeric_limits<double>::infinity()}) {
        Operands broken = o;
        broken.x = where(unsqueeze(unsqueeze(lt(arange(40), at), 0), 2), bad, o.x);
        const SelectiveScan clean = broken.run();
        BOOST_TEST(support::identical(slice(clean.y, 1, at, 40), last.y));
        BOOST_TEST(support::identical(clean.state, last.state));
        const Tensors d = of_y(broken);
        for (const std::size_t k : {0U, 1U, 3U})
          BOOST_TEST(support::identical(slice(d[k], 1, at, 40), slice(g[k], 1, at, 40)));
      }
    }
}

/// A reset before the first step drops the given state.
BOOST_AUTO_TEST_CASE(a_reset_drops_the_first_state) {
  Operands o = operands(2, 3, 2, 2, Dtype::f64);
  o.options.resets = lt(expand(arange(3), {2, 3}), 1);
  Operands without = o;
  without.options = {};
  o.options.state = full({2, 2, 2}, kNaN, Dtype::f64);
  BOOST_TEST(support::identical(o.run().y, without.run().y));
  const Tensors g = gradients(o), wanted = gradients(without);
  for (std::size_t k = 0; k < 6; ++k) BOOST_TEST(support::identical(g[k], wanted[k]), k);
  BOOST_TEST(support::identical(g[6], zeros({2, 2, 2}, Dtype::f64)));
}

/// Decays at the ends of the range: 0, 1, beyond the largest number; a NaN remains, and stays in its channel.
BOOST_AUTO_TEST_CASE(decays_of_any_size) {
  for (const Dtype dtype : kFloats) {
    Operands o = operands(1, 2, 7, 1, dtype);
    const double infinity = std::numeric_limits<double>::infinity();
    o.A = reshape(cast(Tensor::from({0.0, -1e4, -infinity, 1e4, kNaN, -20.0, 3.0}), dtype), {7, 1});
    o.delta = full({1, 2, 7}, 1, dtype);
    o.options.state = full({1, 7, 1}, 1, dtype);
    o.x = zeros({1, 2, 7}, dtype);
    const Tensor state = cast(o.run().state, Dtype::f64);
    const auto v = state.values<double>();
    const double wanted[] = {1, 0, 0, infinity, kNaN, std::exp(-40.0), std::exp(6.0)};
    for (std::size_t d = 0; d < 7; ++d) {
      const double most = std::fabs(wanted[d]) * (dtype == Dtype::f32 ? 1e-6 : 1e-14);
      const bool same = std::isnan(wanted[d]) ? std::isnan(v[d]) : v[d] == wanted[d];
      BOOST_TEST((same || std::fabs(v[d] - wanted[d]) <= most), "channel " << d << " is " << v[d]);
    }
  }
}

/// The error is at most 2 units in the last place, in f32 and f64, compared with the C library in doubles.
BOOST_AUTO_TEST_CASE(decays_are_exponentials) {
  for (const Dtype dtype : kFloats) {
    const std::int64_t count = 200000;
    const double low = dtype == Dtype::f32 ? -87.3 : -708, high = dtype == Dtype::f32 ? 88.3 : 709;
    Operands o = operands(1, 1, count, 1, dtype);
    o.A = uniform({count, 1}, {.seed = 3}, low, high, dtype);
    o.delta = ones({1, 1, count}, dtype), o.x = zeros({1, 1, count}, dtype);
    o.options.state = ones({1, count, 1}, dtype);
    const Tensor got = contiguous(cast(o.run().state, Dtype::f64)), at = contiguous(cast(o.A, Dtype::f64));
    double most = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const double wanted = std::exp(at.values<double>()[i]);
      most = std::max(most, std::fabs(got.values<double>()[i] - wanted) /
                                std::ldexp(1.0, std::ilogb(wanted) - (dtype == Dtype::f32 ? 23 : 52)));
    }
    BOOST_TEST(most <= 2);
  }
}

/// Without rows there is nothing to do, and gradients of shared operands are zeros.
BOOST_AUTO_TEST_CASE(a_batch_may_be_empty) {
  const Operands o = operands(0, 3, 4, 5, Dtype::f32);
  BOOST_TEST(o.run().y.shape() == (Shape{0, 3, 4}));
  const Tensors g = gradients(o);
  BOOST_TEST(support::identical(g[2], zeros({4, 5})));
  BOOST_TEST(support::identical(g[5], zeros({4})));
}

BOOST_AUTO_TEST_SUITE_END()
