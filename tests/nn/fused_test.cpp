// The fused form and the scan compared with the unrolled one: values to the bit, gradients within rounding, rows and
// chunks to the bit.
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

struct Setting {
  std::int64_t H, B, T;
  int layers = 1;
  bool both_ways = false, lengths = false, resets = false, bias = true, recompute = false;
  std::int64_t D = 3;
};

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype) {
  return uniform(shape, {41, stream, 0}, -1, 1, dtype);
}

const std::vector<std::string> kKinds = {"gru",           "gru_reset_before", "lstm",    "lstm_projected",
                                         "peephole_lstm", "rnn_tanh",         "rnn_relu"};
bool has_memory(const std::string& kind) { return kind.find("lstm") != std::string::npos; }
std::int64_t state_of(const std::string& kind, std::int64_t H) { return kind == "lstm_projected" && H > 1 ? H / 2 : H; }

template <class Options>
Options common(const Setting& s, nn::Form form) {
  Options o;
  o.layers = s.layers;
  o.bidirectional = s.both_ways;
  o.bias = s.bias;
  o.form = form;
  o.recompute = s.recompute;
  return o;
}

std::unique_ptr<nn::Recurrent> layer(const std::string& kind, const Setting& s, nn::Form form, Dtype dtype) {
  const nn::Init init{7, {}, dtype};
  const std::int64_t D = s.D;
  if (kind.starts_with("gru")) {
    auto o = common<nn::GruOptions>(s, form);
    o.reset_after = kind == "gru";
    return std::make_unique<nn::Gru>(D, s.H, o, init);
  }
  if (kind == "peephole_lstm")
    return std::make_unique<nn::PeepholeLstm>(D, s.H, common<nn::PeepholeLstmOptions>(s, form), init);
  if (has_memory(kind)) {
    auto o = common<nn::LstmOptions>(s, form);
    if (kind == "lstm_projected" && s.H > 1) o.proj_size = s.H / 2;
    return std::make_unique<nn::Lstm>(D, s.H, o, init);
  }
  auto o = common<nn::RnnOptions>(s, form);
  o.nonlinearity = kind == "rnn_relu" ? nn::Nonlinearity::relu : nn::Nonlinearity::tanh;
  return std::make_unique<nn::Rnn>(D, s.H, o, init);
}

/// Returns output, states, and gradients of the input, the initial states and all parameters.
Tensors everything(const std::string& kind, const Setting& s, nn::Form form, Dtype dtype) {
  const auto net = layer(kind, s, form, dtype);
  nn::Context context;
  Tensor x = draw({s.B, s.T, s.D}, 1, dtype);
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < s.B; ++b) lengths.push_back(1 + (b * 5 + 2) % s.T);
  if (s.lengths) context.lengths = Tensor::from(lengths, {s.B});
  if (s.lengths) {  // values in the padding are undefined
    const Tensor valid = lt(arange(s.T), unsqueeze(context.lengths, 1));
    x = where(unsqueeze(valid, 2), x, std::nan(""));
  }
  if (s.resets) context.reset_mask = lt(draw({s.B, s.T}, 2, Dtype::f32), -0.4);
  Tape tape;
  x = tape.watch(x);
  const std::int64_t count = s.layers * (s.both_ways ? 2 : 1);
  const Tensor h0 = tape.watch(draw({count, s.B, state_of(kind, s.H)}, 3, dtype));
  const Tensor c0 = tape.watch(draw({count, s.B, s.H}, 4, dtype));
  context.state = h0;
  if (has_memory(kind)) context.cell = c0;
  const nn::RecurrentResult r = net->run(x, context);
  Tensor loss = sum(r.output * draw(r.output.shape(), 5, dtype)) + sum(r.state * draw(r.state.shape(), 6, dtype));
  if (r.cell.defined()) loss = loss + sum(r.cell * draw(r.cell.shape(), 7, dtype));
  Tensors all = {r.output, r.state};
  if (r.cell.defined()) all.push_back(r.cell);
  for (const Tensor& g : tape.grad(loss, {x, h0, c0}, {.retain = true})) all.push_back(g);
  for (const Tensor& g : tape.grad(loss, net->parameters())) all.push_back(g);
  return all;
}

void compare(const std::string& kind, const Setting& s, Dtype dtype) {
  const Tensors unrolled = everything(kind, s, nn::Form::unrolled, dtype);
  const std::size_t values = has_memory(kind) ? 3 : 2;
  BOOST_TEST_CONTEXT(kind << " H " << s.H << " B " << s.B << " T " << s.T << " layers " << s.layers
                          << (s.both_ways ? " both ways" : "") << (s.lengths ? " lengths" : "")
                          << (s.resets ? " resets" : "") << (s.bias ? "" : " no bias")) {
    for (const nn::Form form : {nn::Form::fused, nn::Form::scan}) {
      const Tensors other = everything(kind, s, form, dtype);
      const char* name = form == nn::Form::fused ? "fused" : "scan";
      BOOST_REQUIRE(other.size() == unrolled.size());
      for (std::size_t k = 0; k < values; ++k) BOOST_TEST(identical(other[k], unrolled[k]), name << ", value " << k);
      for (std::size_t k = values; k < other.size(); ++k)
        BOOST_TEST(within(other[k], unrolled[k], dtype == Dtype::f64 ? 1e-13 : 1e-6),
                   name << ", gradient " << k - values);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fused)

BOOST_AUTO_TEST_CASE(all_sizes) {
  for (const std::string& kind : kKinds) {
    for (const std::int64_t H : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80, 97})
      compare(kind, {.H = H, .B = 2, .T = 3}, Dtype::f32);
    for (const std::int64_t B : {1, 2, 3, 7, 8, 13, 32, 129}) compare(kind, {.H = 5, .B = B, .T = 3}, Dtype::f32);
    for (const std::int64_t T : {1, 2, 3, 50}) compare(kind, {.H = 6, .B = 3, .T = T}, Dtype::f64);
    for (const std::int64_t H : {128, 257}) compare(kind, {.H = H, .B = 2, .T = 2}, Dtype::f32);
    compare(kind, {.H = 257, .B = 9, .T = 1}, Dtype::f64);
  }
}

/// Weights larger than the second-level cache are read in another order of rows and units.
BOOST_AUTO_TEST_CASE(large) { compare("gru", {.H = 320, .B = 17, .T = 2}, Dtype::f32); }

BOOST_AUTO_TEST_CASE(all_options) {
  for (const std::string& kind : kKinds)
    for (int k = 0; k < 64; ++k)
      compare(kind,
              {.H = 4,
               .B = 3,
               .T = 6,
               .layers = 1 + (k & 1),
               .both_ways = (k & 2) != 0,
               .lengths = (k & 4) != 0,
               .resets = (k & 8) != 0,
               .bias = (k & 16) == 0,
               .recompute = (k & 32) != 0},
              k % 3 ? Dtype::f64 : Dtype::f32);
}

/// Weight gradients are sums over more than one block of 256 rows.
BOOST_AUTO_TEST_CASE(one_feature_with_and_without_a_gradient) {
  for (const std::string& kind : kKinds)
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const std::int64_t H : {1, 5, 16, 40})
        for (const std::int64_t B : {1, 3, 33}) {
          const Setting s{
              .H = H, .B = B, .T = 7, .layers = 2, .both_ways = B == 3, .lengths = B == 33, .bias = H != 5, .D = 1};
          compare(kind, s, dtype);
          nn::Context context;
          std::vector<std::int64_t> lengths;
          for (std::int64_t b = 0; b < B; ++b) lengths.push_back(1 + b % 7);
          if (s.lengths) context.lengths = Tensor::from(lengths, {B});
          if (B == 1) context.reset_mask = lt(draw({B, 7}, 2, Dtype::f32), -0.4);
          const Tensor x = draw({B, 7, 1}, 1, dtype);
          const nn::RecurrentResult fused = layer(kind, s, nn::Form::fused, dtype)->run(x, context);
          const nn::RecurrentResult unrolled = layer(kind, s, nn::Form::unrolled, dtype)->run(x, context);
          BOOST_TEST(identical(fused.output, unrolled.output), kind << " H " << H << " B " << B);
          BOOST_TEST(identical(fused.state, unrolled.state), kind << " H " << H << " B " << B);
        }
}

BOOST_AUTO_TEST_CASE(long_sequences) {
  compare("gru", {.H = 3, .B = 7, .T = 100}, Dtype::f64);
  compare("lstm", {.H = 3, .B = 1, .T = 600}, Dtype::f64);
}

/// Values and all gradients, weights included, are the same for any number of threads.
BOOST_AUTO_TEST_CASE(threads_do_not_change_a_bit) {
  for (const std::string& kind : kKinds) {
    const Setting s{.H = 65, .B = 37, .T = 24, .layers = 1, .both_ways = true, .lengths = true, .resets = true};
    const Tensors alone = everything(kind, s, nn::Form::fused, Dtype::f32);
    for (const int n : {2, 3, 8}) {
      set_threads(n);
      const Tensors shared = everything(kind, s, nn::Form::fused, Dtype::f32);
      set_threads(1);
      for (std::size_t k = 0; k < alone.size(); ++k)
        BOOST_TEST(identical(shared[k], alone[k]), kind << ", " << n << " threads, result " << k);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_row_alone_has_the_bits_of_the_row_in_a_batch) {
  for (const std::string& kind : kKinds) {
    const auto net = layer(kind, {.H = 17, .B = 21, .T = 9}, nn::Form::fused, Dtype::f32);
    const Tensor x = draw({21, 9, 3}, 8, Dtype::f32);
    const auto run = [&](const Tensor& batch) {
      Tape tape;
      const Tensor in = tape.watch(batch);
      const nn::RecurrentResult r = net->run(in);
      return Tensors{r.output, r.state, tape.grad(sum(square(r.output)), {in})[0]};
    };
    const Tensors whole = run(x);
    for (std::int64_t b = 0; b < 21; ++b) {
      const Tensors alone = run(slice(x, 0, b, b + 1));
      for (std::size_t k = 0; k < 3; ++k) BOOST_TEST(identical(alone[k], slice(whole[k], 0, b, b + 1)), kind);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_sequence_in_pieces_has_its_bits) {
  for (const std::string& kind : kKinds) {
    const auto net = layer(kind, {.H = 19, .B = 3, .T = 40, .layers = 2}, nn::Form::fused, Dtype::f32);
    const Tensor x = draw({3, 40, 3}, 9, Dtype::f32);
    const Tensor whole = (*net)(x);
    const nn::Carry carry(*net, 3);
    std::int64_t at = 0;
    for (const std::int64_t n : {1, 7, 30, 2}) {
      const Tensor piece = (*net)(slice(x, 1, at, at + n), {.carry = &carry});
      BOOST_TEST(identical(piece, slice(whole, 1, at, at + n)), kind << " at " << at);
      at += n;
    }
  }
}

BOOST_AUTO_TEST_CASE(one_bias_alone_is_refused) {
  const RecurrentWeights<Tensor> one{.weight_ih = zeros({3, 12}), .weight_hh = zeros({4, 12}), .bias_ih = zeros({12})};
  BOOST_CHECK_EXCEPTION(gru_sequence(zeros({5, 2, 3}), one, zeros({2, 4})), ShapeError, [](const Error& e) {
    return std::string(e.what()).find("weight_ih, weight_hh and, where there are any, two biases") != std::string::npos;
  });
}

/// Only the requested gradients are computed: the others cost nothing and stay undefined.
BOOST_AUTO_TEST_CASE(gradients_of_constants_are_not_formed) {
  const nn::Gru gru(3, 4, {.seed = 1});
  const RecurrentWeights<Tensor> w = nn::values_of(gru.weights());
  const Tensor x = draw({2, 5, 3}, 1, Dtype::f32), h0 = zeros({2, 4});
  struct Sizes final : Recorder {
    std::vector<std::int64_t> numels;
    void record(const Primitive& op, const Attrs&, Inputs, std::span<Tensor> out) override {
      if (op.name != "gru_sequence_grad") return;
      for (const Tensor& t : out) numels.push_back(t.numel());
    }
    void read(const Variable&, Tensor&) override {}
    bool write(const Variable&, const Tensor&) override { return false; }
  } sizes;
  Tape tape;
  const Tensor in = tape.watch(x);
  const Recording recording(sizes);
  const Tensors y = gru_sequence(in, w, h0, {.batch_first = true});
  (void)tape.grad(sum(y[0]), {in});
  // x, h0, weight_ih, weight_hh, bias_ih, bias_hh
  const std::vector<std::int64_t> wanted = {30, 0, 0, 0, 0, 0};
  BOOST_TEST(sizes.numels == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
