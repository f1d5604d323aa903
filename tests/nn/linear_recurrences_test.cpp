// Properties of all layers that carry states over sequences: lengths, resets, states, pieces, streams, copies, compiled
// programs, long sequences, errors. tests/golden compares their values with packages.
#include <functional>
#include <limits>
#include <memory>

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/recurrent/lru.h"
#include "ferrite/nn/recurrent/mamba.h"
#include "ferrite/nn/recurrent/min_gru.h"
#include "ferrite/nn/recurrent/s5.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/norms.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

using Made = std::unique_ptr<nn::SequenceLayer>;
using Make = std::function<Made(const nn::Init&)>;

template <class L, class... Arguments>
Make make(Arguments... arguments) {
  return [=](const nn::Init& init) { return std::make_unique<L>(arguments..., init); };
}

/// Layers of five features.
const std::vector<Make> kLayers = {
    make<nn::MinGru>(5, 7),
    make<nn::MinGru>(5, 20, nn::MinGruOptions{.proj_size = 3, .bias = true}),
    make<nn::MinLstm>(5, 7),
    make<nn::MinLstm>(5, 4, nn::MinLstmOptions{.proj_size = 6, .bias = true}),
    make<nn::Lru>(5, 6),
    make<nn::Lru>(5, 9, nn::LruOptions{.r_min = 0.5, .r_max = 0.9, .max_phase = 1}),
    make<nn::RgLru>(nn::RgLruOptions{.features = 5}),
    make<nn::RgLru>(nn::RgLruOptions{.features = 5, .heads = 5}),
    make<nn::S5>(5, 6, nn::S5Options{.blocks = 2}),
    make<nn::S5>(5, 4, nn::S5Options{.bilinear = true, .step_scale = 0.5}),
    make<nn::S5>(5, 4, nn::S5Options{.bidirectional = true}),
    make<nn::Mamba>(nn::MambaOptions{.features = 5, .state = 3}),
    make<nn::Mamba>(nn::MambaOptions{.features = 5, .state = 17, .expand = 1, .kernel_size = 1, .dt_rank = 2}),
};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor drawn(const Shape& s, std::uint64_t seed, Dtype t = Dtype::f32) { return uniform(s, {.seed = seed}, -1, 1, t); }

bool all_of_finite(const Tensor& x) { return all(isfinite(x)).item<bool>(); }

/// Calls f(layer) for all of them, or for all that only run forward.
template <class F>
void each(bool causal, const F& f, Dtype dtype = Dtype::f32) {
  for (const Make& m : kLayers) {
    const Made layer = m({.seed = 3, .dtype = dtype});
    if (causal && !layer->causal()) continue;
    BOOST_TEST_CONTEXT(layer->summary()) { f(*layer); }
  }
}

/// Returns the gradients of x and of all parameters, and the output.
Tensors gradients(const nn::SequenceLayer& layer, const Tensor& x, const nn::Context& context, const Tensor& dy) {
  Tape tape;
  const Tensor watched = tape.watch(x);
  const Tensor y = layer(watched, context);
  std::vector<Tensor> of = {watched};
  for (const auto& p : layer.named_parameters()) of.push_back(p.variable.value());
  Tensors g = tape.grad(sum(y * slice(dy, 2, 0, y.shape()[2])), of);
  g.push_back(y);
  return g;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_recurrences)

BOOST_AUTO_TEST_CASE(gradients_are_those_of_differences_to_second_order) {
  each(
      false,
      [](const nn::SequenceLayer& layer) {
        const Tensor x = drawn({2, 3, 5}, 1, Dtype::f64);
        std::vector<Parameter> parameters = layer.parameters();
        const auto f = [&] { return sum(square(layer(x))); };
        Tape tape;
        const Tensor loss = f();
        const Tensors g = tape.grad(loss, parameters);
        for (std::size_t k = 0; k < parameters.size(); ++k) {
          const Tensor before = parameters[k].peek(), way = drawn(before.shape(), 9 + k, Dtype::f64);
          parameters[k].assign(before + way * 1e-6);
          const double up = f().item<double>();
          parameters[k].assign(before - way * 1e-6);
          const double down = f().item<double>();
          parameters[k].assign(before);
          const double wanted = (up - down) / 2e-6, got = sum(g[k] * way).item<double>();
          BOOST_TEST(std::abs(wanted - got) <= 1e-6 * std::max(1.0, std::abs(wanted)));
        }
        BOOST_TEST(gradcheck([&](const Tensors& in) { return sum(square(layer(in[0]))); }, {x}, {.order = 2}).ok);
      },
      Dtype::f64);
}

/// Rows have the results that they have alone at their lengths; steps beyond are 0, are not read and get no gradient.
BOOST_AUTO_TEST_CASE(lengths_are_those_of_rows_alone) {
  each(false, [](const nn::SequenceLayer& layer) {
    const Tensor lengths = Tensor::from<std::int64_t>({6, 1, 4}, {3});
    const Tensor valid = unsqueeze(lt(arange(6), unsqueeze(lengths, 1)), 2);
    const Tensor x = where(valid, drawn({3, 6, 5}, 1), kNan), dy = drawn({3, 6, 16}, 2);
    const nn::RecurrentResult all = layer.run(x, {.lengths = lengths});
    const Tensors g = gradients(layer, x, {.lengths = lengths}, dy);
    for (const Tensor& t : g) BOOST_TEST(all_of_finite(t));
    std::int64_t row = 0;
    for (const std::int64_t n : lengths.to_vector<std::int64_t>()) {
      const auto part = [&](const Tensor& t) { return slice(slice(t, 0, row, row + 1), 1, 0, n); };
      const nn::RecurrentResult alone = layer.run(part(x));
      BOOST_TEST(identical(part(all.output), alone.output));
      BOOST_TEST(
          identical(slice(slice(all.output, 0, row, row + 1), 1, n, 6), zeros({1, 6 - n, all.output.shape()[2]})));
      if (alone.state.defined()) BOOST_TEST(identical(slice(all.state, 0, row, row + 1), alone.state));
      BOOST_TEST(identical(part(g[0]), gradients(layer, part(x), {}, part(dy))[0]));
      BOOST_TEST(identical(slice(slice(g[0], 0, row, row + 1), 1, n, 6), zeros({1, 6 - n, 5})));
      ++row;
    }
  });
}

/// After a reset a sequence starts over, whatever was before, and no gradient crosses it.
BOOST_AUTO_TEST_CASE(resets_begin_anew) {
  each(true, [](const nn::SequenceLayer& layer) {
    const Tensor mask = Tensor::from<std::int64_t>({0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0}, {2, 6});
    const Tensor resets = eq(mask, 1), x = drawn({2, 6, 5}, 1), dy = drawn({2, 6, 16}, 2);
    const Tensor from = drawn({2, layer.state_size()}, 3);
    const auto row = [](const Tensor& t, std::int64_t r, std::int64_t a, std::int64_t b) {
      return slice(slice(t, 0, r, r + 1), 1, a, b);
    };
    const nn::RecurrentResult all = layer.run(x, {.reset_mask = resets, .state = from});
    const nn::RecurrentResult before = layer.run(row(x, 0, 0, 3), {.state = slice(from, 0, 0, 1)});
    const nn::RecurrentResult after = layer.run(row(x, 0, 3, 6));
    BOOST_TEST(identical(row(all.output, 0, 0, 3), before.output));
    BOOST_TEST(identical(row(all.output, 0, 3, 6), after.output));
    BOOST_TEST(identical(slice(all.state, 0, 0, 1), after.state));
    BOOST_TEST(identical(row(all.output, 1, 0, 6), layer.run(row(x, 1, 0, 6)).output));
    const Tensor last = unsqueeze(eq(arange(6), 5), 0);  // a reset before the last step
    BOOST_TEST(identical(layer.run(row(x, 0, 0, 6), {.reset_mask = last}).state, layer.run(row(x, 0, 5, 6)).state));
    const Tensor poisoned = where(reshape(lt(arange(6), 3), {1, 6, 1}), kNan, row(x, 0, 0, 6));
    BOOST_TEST(identical(row(layer(poisoned, {.reset_mask = slice(resets, 0, 0, 1)}), 0, 3, 6), after.output));
    const Tensor late = where(reshape(ge(arange(6), 3), {1, 6, 1}), dy, 0);
    const Tensor g = gradients(layer, x, {.reset_mask = resets}, late)[0];
    BOOST_TEST(identical(row(g, 0, 0, 3), zeros({1, 3, 5})));
  });
}

BOOST_AUTO_TEST_CASE(pieces_and_streams_have_the_bits_of_the_whole) {
  each(true, [](const nn::SequenceLayer& layer) {
    const Tensor x = drawn({2, 11, 5}, 1);
    const nn::RecurrentResult whole = layer.run(x);
    const nn::RecurrentResult first = layer.run(slice(x, 1, 0, 4)),
                              rest = layer.run(slice(x, 1, 4, 11), {.state = first.state});
    BOOST_TEST(identical(concat({first.output, rest.output}, 1), whole.output));
    BOOST_TEST(identical(rest.state, whole.state));

    nn::Carry carry(layer, 2);
    std::vector<Tensor> parts;
    for (const Tensor& piece : nn::pieces(x, 4)) parts.push_back(layer(piece, {.carry = &carry}));
    BOOST_TEST(identical(concat(parts, 1), whole.output));

    nn::Stream stream = layer.stream(2);
    BOOST_TEST(stream.on_tensors() == 0U);
    const std::size_t N = static_cast<std::size_t>(whole.output.shape()[2]);
    std::vector<float> y(2 * N), in;
    for (std::int64_t t = 0; t < 11; ++t) {
      in = contiguous(select(x, 1, t)).to_vector<float>();
      stream.step(in, y);
      BOOST_TEST(identical(Tensor::from(y, {2, static_cast<std::int64_t>(N)}), select(whole.output, 1, t)));
    }
    BOOST_TEST(identical(layer.run(slice(x, 1, 0, 1)).output, slice(whole.output, 1, 0, 1)));
    const nn::RecurrentResult alone = layer.run(select(x, 0, 1));
    BOOST_TEST(identical(alone.output, select(whole.output, 0, 1)));
    BOOST_TEST(identical(alone.state, select(whole.state, 0, 1)));
  });
}

BOOST_AUTO_TEST_CASE(copies_and_compiled_programs_have_the_same_bits) {
  each(false, [](const nn::SequenceLayer& layer) {
    const Tensor x = drawn({2, 9, 5}, 1), y = layer(x);
    BOOST_TEST(identical((*layer.clone())(x), y));
    BOOST_TEST(identical(layer.compiled()(x), y));
    BOOST_TEST(layer.clone()->summary() == layer.summary());
    const auto step = compile([&](const Tensor& in) {
      Tape tape;
      const Tensor watched = tape.watch(in);
      return tape.grad(sum(square(layer(watched))), {watched})[0];
    });
    Tape tape;
    const Tensor watched = tape.watch(x);
    BOOST_TEST(identical(step(x), tape.grad(sum(square(layer(watched))), {watched})[0]));
  });
}

BOOST_AUTO_TEST_CASE(long_sequences_stay_finite) {
  each(false, [](const nn::SequenceLayer& layer) {
    const Tensor x = drawn({1, 100000, 5}, 1);
    const Tensor y = layer(x);
    BOOST_TEST(all_of_finite(y));
    if (layer.causal()) BOOST_TEST(identical(slice(y, 1, 0, 50), layer(slice(x, 1, 0, 50))));
  });
}

BOOST_AUTO_TEST_CASE(refuse_what_does_not_fit) {
  const nn::MinGru layer(5, 7, {.seed = 1});
  const Tensor x = zeros({2, 3, 5});
  BOOST_CHECK_EXCEPTION(layer(zeros({2, 3, 4})), ShapeError, says("min_gru: expects [B, T, 5], got [2, 3, 4]"));
  BOOST_CHECK_EXCEPTION(layer(zeros({3, 4})), ShapeError, says("min_gru: expects [T, 5], got [3, 4]"));
  BOOST_CHECK_EXCEPTION(layer(zeros({2, 0, 5})), ShapeError, says("min_gru: the sequence has no steps"));
  BOOST_CHECK_EXCEPTION(layer(zeros({2, 3, 5}, Dtype::f64)), DtypeError, says("min_gru: the weights are f32"));
  BOOST_CHECK_EXCEPTION(layer(x, {.state = zeros({2, 6})}), ShapeError,
                        says("min_gru: expects a state [2, 7], got [2, 6]"));
  BOOST_CHECK_EXCEPTION(layer(x, {.cell = zeros({2, 7})}), ValueError,
                        says("min_gru: the context has an initial memory"));
  BOOST_CHECK_EXCEPTION(layer(x, {.lengths = full({2}, 4, Dtype::i64)}), ShapeError, says("min_gru: a length of 4"));
  BOOST_CHECK_EXCEPTION(layer(x, {.reset_mask = zeros({2, 3})}), ShapeError, says("min_gru: expects a reset mask"));
  const nn::Carry carry(layer, 2);
  BOOST_CHECK_EXCEPTION(layer(x, {.state = zeros({2, 7}), .carry = &carry}), ValueError, says("both an initial state"));
  BOOST_CHECK_EXCEPTION(nn::MinGru(0, 7), ValueError, says("min_gru: sizes must be positive"));
  BOOST_CHECK_EXCEPTION(nn::MinLstm(3, 7, {.proj_size = -1}), ValueError, says("min_lstm: sizes must be positive"));
  BOOST_CHECK_EXCEPTION(nn::Lru(3, 4, {.r_min = 0.9, .r_max = 0.5}), ValueError, says("lru: takes 0 <= r_min < r_max"));
  BOOST_CHECK_EXCEPTION(nn::Lru(3, 0), ValueError, says("lru: sizes must be positive"));
  BOOST_CHECK_EXCEPTION(nn::RgLru({.features = 6, .heads = 4}), ValueError, says("rg_lru: heads must divide"));
  BOOST_CHECK_EXCEPTION(nn::RgLru(nn::RgLruOptions{}), ValueError, says("rg_lru: sizes must be positive"));
  BOOST_CHECK_EXCEPTION(nn::S5(3, 5, {.blocks = 2}), ValueError, says("blocks divide the state"));
  BOOST_CHECK_EXCEPTION(nn::S5(3, 4, {.dt_min = 0.2}), ValueError, says("s5: takes 0 < dt_min <= dt_max"));
  BOOST_CHECK_EXCEPTION(nn::Mamba(nn::MambaOptions{}), ValueError,
                        says("mamba: sizes must be positive, got 0 features"));
  BOOST_CHECK_EXCEPTION(nn::Mamba({.features = 4, .dt_max = 1e-4}), ValueError, says("mamba: takes 0 < dt_min"));
  const nn::S5 both(5, 4, {.bidirectional = true}, {.seed = 1});
  BOOST_CHECK_THROW(both.stream(), ValueError);
  BOOST_TEST(!both.run(x).state.defined());
}

/// The expected values are eigenvalues of the normal part of HiPPO-LegS, computed by numpy.linalg.eigh for four states.
BOOST_AUTO_TEST_CASE(states_begin_where_their_papers_say) {
  const nn::S5 s5(3, 4, {.seed = 1, .dtype = Dtype::f64});
  const Tensor wanted = Tensor::from<double>(
      {-0.5, -4.603293007066848, -0.5, -0.5565011150837443, -0.5, 0.5565011150837433, -0.5, 4.603293007066851}, {4, 2});
  BOOST_TEST(within(s5.Lambda.peek(), wanted, 1e-12));
  const nn::Lru lru(3, 2000, {.r_min = 0.4, .r_max = 0.8}, {.seed = 1, .dtype = Dtype::f64});
  const Tensor r = exp(-exp(lru.nu_log.peek()));
  BOOST_TEST(amin(r).item<double>() >= 0.4);
  BOOST_TEST(amax(r).item<double>() <= 0.8);
  BOOST_TEST(std::abs(mean(square(r)).item<double>() - 0.4) < 0.01);
  BOOST_TEST(within(exp(2 * lru.gamma_log.peek()), 1 - square(r), 1e-12));
  const nn::RgLru gated({.features = 2000}, {.seed = 1, .dtype = Dtype::f64});
  const Tensor a = exp(-8 * softplus(gated.a_param.peek()));
  const nn::Mamba mamba({.features = 300, .state = 4}, {.seed = 1, .dtype = Dtype::f64});
  const Tensor dt = softplus(mamba.dt_bias.peek());
  BOOST_TEST(amin(dt).item<double>() >= 0.001);
  BOOST_TEST(amax(dt).item<double>() <= 0.1 + 1e-12);
  BOOST_TEST(within(exp(mamba.A_log.peek()), expand(arange(1, 5, 1, Dtype::f64), {600, 4}), 1e-12));
  BOOST_TEST(amin(a).item<double>() >= 0.9);
  BOOST_TEST(amax(a).item<double>() <= 0.999);
  // They reach both ends of the ring, and are distributed uniformly in it.
  BOOST_TEST(amin(r).item<double>() < 0.402);
  BOOST_TEST(amax(r).item<double>() > 0.799);
  BOOST_TEST(amin(a).item<double>() < 0.901);
  BOOST_TEST(amax(a).item<double>() > 0.998);
  BOOST_TEST(std::abs(mean(square(a)).item<double>() - (0.9 * 0.9 + 0.999 * 0.999) / 2) < 0.005);
  BOOST_TEST(amin(dt).item<double>() < 0.0012);
  BOOST_TEST(amax(dt).item<double>() > 0.09);
}

/// Gates that are both closed as far as floats allow share the state like gates that are both half open: e^200 is not
/// an f32.
BOOST_AUTO_TEST_CASE(gates_that_are_nearly_closed_share_the_state) {
  for (const auto& [f, i, forget] :
       {std::tuple{-200.0, -200.0, 0.5}, {-200.0, 0.0, 0.0}, {0.0, -200.0, 1.0}, {90.0, 90.0, 0.5}}) {
    Tape tape;
    const Tensor gates = tape.watch(Tensor::from<float>({0, static_cast<float>(f), static_cast<float>(i)}, {1, 1, 3}));
    const Tensor h = nn::min_lstm_scan(gates, ones({1, 1}));  // the candidate of 0 is 1/2
    BOOST_TEST(std::abs(static_cast<double>(h.item<float>()) - (forget + (1 - forget) / 2)) <= 1e-7);
    BOOST_TEST(all_of_finite(tape.grad(sum(h), {gates})[0]));
  }
}

BOOST_AUTO_TEST_SUITE_END()
