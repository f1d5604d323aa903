/// Whole programs for other implementations: GRUs, their gradients, training steps, other layers.
#include <cmath>
#include <limits>

#include "exchange/program_cases.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/step_program.h"
#include "ferrite/nn/layers/attention.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/layers/transformer.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/mlstm.h"
#include "ferrite/nn/recurrent/slstm.h"

namespace exchange_test {
namespace {

using ferrite::Dtype;
using ferrite::Graph;
using ferrite::Parameter;
using ferrite::Tape;
using ferrite::Tensor;
using ferrite::Tensors;
namespace exchange = ferrite::exchange;
namespace nn = ferrite::nn;

constexpr std::int64_t kBatch = 2, kSteps = 5, kFeatures = 3, kHidden = 4;
constexpr double kTolerance = 1e-10;

struct Net {
  explicit Net(nn::Form form)
      : gru(kFeatures, kHidden, {.layers = 2, .bidirectional = true, .form = form}, {.seed = 3, .dtype = Dtype::f64}),
        head(2 * kHidden, 2, {.seed = 4, .dtype = Dtype::f64}) {}

  Tensor operator()(const Tensor& x) const { return head(gru(x)); }
  std::vector<Parameter> parameters() const {
    std::vector<Parameter> all = gru.parameters();
    for (const Parameter& p : head.parameters()) all.push_back(p);
    return all;
  }

  nn::Gru gru;
  nn::Linear head;
};

Tensor numbers(const ferrite::Shape& shape, std::uint64_t seed) {
  return ferrite::uniform(shape, {seed}, -1, 1, Dtype::f64);
}

/// Returns a case of a program that reads variables, and perhaps writes them, with its results from their present
/// values.
ProgramCase with_variables(const std::string& name, const std::function<Tensors(const Tensors&)>& f,
                           const Tensors& in) {
  std::vector<ferrite::Spec> specs;
  for (const Tensor& x : in) specs.push_back(x.spec());
  ProgramCase c{name, ferrite::trace(f, specs), {}, in, {}, kTolerance};
  for (const Graph::VariableValue& r : c.graph.reads) c.arguments.push_back(c.graph.variables[r.variable].peek());
  const std::vector<ferrite::Variable> variables = c.graph.variables;
  c.results = f(in);
  for (const Graph::VariableValue& w : c.graph.writes) c.results.push_back(variables[w.variable].peek());
  return c;
}

template <class Optimizer>
ProgramCase training_step(const std::string& name, nn::Form form, Optimizer&& optimizer_of) {
  const Net net(form);
  auto optimizer = optimizer_of(net.parameters());
  const auto step = [&](const Tensors& in) -> Tensors {
    Tape tape;
    const Tensor loss = nn::mse_loss(net(in[0]), in[1]);
    optimizer.step(tape.grad(loss, net.parameters()));
    return {loss};
  };
  return with_variables(name, step, {numbers({kBatch, kSteps, kFeatures}, 7), numbers({kBatch, kSteps, 2}, 8)});
}

}  // namespace

std::vector<ProgramCase> recurrent_cases() {
  std::vector<ProgramCase> list;
  const auto sgd = [](const std::vector<Parameter>& p) { return nn::Sgd(p, {.learning_rate = 0.1, .momentum = 0.9}); };
  const auto adam = [](const std::vector<Parameter>& p) { return nn::Adam(p, {.learning_rate = 0.01}); };
  struct Kind {
    std::string name;
    nn::Form form;
    exchange::ScanExport scan = exchange::ScanExport::as_while;
  };
  for (const Kind& kind :
       {Kind{"gru unrolled", nn::Form::unrolled}, Kind{"gru fused", nn::Form::fused}, Kind{"gru scan", nn::Form::scan},
        Kind{"gru scan unrolled", nn::Form::scan, exchange::ScanExport::unrolled}}) {
    const std::size_t first = list.size();
    const Net net(kind.form);
    const auto forward = [&](const Tensors& in) -> Tensors { return {net(in[0])}; };
    const auto gradients = [&](const Tensors& in) -> Tensors {
      Tape tape;
      const Tensor x = tape.watch(in[0]);
      const Tensor loss = ferrite::sum(ferrite::square(net(x)));
      Tensors all = tape.grad(loss, net.parameters(), {.retain = true});
      all.push_back(tape.grad(loss, {x})[0]);
      return all;
    };
    list.push_back(with_variables(kind.name + " forward", forward, {numbers({kBatch, kSteps, kFeatures}, 7)}));
    if (kind.form == nn::Form::scan)
      list.push_back(with_variables(kind.name + " gradients", gradients, {numbers({kBatch, kSteps, kFeatures}, 7)}));
    if (kind.scan == exchange::ScanExport::as_while) {
      list.push_back(training_step(kind.name + " sgd step", kind.form, sgd));
      list.push_back(training_step(kind.name + " adam step", kind.form, adam));
    }
    for (std::size_t i = first; i < list.size(); ++i) list[i].options.scan = kind.scan;
  }
  const nn::Init init{.seed = 5, .dtype = Dtype::f64};
  nn::Sequential causal;
  causal.add("gru", std::make_unique<nn::Gru>(kFeatures, kHidden, nn::GruOptions{.layers = 2}, init));
  const nn::CausalConv1dOptions conv{.in_channels = kHidden, .out_channels = 3, .kernel_size = 2};
  causal.add("conv", std::make_unique<nn::CausalConv1d>(conv, init));
  const exchange::StepProgram step =
      exchange::step_program(causal, {.batch = kBatch, .width = kFeatures, .dtype = Dtype::f64});
  Tensors in;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) in.push_back(numbers(step.inputs[i].shape, 20 + i));
  list.push_back(with_variables("gru and convolution, one step with its states", step.function, in));
  return list;
}

std::vector<ProgramCase> layer_cases() {
  std::vector<ProgramCase> list;
  const auto add = [&](const std::string& name, const nn::Layer& layer, const Tensors& in) {
    list.push_back(with_variables(
        name, [&](const Tensors& x) -> Tensors { return {layer(x[0])}; }, in));
    const auto gradients = [&](const Tensors& given) -> Tensors {
      Tape tape;
      const Tensor x = tape.watch(given[0]);
      const Tensor loss = ferrite::sum(ferrite::square(layer(x)));
      Tensors all = tape.grad(loss, layer.parameters(), {.retain = true});
      all.push_back(tape.grad(loss, {x})[0]);
      return all;
    };
    list.push_back(with_variables(name + ", gradients", gradients, in));
  };
  const nn::Init init{.seed = 5, .dtype = Dtype::f64};
  for (const std::int64_t groups : {1, 2, 4})
    add("causal convolution in " + std::to_string(groups) + " groups",
        nn::CausalConv1d({.in_channels = 4, .out_channels = 8, .kernel_size = 3, .dilation = 2, .groups = groups},
                         init),
        {numbers({kBatch, 2 * kSteps, 4}, 9)});
  add("attention", nn::MultiheadAttention({.embed_dim = 8, .num_heads = 2}, init), {numbers({kBatch, kSteps, 8}, 9)});
  add("attention of grouped queries with positions",
      nn::MultiheadAttention(
          {.embed_dim = 8, .num_heads = 4, .kv_heads = 2, .causal = true, .positions = nn::Positions::rotary}, init),
      {numbers({kBatch, kSteps, 8}, 9)});
  for (const std::int64_t chunk : {1, 2})
    add("an mlstm in chunks of " + std::to_string(chunk),
        nn::MLstm({.embedding_dim = 4, .num_heads = 2, .round_up_to = 8, .chunk = chunk}, init),
        {numbers({kBatch, kSteps, 4}, 9)});
  add("an slstm", nn::SLstm({.embedding_dim = 4, .num_heads = 2}, init), {numbers({kBatch, kSteps, 4}, 9)});
  add("a layer of a transformer",
      nn::TransformerEncoderLayer({.d_model = 8, .nhead = 2, .dim_feedforward = 12, .dropout = 0}, init),
      {numbers({kBatch, kSteps, 8}, 9)});
  return list;
}

std::vector<ProgramCase> option_cases() {
  const std::vector<Tensor> captured = {
      Tensor::from({1.5F, -0.0F, std::numeric_limits<float>::infinity(), std::nanf("")}, {2, 2}),
      Tensor::from({0.1, 1e-310, -std::numeric_limits<double>::infinity()}),
      Tensor::from({1, -2, 2147483647}),
      Tensor::from({std::int64_t{1} << 40, std::int64_t{-3}}),
      Tensor::from({true, false, true, true, false, false}, {1, 3, 2}),
      ferrite::full({2, 3}, -0.0, Dtype::f32),
      ferrite::full({}, 1e-30, Dtype::f32),
      ferrite::full({2}, std::nan(""), Dtype::f64),
      ferrite::transpose(Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3}))};
  const auto constants = [&](const Tensors&) { return Tensors(captured.begin(), captured.end()); };
  std::vector<ProgramCase> list = {case_of("constants", constants, {}, 0), case_of("constants", constants, {}, 0)};
  list[1].options.constants_as_arguments = true;
  for (const Tensor& t : captured)
    if (t.numel() > 1) list[1].arguments.push_back(t);
  const Net net(nn::Form::unrolled);
  const auto forward = [&](const Tensors& in) -> Tensors { return {net(in[0])}; };
  const Tensors in = {numbers({kBatch, kSteps, kFeatures}, 7)};
  list.push_back(with_variables("gru with its weights", forward, in));
  list.back().options.inline_variables = true;
  list.back().arguments = in;
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::scan}) {
    const Net parts(form);
    nn::Sequential named;
    named.add("the \"gru\" of \xC3\xBC", parts.gru.clone());
    named.add("head", parts.head.clone());
    const auto all = [&](const Tensors& x) -> Tensors {
      Tape tape;
      const Tensor loss = ferrite::sum(ferrite::square(named(x[0])));
      Tensors out{loss};
      for (const Tensor& g : tape.grad(loss, named.parameters())) out.push_back(g);
      return out;
    };
    list.push_back(with_variables("layers as locations", all, in));
    list.back().options.locations = true;
  }
  return list;
}

}  // namespace exchange_test
