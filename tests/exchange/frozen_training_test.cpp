// Steps of training as programs and as C: bits of 100 steps against training in the library, operations, and memory.
#include "ferrite/exchange/freeze_training.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/exchange/step_program.h"
#include "ferrite/nn/layers/parametrized.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/frozen.h"

using namespace ferrite;
using exchange::TrainingStep;
using support::identical;
using support::says;

namespace {

/// A recurrent layer with a linear one, on sequences [B, T, 2] -> [B, T, 1].
template <class Layer>
struct Net : nn::Module {
  Layer layer;
  nn::Linear head;
  template <class... Options>
  explicit Net(std::int64_t hidden, const Options&... options)
      : layer(2, hidden, options..., nn::Init{.seed = 1}), head(hidden, 1, {.seed = 2}) {
    adopt("layer", layer), adopt("head", head);
  }
  Tensor operator()(const Tensor& x) const { return head(layer(x)); }
};

Tensors batch_of(const std::vector<Spec>& specs, int step) {
  Tensors in;
  for (const Spec& s : specs)
    in.push_back(uniform(s.shape, {.seed = 1000 * (in.size() + 1) + static_cast<std::uint64_t>(step)}, -1, 1));
  return in;
}

/// Runs a program once, with its variables.
Tensors run(const Graph& g, Tensors in) {
  for (const Graph::VariableValue& r : g.reads) in.push_back(g.variables[r.variable].peek());
  const Tensors out = replay(g, in);
  for (std::size_t k = 0; k < g.writes.size(); ++k) g.variables[g.writes[k].variable].assign(out[g.outputs.size() + k]);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(g.outputs.size())};
}

std::set<std::string> operations_of(const Graph& g) {
  std::set<std::string> names;
  for (const Graph::Node& n : g.nodes) {
    names.insert(std::string(n.op->name));
    if (const auto* body = ferrite::detail::find_body(n.attrs)) names.merge(operations_of(body->graph()));
  }
  return names;
}

/// Trains two equal nets, one in the library and one by its program, and compares the bits of 100 losses and of all
/// variables at the end.
template <class MakeNet, class MakeOptimizer>
void check_bits(const MakeNet& make, const MakeOptimizer& optimizer_of, const std::vector<Spec>& specs) {
  const auto eager = make(), frozen = make();
  auto one = optimizer_of(eager->parameters()), other = optimizer_of(frozen->parameters());
  const auto loss_of = [](const auto& net) {
    return [&net](const Tensors& in) {
      const Tensor y = (*net)(in[0]);
      return nn::mse_loss(y.shape() == in[1].shape() ? y : select(y, 1, y.shape()[1] - 1), in[1]);
    };
  };
  const std::function<Tensor(const Tensors&)> loss = loss_of(eager), frozen_loss = loss_of(frozen);
  const TrainingStep step = exchange::training_step(frozen_loss, other, specs);
  for (const std::string& name : operations_of(step.graph))
    BOOST_TEST(!(name.ends_with("_sequence") || name.ends_with("_sequence_grad") || name == "rule_update"), name);
  int same = 0;
  for (int n = 0; n < 100; ++n) {
    const Tensors in = batch_of(specs, n);
    Tape tape;
    const Tensor value = loss(in);
    one.step(tape.grad(value, eager->parameters()));
    same += identical(run(step.graph, in)[0], value) ? 1 : 0;
  }
  BOOST_TEST(same == 100);
  for (std::size_t k = 0; k < eager->parameters().size(); ++k)
    BOOST_TEST(identical(frozen->parameters()[k].peek(), eager->parameters()[k].peek()));
  for (std::size_t k = 0; k < one.states().size(); ++k)
    BOOST_TEST(identical(other.states()[k].variable.peek(), one.states()[k].variable.peek()));
}

const auto with_adam = [](const std::vector<Parameter>& p) { return nn::Adam(p, {.learning_rate = 3e-3}); };
const auto with_sgd = [](const std::vector<Parameter>& p) {
  return nn::Sgd(p, {.learning_rate = 1e-2, .momentum = 0.9});
};

template <class Layer, class... Options>
auto net_of(std::int64_t hidden, const Options&... options) {
  return [=] { return std::make_unique<Net<Layer>>(hidden, options...); };
}

std::vector<Spec> sequences(std::int64_t B, std::int64_t T) { return {{{B, T, 2}}, {{B, T, 1}}}; }

// ---- C ----------------------------------------------------------------------------------------------------

/// Trains two equal nets, one in the library and one as C, with each compiler. Compares the bits of 100 losses, of what
/// the net predicts then, and of all variables.
template <class MakeNet, class MakeOptimizer>
void check_c(const MakeNet& make, const MakeOptimizer& optimizer_of, const std::vector<Spec>& specs) {
  const auto net = make();
  auto optimizer = optimizer_of(net->parameters());
  const std::function<Tensor(const Tensors&)> loss = [&](const Tensors& in) {
    return nn::mse_loss((*net)(in[0]), in[1]);
  };
  const TrainingStep step = exchange::training_step(loss, optimizer, specs);
  const exchange::FrozenPrediction predict{.function = [&](const Tensors& in) { return Tensors{(*net)(in[0])}; },
                                           .inputs = {specs[0]}};
  const exchange::FrozenNet c = exchange::freeze_training(step, {.name = "learner"}, predict);
  std::vector<Tensor> losses;
  for (int n = 0; n < 100; ++n) {
    const Tensors in = batch_of(specs, n);
    Tape tape;
    losses.push_back(loss(in));
    optimizer.step(tape.grad(losses.back(), net->parameters()));
  }
  for (const std::string& compiler : frozen::compilers()) {
    frozen::Library library;
    library.add("learner", c);
    BOOST_TEST_REQUIRE(library.build(compiler) == "", compiler);
    const auto f = library.functions<float, float>("learner");
    const auto train = library.function<int(void*, const float*, const float*, float*)>("learner_train");
    const auto run = library.function<int(void*, const float*, float*)>("learner_predict");
    std::vector<double> memory(f.bytes / sizeof(double) + 1), other(memory.size());
    void* const learner = memory.data();
    BOOST_TEST(f.check(learner) == 0);
    std::vector<std::byte> saved(f.saved), again(f.saved);
    int same = 0;
    const auto train_on = [&](void* instance, int n) {
      const Tensors in = batch_of(specs, n);
      float value = NAN;
      BOOST_TEST(train(instance, in[0].values<float>().data(), in[1].values<float>().data(), &value) == 0);
      same += value == losses[static_cast<std::size_t>(n)].template item<float>() ? 1 : 0;
    };
    for (int n = 0; n < 100; ++n) {
      train_on(learner, n);
      if (n == 89) f.save(learner, saved.data());
    }
    BOOST_TEST(same == 100, "" << same << " of 100 losses are those of the library; " << compiler);
    f.init(other.data());
    BOOST_TEST(f.restore(other.data(), saved.data()) == 0);
    for (int n = 90; n < 100; ++n) train_on(other.data(), n);
    BOOST_TEST(same == 110);
    f.save(learner, saved.data()), f.save(other.data(), again.data());
    BOOST_TEST((saved == again));
    std::size_t at = 0;
    for (std::size_t k = 0; k < step.graph.variables.size(); ++k) {
      const Tensor value = contiguous(step.graph.variables[k].peek());
      const auto bytes = static_cast<std::size_t>(value.numel() * size_of(value.dtype()));
      BOOST_TEST(std::memcmp(saved.data() + at, value.raw(), bytes) == 0, step.names[k]);
      at += bytes;
    }
    BOOST_TEST(at == f.saved);
    const Tensors in = batch_of(specs, 100);
    const Tensor y = (*net)(in[0]);
    std::vector<float> predicted(static_cast<std::size_t>(y.numel()));
    BOOST_TEST(run(learner, in[0].values<float>().data(), predicted.data()) == 0);
    BOOST_TEST(identical(Tensor::from(predicted, y.shape()), y));
  }
}

/// A net of two linear layers, [B, 8] -> [B, 3].
struct Dense : nn::Module {
  nn::Linear first{8, 16, {.seed = 1}}, second{16, 3, {.seed = 2}};
  Dense() { adopt("first", first), adopt("second", second); }
  Tensor operator()(const Tensor& x) const { return second(tanh(first(x))); }
};

// ---- memory -----------------------------------------------------------------------------------------------

std::int64_t bytes_of(const Spec& s) { return s.shape.numel() * size_of(s.dtype); }

/// The bytes that a program needs besides its variables and constants if every value has a place from the node that
/// makes it to the last that reads it. Views take none, nor do results of elementwise operations in the place of an
/// operand that is read last, nor new values of variables whose old ones are not read any more.
class Memory {
 public:
  explicit Memory(const Graph& g) : g_(g), root_(g.values.size()), last_(g.values.size(), -1), fixed_(g.values.size()) {
    for (std::size_t v = 0; v < root_.size(); ++v) root_[v] = static_cast<ValueId>(v);
    for (const ValueId v : g.inputs) fixed_[v] = true;
    for (const auto& r : g.reads) fixed_[r.value] = true;
    for (const auto& c : g.constants) fixed_[c.value] = true;
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      const Graph::Node& n = g.nodes[i];
      for (const ValueId v : n.in) last_[root_[v]] = static_cast<int>(i);
      if (n.op->view)
        for (const ValueId v : n.out) root_[v] = root_[n.in[0]];
    }
    for (const ValueId v : g.outputs) last_[root_[v]] = static_cast<int>(g.nodes.size());
    for (const auto& w : g.writes) keep(w);
  }

  std::int64_t peak() const {
    std::vector<std::pair<ValueId, int>> live;
    std::int64_t now = 0, most = 0;
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const Graph::Node& n = g_.nodes[i];
      const int at = static_cast<int>(i);
      if (n.op->is_pointwise()) now -= release(live, at);
      for (const ValueId v : n.out) {
        if (root_[v] != v || fixed_[v] || last_[v] < at) continue;
        live.push_back({v, last_[v]});
        now += bytes_of(g_.values[v]);
      }
      const auto* body = ferrite::detail::find_body(n.attrs);
      most = std::max(most, now + (body ? Memory(body->graph()).peak() : 0));
      if (!n.op->is_pointwise()) now -= release(live, at);
    }
    return most;
  }

 private:
  /// Keeps a new value of a variable to the end, unless it can take the place of the old one.
  void keep(const Graph::VariableValue& w) {
    const auto made =
        std::ranges::find_if(g_.nodes, [&](const Graph::Node& n) { return std::ranges::count(n.out, w.value) > 0; });
    const auto old = std::ranges::find_if(g_.reads, [&](const auto& r) { return r.variable == w.variable; });
    if (made != g_.nodes.end() && old != g_.reads.end() && root_[w.value] == w.value &&
        last_[old->value] <= made - g_.nodes.begin())
      fixed_[w.value] = true;
    else
      last_[root_[w.value]] = static_cast<int>(g_.nodes.size());
  }
  std::int64_t release(std::vector<std::pair<ValueId, int>>& live, int at) const {
    std::int64_t freed = 0;
    std::erase_if(live, [&](const auto& l) {
      if (l.second > at) return false;
      freed += bytes_of(g_.values[l.first]);
      return true;
    });
    return freed;
  }

  const Graph& g_;
  std::vector<ValueId> root_;
  std::vector<int> last_;
  std::vector<char> fixed_;
};

/// Returns the bytes of all variables, inputs and values of a step.
std::int64_t total_bytes(const Graph& g) {
  std::int64_t bytes = Memory(g).peak();
  for (const Variable& v : g.variables) bytes += bytes_of({v.shape(), v.dtype()});
  for (const ValueId v : g.inputs) bytes += bytes_of(g.values[v]);
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen_training)

BOOST_AUTO_TEST_CASE(a_gru_with_adam_has_the_bits_of_the_library) {
  check_bits(net_of<nn::Gru>(16), with_adam, sequences(1, 32));
  check_bits(net_of<nn::Gru>(16), with_adam, {{{1, 32, 2}}, {{1, 1}}});
}

BOOST_AUTO_TEST_CASE(batches_and_more_than_256_rows) {
  check_bits(net_of<nn::Gru>(5), with_adam, sequences(3, 7));
  check_bits(net_of<nn::Gru>(5), with_adam, sequences(9, 40));
}

BOOST_AUTO_TEST_CASE(a_gru_with_sgd) { check_bits(net_of<nn::Gru>(16), with_sgd, sequences(1, 32)); }

BOOST_AUTO_TEST_CASE(an_lstm_and_elman_networks) {
  check_bits(net_of<nn::Lstm>(6), with_adam, sequences(2, 9));
  check_bits(net_of<nn::Rnn>(6), with_adam, sequences(2, 9));
  check_bits(net_of<nn::Rnn>(6, nn::RnnOptions{.nonlinearity = nn::Nonlinearity::relu}), with_sgd, sequences(2, 9));
}

BOOST_AUTO_TEST_CASE(layers_in_both_directions_and_in_a_stack) {
  struct Both : nn::Module {
    nn::Gru layer{2, 4, {.layers = 2, .bidirectional = true}, {.seed = 1}};
    nn::Linear head{8, 1, {.seed = 2}}, unused{3, 1, {.seed = 3}};
    Both() { adopt("layer", layer), adopt("head", head), adopt("unused", unused); }
    Tensor operator()(const Tensor& x) const { return head(layer(x)); }
  };
  check_bits([] { return std::make_unique<Both>(); }, with_adam, sequences(2, 9));
}

BOOST_AUTO_TEST_CASE(a_gru_trains_as_c) {
  check_c(net_of<nn::Gru>(16), with_adam, sequences(1, 32));
  check_c(net_of<nn::Gru>(5), with_sgd, sequences(3, 7));
}

BOOST_AUTO_TEST_CASE(an_lstm_trains_as_c) { check_c(net_of<nn::Lstm>(8), with_adam, sequences(1, 32)); }

BOOST_AUTO_TEST_CASE(linear_layers_train_as_c) {
  check_c([] { return std::make_unique<Dense>(); }, with_sgd, {{{4, 8}}, {{4, 3}}});
}

BOOST_AUTO_TEST_CASE(a_device_trains_on_windows_and_predicts_step_by_step) {
  const auto net = net_of<nn::Gru>(5)();
  nn::Adam adam(net->parameters());
  const std::function<Tensor(const Tensors&)> loss = [&](const Tensors& in) {
    return nn::mse_loss((*net)(in[0]), in[1]);
  };
  const std::vector<Spec> specs = sequences(1, 7);
  const TrainingStep step = exchange::training_step(loss, adam, specs);
  const auto once = exchange::step_program(net->layer, {.batch = 1, .width = 2});
  const exchange::FrozenNet c = exchange::freeze_training(step, {.name = "streamer"},
                                                          {.function = once.function,
                                                           .inputs = once.inputs,
                                                           .input_names = once.input_names,
                                                           .output_names = {"y", "next"}});
  frozen::Library library;
  library.add("streamer", c);
  BOOST_TEST_REQUIRE(library.build(frozen::compilers()[0]) == "");
  const auto f = library.functions<float, float>("streamer");
  const auto train = library.function<int(void*, const float*, const float*, float*)>("streamer_train");
  const auto run = library.function<int(void*, const float*, const float*, float*, float*)>("streamer_predict");
  std::vector<double> memory(f.bytes / sizeof(double) + 1);
  f.init(memory.data());
  for (int n = 0; n < 3; ++n) {
    const Tensors in = batch_of(specs, n);
    float value = NAN;
    BOOST_TEST(train(memory.data(), in[0].values<float>().data(), in[1].values<float>().data(), &value) == 0);
    Tape tape;
    adam.step(tape.grad(loss(in), net->parameters()));
  }
  const Tensors in = batch_of(specs, 3);
  std::vector<float> y(5), h(5, 0), next(5);
  nn::Stream stream = net->layer.stream(1);
  for (std::size_t t = 0; t < 7; ++t) {
    std::vector<float> wanted(5);
    BOOST_TEST(stream.feed(in[0].values<float>().subspan(2 * t, 2), std::span<float>(wanted)));
    BOOST_TEST(run(memory.data(), in[0].values<float>().data() + 2 * t, h.data(), y.data(), next.data()) == 0);
    BOOST_TEST((y == wanted));
    h = next;
  }
}

BOOST_AUTO_TEST_CASE(values_of_others_and_constants_are_not_assigned) {
  const State a("a", Tensor::from({1.F, 2.F})), b("b", Tensor::from({3.F, 4.F}));
  const std::vector<Spec> specs{{{2}}};
  const auto moved = exchange::training_program(
      [&](const Tensors& in) {
        const Tensor before = a.value();
        a.assign(a.value() + in[0]), b.assign(before);
        return Tensors{in[0] * 2};
      },
      specs);
  BOOST_CHECK_EXCEPTION(exchange::freeze_training(moved), exchange::ExportError,
                        says("the value of one variable to 'b'"));
  const nn::Linear other(2, 2);
  const auto step = exchange::training_program(
      [&](const Tensors& in) { return a.assign(a.value() + in[0]), Tensors{sum(in[0])}; }, specs);
  const exchange::FrozenPrediction predict{.function = [&](const Tensors& in) { return Tensors{in[0] * b.value()}; },
                                           .inputs = specs};
  BOOST_CHECK_EXCEPTION(exchange::freeze_training(step, {}, predict), ValueError, says("reads 'b'"));
}

BOOST_AUTO_TEST_CASE(a_step_fits_64_kilobytes) {
  const Net<nn::Gru> net(16);
  nn::Adam adam(net.parameters());
  const std::function<Tensor(const Tensors&)> loss = [&](const Tensors& in) { return nn::mse_loss(net(in[0]), in[1]); };
  const TrainingStep step = exchange::training_step(loss, adam, sequences(1, 32));
  BOOST_TEST_MESSAGE("values " << Memory(step.graph).peak() << ", all " << total_bytes(step.graph) << " bytes");
  BOOST_TEST(total_bytes(step.graph) < 64 * 1024);
  const std::set<std::string> names(step.names.begin(), step.names.end());
  BOOST_TEST(names.size() == step.graph.variables.size());
  for (const char* name : {"weight_hh_l0", "exp_avg_weight_hh_l0", "exp_avg_sq_bias", "step", "learning_rate"})
    BOOST_TEST(names.count(name) == 1U, name);
}

BOOST_AUTO_TEST_CASE(layers_without_a_plain_form_are_refused) {
  const Net<nn::Gru> before(4, nn::GruOptions{.reset_after = false}), again(4, nn::GruOptions{.recompute = true});
  for (const auto* net : {&before, &again}) {
    nn::Adam adam(net->parameters());
    const std::function<Tensor(const Tensors&)> loss = [&](const Tensors& in) {
      return nn::mse_loss((*net)(in[0]), in[1]);
    };
    BOOST_CHECK_EXCEPTION(exchange::training_step(loss, adam, sequences(1, 4)), ValueError, says("no plain form"));
  }
  nn::Adam adam(before.parameters());
  BOOST_CHECK_EXCEPTION(exchange::training_step(std::function<Tensor(const Tensors&)>(), adam, sequences(1, 4)),
                        ValueError, says("the function is null"));
}

BOOST_AUTO_TEST_SUITE_END()
