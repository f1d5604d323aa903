// Steps beyond the length of a row change nothing, whatever they divide by.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

/// A cell that divides by its input: padding, which may hold zeros, must not make anything infinite.
struct Ratio final : nn::CustomCell {
  Parameter w;
  Ratio(std::int64_t D, std::int64_t H, const nn::Init& init) {
    w = parameter("w", {D, H}, nn::init::uniform(-1, 1), init);
  }
  std::string kind() const override { return "ratio"; }
  RecurrentState step(const Tensor& x, const RecurrentState& s) const override {
    return {tanh(matmul(log(x) / x, w) + 0.5 * s.h)};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(padding)

/// Beyond its length a row repeats its last step: a body that divides by x, or takes its logarithm, would otherwise
/// meet zeros there, and 0 times an infinite derivative is NaN.
BOOST_AUTO_TEST_CASE(scans) {
  const Tensor lengths = Tensor::from<std::int64_t>({4, 0, 6, 1});
  const std::int64_t T = 6, B = 4;
  const Tensor valid = lt(reshape(arange(T), {T, 1, 1}), reshape(lengths, {1, B, 1}));
  const Tensor xs = where(valid, uniform({T, B, 3}, {.seed = 4}, 0.5, 2, Dtype::f64), 0);
  const Tensor w0 = uniform({3}, {.seed = 3}, -1, 1, Dtype::f64), h0 = uniform({B, 3}, {.seed = 5}, 0.5, 1, Dtype::f64);
  const auto gradients = [&](bool by_lengths, bool reverse) {
    Tape tape;
    const Tensor w = tape.watch(w0), x = tape.watch(xs);
    const auto body = [&](const Tensors& c, const Tensors& in) -> ScanStep {
      const Tensor h = tanh(c[0] * w + log(in[0]) / in[0]);
      return {{h}, {h}};
    };
    Tensor loss = zeros({}, Dtype::f64);
    if (by_lengths) {
      const ScanResult r = scan(body, {h0}, {x}, {.reverse = reverse, .lengths = lengths});
      loss = sum(r.y[0]) + sum(square(r.carry[0]));
    }
    for (std::int64_t b = 0; b < B && !by_lengths; ++b) {
      const std::int64_t n = lengths.to_vector<std::int64_t>()[static_cast<std::size_t>(b)];
      const ScanResult r =
          scan(body, {slice(h0, 0, b, b + 1)}, {slice(slice(x, 1, b, b + 1), 0, 0, n)}, {.reverse = reverse});
      loss = loss + sum(r.y[0]) + sum(square(r.carry[0]));
    }
    return tape.grad(loss, {w, x});
  };
  for (const bool reverse : {false, true}) {
    const Tensors got = gradients(true, reverse), wanted = gradients(false, reverse);
    BOOST_TEST(within(got[0], wanted[0], 1e-13));
    BOOST_TEST(within(got[1], wanted[1], 1e-13));
  }
  // No row has a step: x is not read at all.
  const ScanResult none = scan([](const Tensors& c, const Tensors& in) -> ScanStep { return {{c[0] * in[0]}}; }, {h0},
                               {full({T, B, 3}, std::nan(""), Dtype::f64)}, {.lengths = zeros({B}, Dtype::i64)});
  BOOST_TEST(identical(none.carry[0], h0));
}

BOOST_AUTO_TEST_CASE(cells_of_ones_own) {
  const Tensor lengths = Tensor::from<std::int64_t>({5, 1, 3});
  const Tensor inside = lt(reshape(arange(5), {1, 5, 1}), reshape(lengths, {3, 1, 1}));
  const Tensor x = where(inside, uniform({3, 5, 2}, {.seed = 6}, 0.5, 2, Dtype::f64), 0);
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::scan})
    for (const bool both : {false, true}) {
      const auto layer =
          nn::custom<Ratio>(2, 3, {.bidirectional = both, .form = form}, {.seed = 1, .dtype = Dtype::f64});
      Tape tape;
      const Tensors got = tape.grad(sum(layer(x, {.lengths = lengths})), layer.parameters());
      std::vector<Tensor> wanted(got.size(), Tensor());
      for (std::int64_t b = 0; b < 3; ++b) {
        const std::int64_t n = lengths.to_vector<std::int64_t>()[static_cast<std::size_t>(b)];
        Tape alone;
        const Tensor row = slice(slice(x, 0, b, b + 1), 1, 0, n);
        const Tensors g = alone.grad(sum(layer(row)), layer.parameters());
        for (std::size_t k = 0; k < g.size(); ++k) wanted[k] = b == 0 ? g[k] : wanted[k] + g[k];
      }
      for (std::size_t k = 0; k < got.size(); ++k) BOOST_TEST(within(got[k], wanted[k], 1e-12));
    }
}

/// The copies are constants: a gradient that arrives at them does not reach the step that they repeat.
BOOST_AUTO_TEST_CASE(no_gradient_into_the_copies) {
  const Tensor lengths = Tensor::from<std::int64_t>({4, 1, 0});
  const Tensor inside = cast(lt(reshape(arange(4), {4, 1, 1}), reshape(lengths, {1, 3, 1})), Dtype::f64);
  Tape tape;
  const Tensor x = tape.watch(uniform({4, 3, 2}, {.seed = 7}, -1, 1, Dtype::f64));
  const Tensor g = tape.grad(sum(without_padding(x, lengths)), {x})[0];
  BOOST_TEST(identical(g, expand(inside, {4, 3, 2}) + 0));
}

BOOST_AUTO_TEST_SUITE_END()
