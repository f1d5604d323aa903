// Errors of eager execution are also thrown by compiled, scanned and differentiated programs, with the same message,
// before a variable has changed.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f32) {
  return uniform(shape, {23, stream, 0}, -1, 1, dtype);
}
Tensor integers(std::initializer_list<std::int64_t> values) { return Tensor::from<std::int64_t>(values); }

/// Checks that a function of x and integers refuses bad ones with the same message eagerly, compiled after good ones,
/// and compiled under a tape.
template <class F>
void check_refused(F f, const Tensor& x, const Tensor& good,
                   std::initializer_list<std::pair<Tensor, const char*>> bad) {
  const auto compiled = compile(f);
  BOOST_TEST(identical(compiled(x, good), f(x, good)));
  for (const auto& [values, words] : bad) {
    BOOST_CHECK_EXCEPTION((void)f(x, values), ShapeError, says(words));
    BOOST_CHECK_EXCEPTION((void)compiled(x, values), ShapeError, says(words));
    BOOST_CHECK_EXCEPTION((void)compile(f)(x, values), ShapeError, says(words));
    Tape tape;
    const Tensor watched = tape.watch(x);
    BOOST_CHECK_EXCEPTION((void)compiled(watched, values), ShapeError, says(words));
  }
  BOOST_TEST(identical(compiled(x, good), f(x, good)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(refusals)

BOOST_AUTO_TEST_CASE(labels_outside_the_classes) {
  check_refused([](const Tensor& x, const Tensor& y) { return nn::cross_entropy(x, y); }, draw({3, 4}, 1),
                integers({0, 3, 1}),
                {{integers({0, -1, 1}), "cross_entropy: target -1 lies outside 0..3"},
                 {integers({4, 0, 1}), "cross_entropy: target 4 lies outside 0..3"}});
}

BOOST_AUTO_TEST_CASE(lengths_of_recurrent_layers_in_every_form) {
  for (const nn::Form form : {nn::Form::fused, nn::Form::unrolled, nn::Form::scan}) {
    const nn::Gru gru(3, 4, {.form = form}, {.seed = 1});
    check_refused([&](const Tensor& x, const Tensor& n) { return gru(x, {.lengths = n}); }, draw({2, 5, 3}, 1),
                  integers({5, 1}),
                  {{integers({5, 0}), "gru: a length of 0 lies outside 1..5"},
                   {integers({-1, 2}), "gru: a length of -1 lies outside 1..5"},
                   {integers({5, 7}), "gru: a length of 7 lies outside 1..5"}});
  }
}

BOOST_AUTO_TEST_CASE(lengths_of_what_follows_a_recurrent_layer) {
  const nn::LastStep last;
  const nn::MeanOverTime average;
  check_refused([&](const Tensor& x, const Tensor& n) { return last(x, {.lengths = n}); }, draw({2, 5, 3}, 1),
                integers({5, 1}),
                {{integers({0, 2}), "last_step: a length of 0 lies outside 1..5"},
                 {integers({2, 6}), "last_step: a length of 6 lies outside 1..5"}});
  check_refused([&](const Tensor& x, const Tensor& n) { return average(x, {.lengths = n}); }, draw({2, 5, 3}, 1),
                integers({5, 1}),
                {{integers({0, 2}), "mean_over_time: a length of 0 lies outside 1..5"},
                 {integers({2, 6}), "mean_over_time: a length of 6 lies outside 1..5"}});
}

BOOST_AUTO_TEST_CASE(lengths_of_sequences_and_scans_lie_in_0_to_T) {
  const RecurrentWeights<Tensor> w{draw({3, 12}, 2), draw({4, 12}, 3)};
  const Tensor h = draw({2, 4}, 4);
  const RecurrentWeights<Tensor> lstm{draw({3, 16}, 2), draw({4, 16}, 3)}, rnn{draw({3, 4}, 2), draw({4, 4}, 3)};
  const auto outside = [](const char* who) { return std::string(who) + " lies outside 0..5"; };
  const std::string too_long = outside("_sequence: a length of 6"), negative = outside("_sequence: a length of -1");
  const auto options = [](const Tensor& n) { return SequenceOptions{.batch_first = true, .lengths = n}; };
  const Tensor x = draw({2, 5, 3}, 1);
  const auto check = [&](auto f) {
    check_refused(f, x, integers({0, 5}),
                  {{integers({6, 2}), too_long.c_str()}, {integers({2, -1}), negative.c_str()}});
  };
  check([&](const Tensor& v, const Tensor& n) { return gru_sequence(v, w, h, options(n))[0]; });
  check([&](const Tensor& v, const Tensor& n) { return lstm_sequence(v, lstm, {h, h}, options(n))[0]; });
  check([&](const Tensor& v, const Tensor& n) { return rnn_sequence(v, rnn, h, false, options(n))[0]; });
  const auto sum_up = [](const Tensors& c, const Tensors& s) -> ScanStep { return {{c[0] + s[0]}, {c[0]}}; };
  check_refused(
      [&](const Tensor& v, const Tensor& n) {
        return scan(sum_up, {zeros({2, 3})}, {permute(v, {1, 0, 2})}, {.lengths = n}).carry[0];
      },
      x, integers({0, 5}),
      {{integers({6, 2}), "scan: a length of 6 lies outside 0..5"},
       {integers({2, -1}), "scan: a length of -1 lies outside 0..5"}});
}

/// For a row of no steps the outputs are 0, and the state and the gradients pass unchanged.
BOOST_AUTO_TEST_CASE(a_sequence_of_no_steps_keeps_its_state) {
  const RecurrentWeights<Tensor> w{draw({3, 12}, 2, Dtype::f64), draw({4, 12}, 3, Dtype::f64)};
  const Tensor x = draw({2, 5, 3}, 1, Dtype::f64), h = draw({2, 4}, 4, Dtype::f64);
  for (const bool reverse : {false, true}) {
    const SequenceOptions options{.reverse = reverse, .batch_first = true, .lengths = integers({0, 3})};
    Tape tape;
    const Tensor tx = tape.watch(x), th = tape.watch(h);
    const Tensors out = gru_sequence(tx, w, th, options);
    BOOST_TEST(identical(select(out[1].unmarked(), 0, 0), select(h, 0, 0)));
    BOOST_TEST(identical(select(out[0].unmarked(), 0, 0), zeros({5, 4}, Dtype::f64)));
    const Tensors g = tape.grad(sum(out[0]) + sum(out[1] * out[1]), {tx, th});
    BOOST_TEST(identical(select(g[0], 0, 0), zeros({5, 3}, Dtype::f64)));
    BOOST_TEST(identical(select(g[1], 0, 0), 2 * select(h, 0, 0)));
  }
}

BOOST_AUTO_TEST_CASE(tokens_and_indices) {
  const nn::Embedding table(4, 2, {.seed = 1});
  check_refused([&](const Tensor&, const Tensor& n) { return table(n); }, draw({1}, 1), integers({0, 3}),
                {{integers({0, -1}), "embedding: token -1 lies outside 0..3"},
                 {integers({4, 0}), "embedding: token 4 lies outside 0..3"}});
  check_refused([](const Tensor& x, const Tensor& n) { return index_select(x, 0, n); }, draw({4, 2}, 1),
                integers({-4, 3}), {{integers({-5, 0}), "index_select: index -5 is out of range"}});
  check_refused([](const Tensor& x, const Tensor& n) { return x * one_hot(n, 4); }, draw({2, 4}, 1), integers({0, 3}),
                {{integers({-1, 3}), "one_hot: index -1 lies outside 0..3"},
                 {integers({0, 4}), "one_hot: index 4 lies outside 0..3"}});
}

/// A check stays even if its result is not read.
BOOST_AUTO_TEST_CASE(what_nobody_reads_is_checked_too) {
  const auto with = [](auto read) {
    return [read](const Tensor& x, const Tensor& n) {
      read(x, n);
      return x + 1;
    };
  };
  const Tensor x = draw({4, 2}, 1);
  check_refused(with([](const Tensor&, const Tensor& n) { (void)checked(n, 0, 3, "test: number"); }), x,
                integers({0, 3}), {{integers({0, 4}), "test: number 4 lies outside 0..3"}});
  check_refused(with([](const Tensor& v, const Tensor& n) { (void)index_select(v, 0, n); }), x, integers({0, 3}),
                {{integers({0, 4}), "index_select: index 4"}});
  check_refused(with([](const Tensor& v, const Tensor& n) { (void)index_select(slice(v, 1, 0, 0), 0, n); }), x,
                integers({0, 3}), {{integers({0, 4}), "index_select: index 4"}});
  check_refused(with([](const Tensor& v, const Tensor& n) {
                  (void)scatter_add(zeros({2, 1}), 0, reshape(n, {-1, 1}), slice(slice(v, 0, 0, 2), 1, 0, 1));
                }),
                x, integers({0, 1}), {{integers({0, 2}), "scatter_add: index 2"}});
  check_refused(
      with([](const Tensor& v, const Tensor& n) {
        (void)rnn_sequence(reshape(v, {4, 2, 1}), {ones({1, 1}), ones({1, 1})}, zeros({2, 1}), false, {.lengths = n});
      }),
      x, integers({0, 4}), {{integers({0, 5}), "rnn_sequence: a length of 5"}});
}

/// All places hold the same value, so nothing needs to be picked, but the index is still checked.
BOOST_AUTO_TEST_CASE(picking_from_what_is_the_same_everywhere) {
  check_refused(
      [](const Tensor& x, const Tensor& n) {
        return gather(expand(exp(x), {1, 16}) * 2, 1, reshape(n, {1, -1}));
      },
      draw({1, 1}, 1), integers({0, 15}), {{integers({0, 16}), "gather: index 16"}});
}

BOOST_AUTO_TEST_CASE(inside_the_body_of_a_scan) {
  const Tensor table = draw({4, 2}, 1);
  for (const std::int64_t steps : {1, 6}) {
    const Tensor good = full({steps}, 3, Dtype::i64);
    const Tensor bad = steps == 1 ? integers({4}) : concat({full({steps - 1}, 3, Dtype::i64), integers({4})});
    const auto read = [&](const Tensor& x, const Tensor& n) {
      const auto body = [&](const Tensors& c, const Tensors& s) -> ScanStep {
        return {{c[0] + index_select(table, 0, reshape(s[0], {1}))}, {}};
      };
      return scan(body, {x}, {n}).carry[0];
    };
    const auto unread = [&](const Tensor& x, const Tensor& n) {
      const auto body = [&](const Tensors& c, const Tensors& s) -> ScanStep {
        (void)index_select(table, 0, reshape(s[0], {1}));
        return {{c[0] + 1}, {}};
      };
      return scan(body, {x}, {n}).carry[0];
    };
    const auto scan_unread = [&](const Tensor& x, const Tensor& n) {  // nothing reads the results of the scan
      (void)read(x, n);
      return x + 1;
    };
    const auto unread_twice = [&](const Tensor& x, const Tensor& n) {
      (void)unread(x, n);
      return x + 1;
    };
    const auto same_in_all_steps = [&](const Tensor& x, const Tensor& n) {
      const auto body = [&](const Tensors& c, const Tensors&) -> ScanStep {
        (void)checked(n, 0, 3, "index_select: index");
        return {{c[0] + 1}, {}};
      };
      return scan(body, {x}, {}, {.steps = steps}).carry[0];
    };
    const Tensor x = draw({1, 2}, 2);
    const auto words = {std::pair<Tensor, const char*>(bad, "index_select: index 4")};
    check_refused(read, x, good, words);
    check_refused(unread, x, good, words);
    check_refused(scan_unread, x, good, words);
    check_refused(unread_twice, x, good, words);
    check_refused(same_in_all_steps, x, good, words);
  }
}

/// A wrong label in a compiled training step leaves parameters, moments and the count of steps as they were.
BOOST_AUTO_TEST_CASE(nothing_is_written_where_a_label_is_refused) {
  const nn::Linear layer(3, 4, {.seed = 1});
  nn::Adam adam(layer.parameters(), {.learning_rate = 0.1});
  const auto step = compile([&](const Tensor& x, const Tensor& y) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(layer(x), y);
    adam.step(tape.grad(loss, layer.parameters()));
    (void)checked(y, 0, 2, "test: label");  // after the step
    return loss;
  });
  const Tensor x = draw({2, 3}, 1);
  for (int i = 0; i < 3; ++i) (void)step(x, integers({0, 2}));
  const auto copies = [&] {
    std::vector<Tensor> all;
    for (const auto& s : adam.states()) all.push_back(s.variable.peek() + 0);
    for (const Parameter& p : layer.parameters()) all.push_back(p.peek() + 0);
    return all;
  };
  const std::vector<Tensor> before = copies();
  BOOST_CHECK_EXCEPTION((void)step(x, integers({0, 4})), ShapeError, says("cross_entropy: target 4"));
  BOOST_CHECK_EXCEPTION((void)step(x, integers({0, 3})), ShapeError, says("test: label 3 lies outside 0..2"));
  const std::vector<Tensor> after = copies();
  for (std::size_t i = 0; i < before.size(); ++i) BOOST_TEST(identical(after[i], before[i]));
}

BOOST_AUTO_TEST_CASE(checked_is_the_identity) {
  const Tensor x = draw({3, 2}, 1, Dtype::f64);
  Tape tape;
  const Tensor v = tape.watch(x);
  const Tensor y = checked(v, -1.0, 1.0, "test: share");
  BOOST_TEST(identical(y.unmarked(), x));
  BOOST_TEST(identical(tape.grad(sum(y * y), {v})[0], 2 * x));
  const Tensor nan = full({1}, std::numeric_limits<double>::quiet_NaN());
  BOOST_CHECK_EXCEPTION((void)checked(nan, -1.0, 1.0, "test: share"), ValueError,
                        says("test: share nan lies outside -1..1"));
  const Tensor low = Tensor::from({0.75, -0.25});
  BOOST_CHECK_EXCEPTION((void)checked(low, 0.5, 1.0, "test: share"), ValueError,
                        says("test: share -0.25 lies outside 0.5..1"));
  BOOST_CHECK_EXCEPTION((void)checked(lt(x, 0), 0, 1, "test: flag"), DtypeError, says("bool is not supported"));
}

/// The text of a program keeps its error messages.
BOOST_AUTO_TEST_CASE(the_text_of_a_program_keeps_the_words) {
  const Graph g = trace([](const Tensors& in) { return Tensors{checked(in[0], 0, 3, "test: a \"quoted\" number")}; },
                        std::vector<Spec>{{{2}, Dtype::i64}});
  const Graph back = parse_graph(g.str());
  BOOST_TEST(back.str() == g.str());
  BOOST_CHECK_EXCEPTION((void)Plan(back).run({integers({0, 4})}), ShapeError,
                        says("test: a \"quoted\" number 4 lies outside 0..3"));
}

BOOST_AUTO_TEST_SUITE_END()
