// Fifteen wrong GRUs: each returns results of the right shapes, and is detected by a case of the fixture.
#include <functional>

#include "recurrent_cases.h"

using namespace ferrite;
using recurrent::Case;
using recurrent::Config;
using support::distance;

namespace {

using Results = Tensors;

/// Applies f to the three blocks of gates (last axis) of every parameter.
void each_gate_block(const Case& c, const std::function<void(Tensors& gates, const Parameter& p)>& f) {
  for (const Parameter& p : c.parameters) {
    Tensors gates = chunk(p.peek(), 3, -1);
    f(gates, p);
    p.assign(concat(gates, -1));
  }
}

Results with_exchanged(const Case& c, std::size_t a, std::size_t b) {
  each_gate_block(c, [&](Tensors& gates, const Parameter&) { std::swap(gates[a], gates[b]); });
  return c.run(c.x, c.h0, {});
}

Results bias_outside_reset(const Case& c) {
  Tensor moved;
  each_gate_block(c, [&](Tensors& gates, const Parameter& p) {
    if (p.name().starts_with("bias_hh")) moved = std::exchange(gates[2], zeros_like(gates[2]));
  });
  each_gate_block(c, [&](Tensors& gates, const Parameter& p) {
    if (p.name().starts_with("bias_ih")) gates[2] = gates[2] + moved;
  });
  return c.run(c.x, c.h0, {});
}

Results reset_before_product(const Case& c) {
  const nn::Gru other(c.config.D, c.config.H, {.layers = c.config.layers, .reset_after = false},
                      {.dtype = Dtype::f64});  // has no fused form
  nn::copy_values(*c.layer, other);
  return c.in_torch_form(other.run(c.x, {.state = c.h0}));
}

Results update_inverted(const Case& c) {
  each_gate_block(c, [](Tensors& gates, const Parameter&) { gates[1] = -gates[1]; });  // z becomes 1 - z
  return c.run(c.x, c.h0, {});
}

Results recurrent_bias_dropped(const Case& c) {
  for (const Parameter& p : c.parameters)
    if (p.name().starts_with("bias_hh")) p.assign(zeros_like(p.peek()));
  return c.run(c.x, c.h0, {});
}

/// Runs one direction of a bidirectional layer as a separate layer.
Results backward_not_reversed(const Case& c) {
  nn::RecurrentResult parts[2];
  for (const int d : {0, 1}) {
    const nn::Gru one(c.config.D, c.config.H, {.form = c.layer->sizes().form}, {.dtype = Dtype::f64});
    const nn::RecurrentWeights<Parameter>& w = c.layer->weights(0, d == 1);
    one.weights().weight_ih.assign(w.weight_ih.peek());
    one.weights().weight_hh.assign(w.weight_hh.peek());
    one.weights().bias_ih.assign(w.bias_ih.peek());
    one.weights().bias_hh.assign(w.bias_hh.peek());
    parts[d] = one.run(c.x, {.state = select(c.h0, 0, d)});
  }
  return c.in_torch_form({concat({parts[0].output, parts[1].output}, -1), stack({parts[0].state, parts[1].state}), {}});
}

/// Runs with initial states in another order: [L, 2, ...] with one of the two axes flipped.
Results with_states_flipped(const Case& c, std::int64_t axis) {
  const Shape s = c.h0.shape();
  const Tensor by_direction = reshape(c.h0, {c.config.layers, -1, s[1], s[2]});
  return c.run(c.x, reshape(contiguous(flip(by_direction, {axis})), s), {});
}

Results directions_joined_wrongly(const Case& c) {
  Results r = c.run(c.x, c.h0, {});
  const Tensors halves = chunk(r[0], 2, -1);
  r[0] = concat({halves[1], halves[0]}, -1);
  return r;
}

Results lengths_ignored(const Case& c) { return c.in_torch_form(c.layer->run(c.x, {.state = c.h0})); }

Results state_of_the_last_step(const Case& c) {
  Results r = c.run(c.x, c.h0, {});
  r[1] = lengths_ignored(c)[1];
  return r;
}

Results dropout_after_the_last_layer(const Case& c) {
  Results r = c.run(c.x, c.h0, {});
  r[0] = r[0] * 0;
  return r;
}

struct Wrong {
  const char* name;
  std::function<bool(const Config&)> found_by;  ///< whether a case must detect it; the first such case is used
  std::function<Results(const Case&)> run;
};

bool plain(const Config& c) { return c.layers == 1 && !c.bidirectional && c.bias && c.states && !c.ragged && c.T > 1; }
bool both_ways(const Config& c) {
  return c.layers == 1 && c.bidirectional && c.bias && c.states && !c.ragged && c.T > 1;
}
bool with_lengths(const Config& c) { return c.layers == 1 && !c.bidirectional && c.ragged && c.states; }
bool two_layers(const Config& c) { return c.layers == 2 && !c.bidirectional && c.states && !c.ragged && !c.dropout; }

const std::vector<Wrong>& wrong_grus() {
  static const std::vector<Wrong> all = {
      {"gates r and z exchanged", plain, [](const Case& c) { return with_exchanged(c, 0, 1); }},
      {"gates r and n exchanged", plain, [](const Case& c) { return with_exchanged(c, 0, 2); }},
      {"gates z and n exchanged", plain, [](const Case& c) { return with_exchanged(c, 1, 2); }},
      {"bias outside the reset product", plain, bias_outside_reset},
      {"reset before the product", plain, reset_before_product},
      {"update inverted", plain, update_inverted},
      {"recurrent bias dropped", plain, recurrent_bias_dropped},
      {"initial state ignored", plain, [](const Case& c) { return c.run(c.x, {}, {}); }},
      {"backward direction not reversed", both_ways, backward_not_reversed},
      {"states swapped between directions", both_ways, [](const Case& c) { return with_states_flipped(c, 1); }},
      {"directions joined in the wrong order", both_ways, directions_joined_wrongly},
      {"states swapped between layers", two_layers, [](const Case& c) { return with_states_flipped(c, 0); }},
      {"lengths ignored", with_lengths, lengths_ignored},
      {"state of the last step, not the last valid one", with_lengths, state_of_the_last_step},
      {"dropout after the last layer", [](const Config& c) { return c.dropout && c.layers == 2; },
       dropout_after_the_last_layer},
  };
  return all;
}

/// Returns the first sound case of the fixture with which a wrong GRU is compared: batch first, and without NaN.
int case_for(const Wrong& wrong) {
  for (int k = 0; k < Case::count(); ++k) {
    const Config c = Case::read_config(k);
    if (c.kind != "gru" || c.layout != recurrent::batch_first || !wrong.found_by(c)) continue;
    const Case whole(k, Dtype::f64);
    if (whole.lengths.defined() && amin(whole.lengths).item<std::int64_t>() == c.T) continue;
    if (std::isfinite(sum(whole.x).item<double>())) return k;
  }
  return -1;
}

double error_of(const Case& c, const Results& r) {
  double worst = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    BOOST_REQUIRE(r[i].shape() == c.wanted[i].shape());  // a wrong shape would be too easy to detect
    worst = std::max(worst, distance(r[i], c.wanted[i]));
  }
  return worst;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wrong_gru)

BOOST_AUTO_TEST_CASE(each_is_found_by_a_case) {
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::scan, nn::Form::fused})
    for (const Wrong& wrong : wrong_grus()) {
      const int k = case_for(wrong);
      BOOST_TEST_CONTEXT(wrong.name << ", case " << k << ", " << recurrent::form_name(form)) {
        BOOST_REQUIRE(k >= 0);
        const Case right(k, Dtype::f64, form);
        BOOST_TEST(error_of(right, right.run(right.x, right.h0, {})) < 1e-12);
        const Case c(k, Dtype::f64, form);
        BOOST_TEST(error_of(c, wrong.run(c)) > 1e-3);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
