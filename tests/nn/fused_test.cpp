// The fused form against the unrolled one: values to the bit, gradients within rounding; rows and chunks to the bit.
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/gru.h"
#include "ferrite/nn/lstm.h"
#include "ferrite/nn/rnn.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

struct Setting {
  std::int64_t H, B, T;
  int layers = 1;
  bool both_ways = false, lengths = false, resets = false, bias = true;
};

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype) {
  return uniform(shape, {41, stream, 0}, -1, 1, dtype);
}

std::unique_ptr<nn::Recurrent> layer(const std::string& kind, const Setting& s, nn::Form form, Dtype dtype) {
  const nn::Init init{7, {}, dtype};
  const std::int64_t D = 3;
  if (kind == "gru")
    return std::make_unique<nn::Gru>(
        D, s.H, nn::GruOptions{.layers = s.layers, .bidirectional = s.both_ways, .bias = s.bias, .form = form}, init);
  if (kind == "lstm")
    return std::make_unique<nn::Lstm>(
        D, s.H, nn::LstmOptions{.layers = s.layers, .bidirectional = s.both_ways, .bias = s.bias, .form = form}, init);
  return std::make_unique<nn::Rnn>(
      D, s.H,
      nn::RnnOptions{.layers = s.layers,
                     .bidirectional = s.both_ways,
                     .bias = s.bias,
                     .form = form,
                     .nonlinearity = kind == "rnn_relu" ? nn::Nonlinearity::relu : nn::Nonlinearity::tanh},
      init);
}

/// Output, states, gradients of the input, the initial states and all parameters.
Tensors everything(const std::string& kind, const Setting& s, nn::Form form, Dtype dtype) {
  const auto net = layer(kind, s, form, dtype);
  nn::Context context;
  Tensor x = draw({s.B, s.T, 3}, 1, dtype);
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < s.B; ++b) lengths.push_back(1 + (b * 5 + 2) % s.T);
  if (s.lengths) context.lengths = Tensor::from(lengths, {s.B});
  if (s.lengths) {  // what stands in the padding is nobody's business
    const Tensor valid = less(arange(s.T), unsqueeze(context.lengths, 1));
    x = where(unsqueeze(valid, 2), x, std::nan(""));
  }
  if (s.resets) context.reset_mask = less(draw({s.B, s.T}, 2, Dtype::f32), -0.4);
  Tape tape;
  x = tape.watch(x);
  const Shape states{s.layers * (s.both_ways ? 2 : 1), s.B, s.H};
  const Tensor h0 = tape.watch(draw(states, 3, dtype));
  const Tensor c0 = tape.watch(draw(states, 4, dtype));
  context.state = h0;
  if (kind == "lstm") context.cell = c0;
  const nn::RecurrentResult r = net->run(x, context);
  Tensor loss = sum(r.output * draw(r.output.shape(), 5, dtype)) + sum(r.state * draw(r.state.shape(), 6, dtype));
  if (r.cell) loss = loss + sum(r.cell * draw(r.cell.shape(), 7, dtype));
  Tensors all = {r.output, r.state};
  if (r.cell) all.push_back(r.cell);
  for (const Tensor& g : tape.grad(loss, {x, h0, c0}, {.retain = true})) all.push_back(g);
  for (const Tensor& g : tape.grad(loss, net->parameters())) all.push_back(g);
  return all;
}

void compare(const std::string& kind, const Setting& s, Dtype dtype) {
  const Tensors fused = everything(kind, s, nn::Form::fused, dtype);
  const Tensors unrolled = everything(kind, s, nn::Form::unrolled, dtype);
  const std::size_t values = kind == "lstm" ? 3 : 2;
  BOOST_TEST_CONTEXT(kind << " H " << s.H << " B " << s.B << " T " << s.T << " layers " << s.layers
                          << (s.both_ways ? " both ways" : "") << (s.lengths ? " lengths" : "")
                          << (s.resets ? " resets" : "") << (s.bias ? "" : " no bias")) {
    BOOST_REQUIRE(fused.size() == unrolled.size());
    for (std::size_t k = 0; k < values; ++k) BOOST_TEST(identical(fused[k], unrolled[k]), "value " << k);
    for (std::size_t k = values; k < fused.size(); ++k)
      BOOST_TEST(within(fused[k], unrolled[k], dtype == Dtype::f64 ? 1e-13 : 1e-6), "gradient " << k - values);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fused)

BOOST_AUTO_TEST_CASE(all_sizes) {
  for (const std::string kind : {"gru", "lstm", "rnn_tanh", "rnn_relu"}) {
    for (const std::int64_t H : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65})
      compare(kind, {.H = H, .B = 2, .T = 3}, Dtype::f32);
    for (const std::int64_t B : {1, 7, 32, 129}) compare(kind, {.H = 5, .B = B, .T = 3}, Dtype::f32);
    for (const std::int64_t T : {1, 2, 50}) compare(kind, {.H = 6, .B = 3, .T = T}, Dtype::f64);
  }
  for (const std::int64_t H : {128, 257}) compare("gru", {.H = H, .B = 2, .T = 2}, Dtype::f32);
}

BOOST_AUTO_TEST_CASE(all_options) {
  for (const std::string kind : {"gru", "lstm", "rnn_tanh", "rnn_relu"})
    for (int k = 0; k < 32; ++k)
      compare(kind,
              {.H = 4,
               .B = 3,
               .T = 6,
               .layers = 1 + (k & 1),
               .both_ways = (k & 2) != 0,
               .lengths = (k & 4) != 0,
               .resets = (k & 8) != 0,
               .bias = (k & 16) == 0},
              k % 3 ? Dtype::f64 : Dtype::f32);
}

/// Weight gradients over more than one block of 256 rows.
BOOST_AUTO_TEST_CASE(long_sequences) {
  compare("gru", {.H = 3, .B = 7, .T = 100}, Dtype::f64);
  compare("lstm", {.H = 3, .B = 1, .T = 600}, Dtype::f64);
}

BOOST_AUTO_TEST_CASE(a_row_alone_has_the_bits_of_the_row_in_a_batch) {
  const nn::Gru gru(3, 17, {.seed = 1});
  const Tensor x = draw({5, 9, 3}, 8, Dtype::f32);
  const auto run = [&](const Tensor& batch) {
    Tape tape;
    const Tensor in = tape.watch(batch);
    const nn::RecurrentResult r = gru.run(in);
    return Tensors{r.output, r.state, tape.grad(sum(square(r.output)), {in})[0]};
  };
  const Tensors whole = run(x);
  for (std::int64_t b = 0; b < 5; ++b) {
    const Tensors alone = run(slice(x, 0, b, b + 1));
    for (std::size_t k = 0; k < 3; ++k) BOOST_TEST(identical(alone[k], slice(whole[k], 0, b, b + 1)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
