// Profiles of networks: every way of running names the same layers, counts are exact, and nothing else changes.
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/profiler.h"
#include "nn/scoped_nets.h"
#include "support/causal_layers.h"
#include "support/compare.h"
#include "support/trace.h"

using namespace ferrite;
using namespace scoped_nets;
using support::identical;

namespace {

using Calls = std::map<std::pair<std::string, std::string>, std::int64_t>;  ///< number of calls by kernel and layer

Calls calls_of(const Profile& profile) {
  Calls calls;
  for (const ProfileRow& r : profile.rows()) calls[{r.kernel, r.layer}] = r.calls;
  return calls;
}
template <class F>
Calls profiled(const F& f) {
  const Profile profile;
  f();
  return calls_of(profile);
}
std::set<std::string> layers_of(const Calls& calls) {
  std::set<std::string> layers;
  for (const auto& [key, n] : calls) layers.insert(key.second);
  return layers;
}
std::int64_t calls_in(const Calls& calls, const std::string& kernel) {
  std::int64_t sum = 0;
  for (const auto& [key, n] : calls) sum += key.first == kernel ? n : 0;
  return sum;
}

dsl::Network small_net() { return dsl::sequence(kIn).gru(kUnits).linear(3, "head").build(1); }
Tensor batch() { return uniform({2, 5, kIn}, {7, 1, 0}, -1, 1); }

/// Runs loss, gradients and Adam.
Tensor train_step(const nn::Layer& net, nn::Adam& adam, const Tensor& x) {
  Tape tape;
  const Tensor loss = mean(square(net(x)));
  adam.step(tape.grad(loss, adam.parameters()));
  return loss;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(profile)

BOOST_AUTO_TEST_CASE(three_calls_of_a_net_are_three_calls_of_every_kernel) {
  const dsl::Network net = small_net();
  net.eval();
  const Tensor x = batch();
  (void)net(x);
  const Calls calls = profiled([&] {
    for (int i = 0; i < 3; ++i) (void)net(x);
  });
  BOOST_TEST((calls.at({"gru_sequence", "0"}) == 3), "a fused layer is one kernel");
  BOOST_TEST((calls.at({"matmul", "head"}) == 3));
  for (const auto& [key, n] : calls) BOOST_TEST(n == 3, key.first + " in " + key.second);
  const std::set<std::string> wanted{"0", "head"};
  BOOST_TEST(layers_of(calls) == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(modules_in_modules_have_their_paths) {
  const Translator net(1);
  const Tensor x = uniform({3, kIn}, {7, 1, 0}, -1, 1);
  const auto fast = compile([&](const Tensor& in) { return net(in); });
  (void)fast(x);
  const std::set<std::string> eager{"encoder",          "encoder.first", "encoder.rest", "encoder.rest.0",
                                    "encoder.rest.act", "head",          "loss"};
  BOOST_TEST(layers_of(profiled([&] { (void)net(x); })) == eager, boost::test_tools::per_element());
  std::set<std::string> compiled;  // kernels may serve several layers
  for (const std::string& list : layers_of(profiled([&] { (void)fast(x); })))
    for (std::size_t at = 0; at < list.size(); at = std::min(list.size(), list.find(", ", at)) + 2)
      compiled.insert(list.substr(at, list.find(", ", at) - at));
  BOOST_TEST(compiled == eager, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(gradients_and_optimisers_are_counted_in_their_layers) {
  const dsl::Network net = small_net();
  nn::Adam adam(net.parameters());
  const Tensor x = batch();
  (void)train_step(net, adam, x);
  const Calls calls = profiled([&] { (void)train_step(net, adam, x); });
  BOOST_TEST((calls.at({"gru_sequence", "0"}) == 1));
  BOOST_TEST((calls.at({"gru_sequence_grad", "0"}) == 1));
  BOOST_TEST((calls.at({"matmul", "head"}) == 3));  // and two products of its gradient
  BOOST_TEST(calls_in(calls, "rule_update") == 6);
}

/// The optimisers write variables in place, bypassing operations.
BOOST_AUTO_TEST_CASE(every_optimiser_is_counted_once_for_a_parameter) {
  const Translator net(1);
  const Tensor x = uniform({3, kIn}, {7, 1, 0}, -1, 1);
  const auto updates = [&](auto optimiser) {
    const Calls calls = profiled([&] {
      Tape tape;
      optimiser.step(tape.grad(net(x), net.parameters()));
    });
    BOOST_TEST(calls_in(calls, "rule_update") == static_cast<std::int64_t>(net.parameters().size()));
  };
  updates(nn::Adam(net.parameters()));
  updates(nn::Sgd(net.parameters(), {.learning_rate = 0.1, .momentum = 0.9}));
  updates(nn::RmsProp(net.parameters()));
}

BOOST_AUTO_TEST_CASE(gradients_added_in_place_are_counted) {
  const Calls calls = profiled([] {
    Tape tape;
    const Tensor x = tape.watch(ones({4}));
    (void)tape.grad(sum(exp(x) * tanh(x)), {x});
  });
  BOOST_TEST(calls_in(calls, "mul") >= 1);
  BOOST_TEST(calls_in(calls, "add") == 1);
}

/// A step of a plan has the name that the report gives it; its products are separate.
BOOST_AUTO_TEST_CASE(a_compiled_call_holds_the_steps_of_its_plan) {
  const dsl::Network net = small_net();
  nn::Adam adam(net.parameters());
  const Tensor x = batch();
  const auto step = compile([&](const Tensor& in) { return train_step(net, adam, in); });
  const Calls first = profiled([&] { (void)step(x); });
  BOOST_TEST((first.at({"compile", ""}) == 1));
  BOOST_TEST((first.at({"plan", ""}) >= 1));
  const Profile profile;
  for (int i = 0; i < 3; ++i) (void)step(x);
  const Calls calls = calls_of(profile);
  BOOST_TEST(calls_in(calls, "plan") == 0);
  BOOST_TEST((calls.at({"compiled", ""}) == 3));
  Calls wanted;
  for (const PlanReport::Step& s : step.report().steps) {
    std::string layers;
    for (const Scope layer : s.layers) layers += (layers.empty() ? "" : ", ") + std::string(layer.path());
    wanted[{s.what, layers}] += 3;
  }
  for (const auto& [key, n] : wanted) {
    BOOST_TEST_CONTEXT(key.first << " in " << key.second) {
      const auto at = calls.find(key);
      BOOST_TEST_REQUIRE((at != calls.end()));
      BOOST_TEST((key.first == "matmul" ? at->second >= n : at->second == n));
    }
  }
  BOOST_TEST(calls_in(calls, "matmul") == 3 * static_cast<std::int64_t>(step.report().products));
  BOOST_TEST((calls.at({"gru_sequence_grad", "0"}) == 3));
  std::chrono::nanoseconds inside{}, whole{};
  for (const ProfileRow& r : profile.rows())
    (r.kernel == "compiled" ? whole : inside) += r.kernel == "compiled" ? r.total - r.self : r.self;
  BOOST_TEST((inside == whole));
}

/// The operations of a body are counted in every step, or once per chunk of steps if they do not depend on the carry.
BOOST_AUTO_TEST_CASE(a_scan_holds_its_body_forward_and_backward) {
  const nn::Sequential net =
      chain("own", std::make_unique<nn::Gru>(kIn, kUnits, nn::GruOptions{.form = nn::Form::scan}));
  const Tensor x = batch();
  const auto run = [&] {
    Tape tape;
    (void)tape.grad(net(x), net.parameters());
  };
  run();
  const Profile profile;
  run();
  const Calls calls = calls_of(profile);
  BOOST_TEST((calls.at({"scan", "own"}) == 2));
  BOOST_TEST((calls.at({"sums", "own"}) >= 1));
  std::int64_t every_step = 0;
  for (const auto& [key, n] : calls)
    every_step += key.second == "own" && n >= 5 && key.first.find("tanh") != std::string::npos;
  BOOST_TEST(every_step > 0, profile.table());
  BOOST_TEST((calls.at({"matmul", "own"}) >= 11), profile.table());  // 5 of each direction and the hoisted product
}

BOOST_AUTO_TEST_CASE(counts_of_a_scan_are_the_same_in_every_run) {
  const nn::Sequential net =
      chain("own", std::make_unique<nn::Gru>(kIn, kUnits, nn::GruOptions{.form = nn::Form::scan}));
  const Tensor x = batch();
  (void)net(x);
  BOOST_TEST((profiled([&] { (void)net(x); }) == profiled([&] { (void)net(x); })));
}

BOOST_AUTO_TEST_CASE(layers_inside_a_cell_have_paths_of_their_own_in_a_scan) {
  const nn::Sequential net = chain("own", std::make_unique<nn::Custom>(nn::custom<OwnCell>(kIn, kUnits)));
  const Tensor x = batch();
  (void)net(x);
  const Calls calls = profiled([&] { (void)net(x); });
  BOOST_TEST((calls.at({"scan", "own"}) == 1));
  BOOST_TEST((calls.at({"matmul", "own.cell_l0.gates"}) == 5));
}

BOOST_AUTO_TEST_CASE(a_stream_counts_the_steps_of_its_layers) {
  const dsl::Network net = dsl::sequence(kIn)
                               .gru(kUnits)
                               .residual([](dsl::Builder& b) { b.linear(kUnits).tanh(); }, "rest")
                               .layer_norm("norm")
                               .build(1);
  nn::Stream stream = net.stream();
  const std::vector<float> x(static_cast<std::size_t>(kIn), 1);
  std::vector<float> y(static_cast<std::size_t>(kUnits));
  stream.step(x, y);
  const Profile profile;
  for (int i = 0; i < 3; ++i) stream.step(x, y);
  const Calls calls = calls_of(profile);
  BOOST_TEST((calls.at({"network step", ""}) == 3));
  BOOST_TEST((calls.at({"gru step", "0"}) == 3));
  BOOST_TEST((calls.at({"linear step", "rest.0"}) == 3));
  BOOST_TEST(calls.count({"tanh step", "rest.1"}) == 0U);  // it is part of the step before it
  BOOST_TEST((calls.at({"layer_norm step", "norm"}) == 3));
  for (const auto& [key, n] : calls) BOOST_TEST(n % 3 == 0, key.first + " in " + key.second);
  BOOST_TEST(layers_of(calls).size() == 5U);  // and "rest"
  // The plan of the layer that defines no step runs inside its step.
  const std::vector<support::TraceEvent> events = support::complete(profile);
  std::int64_t inside = 0;
  for (const auto& e : events) inside += e.at("args.layer") == "norm";
  BOOST_TEST(inside > 3);
}

BOOST_AUTO_TEST_CASE(several_steps_at_once_are_one_call) {
  const dsl::Network net = small_net();
  nn::Stream stream = net.stream();
  const std::vector<float> x(static_cast<std::size_t>(16 * kIn), 1);
  std::vector<float> y(std::size_t{16 * 3});
  const Calls calls = profiled([&] { stream.steps(16, x, y); });
  BOOST_TEST((calls.at({"network steps", ""}) == 1));
  BOOST_TEST((calls.at({"gru steps", "0"}) == 1));
  BOOST_TEST((calls.at({"linear steps", "head"}) == 1));
}

BOOST_AUTO_TEST_CASE(a_layer_that_streams_on_tensors_is_counted_as_one_that_is_called) {
  struct Looks final : nn::Layer {
    std::string kind() const override { return "looks"; }
    bool causal() const override { return true; }
    Tensor forward(const Tensor& x, const nn::Context&) const override { return x.values<float>()[0] > 0 ? exp(x) : x; }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Looks>(); }
  };
  nn::Sequential net({.seed = 1});
  net.add("in", std::make_unique<nn::Linear>(kIn, kUnits));
  net.add("own", std::make_unique<Looks>());
  nn::Stream stream = net.stream();
  const std::vector<float> x(static_cast<std::size_t>(kIn), 1);
  std::vector<float> y(static_cast<std::size_t>(kUnits));
  stream.step(x, y);
  BOOST_TEST(stream.on_tensors() == 1U);
  const Calls calls = profiled([&] { stream.step(x, y); });
  BOOST_TEST((calls.at({"looks step", "own"}) == 1));
  BOOST_TEST(layers_of(calls).contains("own"));
}

/// An error in a stream ends its events: the next step is not part of it.
BOOST_AUTO_TEST_CASE(a_step_that_throws_ends_its_events) {
  const dsl::Network net = dsl::tokens(4).embedding(3).linear(2).build(1);
  nn::Stream stream = net.stream();
  const std::vector<std::int64_t> bad{9}, good{1};
  std::vector<float> y(2);
  const Profile profile;
  BOOST_CHECK_THROW(stream.step(bad, y), ShapeError);
  stream.step(good, y);
  const Calls calls = calls_of(profile);
  BOOST_TEST((calls.at({"network step", ""}) == 2));
  BOOST_TEST((calls.at({"embedding step", "0"}) == 2));
  BOOST_TEST((calls.at({"linear step", "1"}) == 1));
  std::int64_t end = 0;
  for (const auto& e : support::complete(profile)) {
    if (e.at("name") != "network step") continue;
    BOOST_TEST(support::nanoseconds_of(e.at("ts")) >= end);
    end = support::nanoseconds_of(e.at("ts")) + support::nanoseconds_of(e.at("dur"));
  }
}

BOOST_AUTO_TEST_CASE(a_profile_changes_no_bits_and_no_plans) {
  const auto run = [](bool with) {
    std::optional<Profile> profile;
    if (with) profile.emplace();
    const dsl::Network net = dsl::sequence(kIn).gru(kUnits).recurrent<nn::LayerNormGruCell>(kUnits).linear(3).build(1);
    nn::Adam adam(net.parameters());
    const Tensor x = batch();
    Tensors results;
    for (int i = 0; i < 2; ++i) results.push_back(train_step(net, adam, x));
    const auto step = compile([&](const Tensor& in) { return train_step(net, adam, in); });
    for (int i = 0; i < 2; ++i) results.push_back(step(x));
    for (const Parameter& p : net.parameters()) results.push_back(p.value());
    net.eval();
    nn::Stream stream = net.stream();
    std::vector<float> in(static_cast<std::size_t>(kIn), 0.5F), out(3);
    for (int i = 0; i < 3; ++i) {
      stream.step(in, out);
      results.push_back(Tensor::from(out, {3}));
    }
    return std::tuple(results, step.graph().str(1 << 20, true), step.report().str(true));
  };
  const auto [wanted, graph, report] = run(false);
  const auto [results, graph_with, report_with] = run(true);
  BOOST_TEST_REQUIRE(results.size() == wanted.size());
  for (std::size_t i = 0; i < results.size(); ++i) BOOST_TEST(identical(results[i], wanted[i]));
  BOOST_TEST(graph_with == graph);
  BOOST_TEST(report_with == report);
}

BOOST_AUTO_TEST_SUITE_END()
