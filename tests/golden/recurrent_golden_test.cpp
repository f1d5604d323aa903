// nn::Gru, Lstm, Rnn and their cells compared with torch's: tests/data/make_recurrent_fixtures.py writes the cases.
#include <map>

#include "recurrent_cases.h"

using namespace ferrite;
using recurrent::Case;
using support::within;

namespace {

constexpr double kTolerance = 1e-12;  // f64, docs/numerics.md rule 11

struct Run {
  Tape tape{};
  std::vector<Tensor> inputs{};  // x and the states, watched
  Tensors results{};
  Tensor loss{};
};

void run(const Case& c, Run& r) {
  r.inputs.push_back(r.tape.watch(c.x));
  if (c.h0.defined()) r.inputs.push_back(r.tape.watch(c.h0));
  if (c.c0.defined()) r.inputs.push_back(r.tape.watch(c.c0));
  r.results = c.run(r.inputs[0], c.h0.defined() ? r.inputs[1] : Tensor(), c.c0.defined() ? r.inputs[2] : Tensor());
  r.loss = sum(r.results[0] * c.cotangents[0]);
  for (std::size_t i = 1; i < r.results.size(); ++i) r.loss = r.loss + sum(r.results[i] * c.cotangents[i]);
}

/// Returns the gradients by the inputs, then by the parameters, in torch's orientation.
Tensors gradients(const Case& c, Run& r, const Tensor& of, bool create_graph) {
  Tensors all = r.tape.grad(of, r.inputs, {.retain = true, .create_graph = create_graph});
  const Tensors g = r.tape.grad(of, c.parameters, {.retain = true, .create_graph = create_graph});
  for (std::size_t i = 0; i < g.size(); ++i)
    all.push_back(c.parameters[i].layout() == FileLayout::transposed ? transpose(g[i]) : g[i]);
  return all;
}

void check(int number, Dtype dtype, nn::Form form) {
  const Case c(number, dtype, form);
  Run r;
  run(c, r);
  Tensors all = r.results;
  for (const Tensor& g : gradients(c, r, r.loss, false)) all.push_back(g);
  BOOST_REQUIRE(all.size() == c.wanted.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double tolerance = dtype == Dtype::f64 ? kTolerance : std::max(1e-6, 2 * c.gaps[i]);
    BOOST_TEST(within(all[i], c.wanted[i], tolerance), "result or gradient " << i);
  }
}

void check_double_backward(int number, nn::Form form) {
  const Case c(number, Dtype::f64, form);
  if (!c.config.twice) return;
  Run r;
  run(c, r);
  const Tensors g = gradients(c, r, r.loss, true);
  Tensor total = sum(g[0] * c.directions[0]);
  for (std::size_t i = 1; i < g.size(); ++i) total = total + sum(g[i] * c.directions[i]);
  const Tensors twice = gradients(c, r, total, false);
  for (std::size_t i = 0; i < twice.size(); ++i)
    BOOST_TEST(within(twice[i], c.wanted_twice[i], kTolerance), "second gradient " << i);
}

template <class F>
void each_case(F&& f) {
  for (int k = 0; k < Case::count(); ++k) BOOST_TEST_CONTEXT("case " << k << ", " << Case::read_config(k).kind) f(k);
}

template <class F>
void each_case_and_form(F&& f) {
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::scan, nn::Form::fused})
    BOOST_TEST_CONTEXT(recurrent::form_name(form)) each_case([&](int k) { f(k, form); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(recurrent_layers)

BOOST_AUTO_TEST_CASE(the_fixture_covers_the_options) {
  std::map<std::string, std::set<std::vector<std::int64_t>>> distinct;
  int twice = 0;
  each_case([&](int k) {
    const std::vector<std::int64_t> v = Case::opened().tensor(Case::name(k) + "/config").to_vector<std::int64_t>();
    const recurrent::Config c(v);
    distinct[c.kind].insert({v.begin(), v.begin() + 9});
    twice += c.twice;
  });
  BOOST_TEST(distinct["gru"].size() >= 150u);
  BOOST_TEST(distinct["lstm"].size() >= 60u);
  BOOST_TEST(distinct["rnn_tanh"].size() + distinct["rnn_relu"].size() >= 30u);
  for (const char* cell : {"gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell"})
    BOOST_TEST(distinct[cell].size() == 8u);
  BOOST_TEST(twice >= 20);
}

BOOST_AUTO_TEST_CASE(values_and_gradients_f64) {
  each_case_and_form([](int k, nn::Form form) { check(k, Dtype::f64, form); });
}

BOOST_AUTO_TEST_CASE(values_and_gradients_f32) {
  each_case_and_form([](int k, nn::Form form) { check(k, Dtype::f32, form); });
}

BOOST_AUTO_TEST_CASE(double_backward) {
  each_case_and_form([](int k, nn::Form form) { check_double_backward(k, form); });
}

/// No gradient reaches padding that holds NaN: it is exactly 0.
BOOST_AUTO_TEST_CASE(gradients_into_padding_are_zero) {
  int seen = 0;
  each_case([&](int k) {
    const Case c(k, Dtype::f32);
    if (!c.config.ragged) return;
    Run r;
    run(c, r);
    const Tensor g = r.tape.grad(r.loss, r.inputs)[0];
    const Tensor by_row = c.config.layout == recurrent::time_first ? transpose(g, 0, 1) : g;
    for (std::int64_t b = 0; b < c.config.B; ++b) {
      const Tensor rest = slice(select(by_row, 0, b), 0, c.config.lengths[static_cast<std::size_t>(b)]);
      for (const double v : support::doubles(rest)) BOOST_TEST((v == 0));
      seen += rest.numel() > 0;
    }
  });
  BOOST_TEST(seen > 100);
}

BOOST_AUTO_TEST_SUITE_END()
