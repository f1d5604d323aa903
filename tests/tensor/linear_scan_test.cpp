// Linear recurrences over sequences: all widths compared with plain loops, pieces, threads, special values, errors.
#include "ferrite/tensor/linear_scan.h"

#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor drawn(const Shape& s, std::uint64_t seed, Dtype t = Dtype::f32) { return uniform(s, {.seed = seed}, -1, 1, t); }

/// Computes the definition with real operations, step by step.
Tensor by_steps(const Tensor& a, const Tensor& b, const Tensor& h0, bool reverse = false) {
  const std::int64_t T = b.shape()[1];
  const bool same = a.shape() != b.shape();
  std::vector<Tensor> all(static_cast<std::size_t>(T));
  Tensor h = h0;
  for (std::int64_t s = 0; s < T; ++s) {
    const std::int64_t t = reverse ? T - 1 - s : s;
    const Tensor now = same ? a : select(a, 1, t);
    if (b.rank() == 3) {
      h = now * h + select(b, 1, t);
    } else {
      const Tensor ar = select(now, -1, 0), ai = select(now, -1, 1), hr = select(h, -1, 0), hi = select(h, -1, 1);
      h = stack({ar * hr - ai * hi, ar * hi + ai * hr}, -1) + select(b, 1, t);
    }
    all[static_cast<std::size_t>(t)] = h;
  }
  return stack(all, 1);
}

struct Grads {
  Tensor h, a, b, h0;
};
Grads with_gradients(const Tensor& a, const Tensor& b, const Tensor& h0, const LinearScanOptions& o, const Tensor& dh) {
  Tape tape;
  const Tensor wa = tape.watch(a), wb = tape.watch(b), wh = tape.watch(h0);
  const Tensor h = linear_scan(wa, wb, wh, o);
  const Tensors g = tape.grad(sum(h * dh), {wa, wb, wh});
  return {h, g[0], g[1], g[2]};
}

void check_same(const Grads& x, const Grads& y) {
  BOOST_TEST(identical(x.h, y.h));
  BOOST_TEST(identical(x.a, y.a));
  BOOST_TEST(identical(x.b, y.b));
  BOOST_TEST(identical(x.h0, y.h0));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_scan_operation)

/// Widths with strips of packets, overlapping packets, parts of one, and wide rows; real and complex, an a for every
/// step or one for all.
BOOST_AUTO_TEST_CASE(every_width_is_the_definition_with_its_gradients) {
  for (const std::int64_t D : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 127, 128, 129, 200, 1030})
    for (const bool complex : {false, true})
      for (const bool same : {false, true})
        for (const bool reverse : {false, true}) {
          BOOST_TEST_CONTEXT("D " << D << (complex ? " complex" : "") << (same ? " same" : "")
                                  << (reverse ? " back" : "")) {
            Shape s{2, 5, D}, step{D}, state{2, D};
            if (complex) s.push_back(2), step.push_back(2), state.push_back(2);
            for (const Dtype t : {Dtype::f32, Dtype::f64}) {
              const Tensor a = drawn(same ? step : s, 1, t), b = drawn(s, 2, t), h0 = drawn(state, 3, t),
                           dh = drawn(s, 4, t);
              const Grads got = with_gradients(a, b, h0, {.reverse = reverse}, dh);
              Tape tape;
              const Tensor wa = tape.watch(a), wb = tape.watch(b), wh = tape.watch(h0);
              const Tensor h = by_steps(wa, wb, wh, reverse);
              const Tensors g = tape.grad(sum(h * dh), {wa, wb, wh});
              const double tolerance = t == Dtype::f32 ? 1e-6 : 1e-14;
              BOOST_TEST(within(got.h, h, tolerance));
              BOOST_TEST(within(got.a, g[0], tolerance));
              BOOST_TEST(within(got.b, g[1], tolerance));
              BOOST_TEST(within(got.h0, g[2], tolerance));
            }
          }
        }
}

/// The gradient of an a that is the same for all steps sums over blocks of 256 steps.
BOOST_AUTO_TEST_CASE(long_sequences_sum_the_gradient_of_a) {
  const std::int64_t T = 700;
  const Tensor a = uniform({5}, {.seed = 1}, 0.5, 1.0, Dtype::f64), b = drawn({2, T, 5}, 2, Dtype::f64);
  const Tensor h0 = drawn({2, 5}, 3, Dtype::f64), dh = drawn({2, T, 5}, 4, Dtype::f64);
  const Grads got = with_gradients(a, b, h0, {}, dh);
  Tape tape;
  const Tensor wa = tape.watch(a);
  BOOST_TEST(within(got.a, tape.grad(sum(by_steps(wa, b, h0) * dh), {wa})[0], 1e-13));
}

BOOST_AUTO_TEST_CASE(pieces_rows_and_threads_have_the_bits_of_the_whole) {
  for (const Shape& s : {Shape{5, 23, 37}, Shape{1, 40, 3000}, Shape{9, 60, 200}, Shape{3, 23, 19, 2}}) {
    BOOST_TEST_CONTEXT(s.str()) {
      Shape state = s;
      state.erase(1);
      const Tensor a = drawn(s, 1), b = drawn(s, 2), h0 = drawn(state, 3), dh = drawn(s, 4);
      const Grads whole = with_gradients(a, b, h0, {}, dh);
      const auto piece = [&](const Tensor& x, std::int64_t from, std::int64_t to) { return slice(x, 1, from, to); };
      const Tensor first = linear_scan(piece(a, 0, 9), piece(b, 0, 9), h0);
      const std::int64_t T = s[1];
      const Tensor rest = linear_scan(piece(a, 9, T), piece(b, 9, T), select(first, 1, -1));
      BOOST_TEST(identical(concat({first, rest}, 1), whole.h));
      const auto row = [&](const Tensor& x) { return slice(x, 0, s[0] - 1, s[0]); };
      const Grads alone = with_gradients(row(a), row(b), row(h0), {}, row(dh));
      check_same(alone, {row(whole.h), row(whole.a), row(whole.b), row(whole.h0)});
      set_threads(3);
      const Grads shared = with_gradients(a, b, h0, {}, dh);
      set_threads(1);
      check_same(shared, whole);
    }
  }
}

BOOST_AUTO_TEST_CASE(one_step_and_many) {
  const Tensor a = uniform({1, 100000, 3}, {.seed = 1}, 0.9, 1.0, Dtype::f64), b = drawn({1, 100000, 3}, 2, Dtype::f64);
  const Tensor h = linear_scan(a, b);
  const std::vector<double> va = a.to_vector<double>(), vb = b.to_vector<double>(), vh = h.to_vector<double>();
  double now = 0, worst = 0;
  for (std::size_t t = 0; t < 100000; ++t) {
    now = std::fma(va[3 * t], now, vb[3 * t]);
    worst = std::max(worst, std::fabs(now - vh[3 * t]));
  }
  BOOST_TEST(worst < 1e-12);
  const Tensor one = linear_scan(slice(a, 1, 0, 1), slice(b, 1, 0, 1), full({1, 3}, 2.0, Dtype::f64));
  BOOST_TEST(within(one, slice(a, 1, 0, 1) * 2.0 + slice(b, 1, 0, 1), 1e-15));
}

/// Steps beyond the lengths are not read, and after a reset the state starts over, whatever it was.
BOOST_AUTO_TEST_CASE(lengths_and_resets_keep_what_is_not_finite_out) {
  for (const bool reverse : {false, true}) {
    for (const std::int64_t D : {3, 40, 700}) {
      BOOST_TEST_CONTEXT("D " << D << (reverse ? " back" : "")) {
        const Tensor lengths = Tensor::from<std::int64_t>({4, 2}, {2});
        const Tensor valid = unsqueeze(lt(arange(6), unsqueeze(lengths, 1)), 2);
        const Tensor a = where(valid, drawn({2, 6, D}, 1), kNan), b = where(valid, drawn({2, 6, D}, 2), kNan);
        const Tensor h0 = drawn({2, D}, 3), dh = where(valid, drawn({2, 6, D}, 4), 0);
        const Grads got = with_gradients(a, b, h0, {.reverse = reverse, .lengths = lengths}, dh);
        for (std::int64_t row = 0; row < 2; ++row) {
          const std::int64_t n = row == 0 ? 4 : 2;
          const auto part = [&](const Tensor& x) { return slice(slice(x, 0, row, row + 1), 1, 0, n); };
          const Grads alone =
              with_gradients(part(a), part(b), slice(h0, 0, row, row + 1), {.reverse = reverse}, part(dh));
          check_same(alone, {part(got.h), part(got.a), part(got.b), slice(got.h0, 0, row, row + 1)});
          const auto beyond = [&](const Tensor& x) { return slice(slice(x, 0, row, row + 1), 1, n, 6); };
          for (const Tensor& x : {got.h, got.a, got.b}) BOOST_TEST(identical(beyond(x), zeros({1, 6 - n, D})));
        }
        // A reset before step 3: forward the steps before it, and backward those from it on, do not reach the others.
        const Tensor resets = reshape(eq(arange(6), 3), {1, 6});
        const Tensor poisoned = reverse
                                    ? Tensor(where(reshape(ge(arange(6), 3), {1, 6, 1}), kNan, drawn({1, 6, D}, 5)))
                                    : Tensor(where(reshape(lt(arange(6), 3), {1, 6, 1}), kNan, drawn({1, 6, D}, 5)));
        const Tensor clean = drawn({1, 6, D}, 6);
        const Tensor h = linear_scan(clean, poisoned, {}, {.reverse = reverse, .resets = resets});
        const auto kept = [&](const Tensor& x) { return reverse ? slice(x, 1, 0, 3) : slice(x, 1, 3, 6); };
        BOOST_TEST(identical(kept(h), linear_scan(kept(clean), kept(poisoned), {}, {.reverse = reverse})));
        const Tensor from = Tensor::from<float>(std::vector<float>(static_cast<std::size_t>(D), 1), {1, D});
        const Grads g = with_gradients(
            clean, clean, from, {.reverse = reverse, .resets = resets},
            where(reshape(reverse ? lt(arange(6), 3) : ge(arange(6), 3), {1, 6, 1}), drawn({1, 6, D}, 7), 0));
        BOOST_TEST(identical(g.h0, zeros({1, D})));
        const Tensor others = reverse ? slice(g.b, 1, 3, 6) : slice(g.b, 1, 0, 3);
        BOOST_TEST(identical(others, zeros({1, 3, D})));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(strides_and_empty_operands) {
  const Tensor a = drawn({4, 3, 6}, 1), b = drawn({6, 3, 4}, 2);
  const Tensor turned = permute(b, {2, 1, 0});
  BOOST_TEST(identical(linear_scan(a, turned), linear_scan(a, contiguous(turned))));
  BOOST_TEST(linear_scan(zeros({2, 0, 3}), zeros({2, 0, 3})).shape() == (Shape{2, 0, 3}));
  BOOST_TEST(linear_scan(zeros({0}), zeros({2, 3, 0})).shape() == (Shape{2, 3, 0}));
}

BOOST_AUTO_TEST_CASE(refuses_what_does_not_fit) {
  const Tensor x = zeros({2, 3, 4});
  BOOST_CHECK_EXCEPTION(linear_scan(zeros({3}), x), ShapeError,
                        says("linear_scan: expects a [2, 3, 4], or [4] for all"));
  BOOST_CHECK_EXCEPTION(linear_scan(zeros({2, 4}), zeros({2, 4})), ShapeError,
                        says("linear_scan: expects b [B, T, D]"));
  BOOST_CHECK_EXCEPTION(linear_scan(zeros({2, 3, 4, 3}), zeros({2, 3, 4, 3})), ShapeError,
                        says("complex [B, T, D, 2]"));
  BOOST_CHECK_EXCEPTION(linear_scan(zeros({4}, Dtype::f64), x), DtypeError, says("floats of one dtype"));
  BOOST_CHECK_EXCEPTION(linear_scan(x, x, zeros({4})), ShapeError, says("expects h0 f32[2, 4], got f32[4]"));
  BOOST_CHECK_EXCEPTION(linear_scan(x, x, {}, {.lengths = zeros({3}, Dtype::i64)}), ShapeError,
                        says("expects lengths"));
  BOOST_CHECK_EXCEPTION(linear_scan(x, x, {}, {.lengths = full({2}, 4, Dtype::i64)}), ShapeError,
                        says("linear_scan: a length of 4 lies outside 0..3"));
  BOOST_CHECK_EXCEPTION(linear_scan(x, x, {}, {.resets = zeros({2, 3})}), ShapeError, says("linear_scan: expects"));
  BOOST_CHECK_EXCEPTION(linear_scan(cast(x, Dtype::i64), cast(x, Dtype::i64)), ShapeError, says("of floats"));
}

BOOST_AUTO_TEST_SUITE_END()
