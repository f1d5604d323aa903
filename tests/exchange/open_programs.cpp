// Programs whose extents stay open, with arguments at other extents than those of the trace.
#include <memory>

#include "exchange/program_cases.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/exchange/step_program.h"
#include "ferrite/nn/layers/attention.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/nn/recurrent/gru.h"

namespace exchange_test {
namespace {

using ferrite::Dtype;
using ferrite::Graph;
using ferrite::Parameter;
using ferrite::Shape;
using ferrite::Spec;
using ferrite::Tape;
using ferrite::Tensor;
using ferrite::Tensors;
namespace dsl = ferrite::dsl;
namespace exchange = ferrite::exchange;
namespace nn = ferrite::nn;

using Function = std::function<Tensors(const Tensors&)>;
using Axes = std::vector<exchange::DynamicAxis>;

constexpr double kTolerance = 1e-10;

Tensor numbers(const Shape& shape, std::uint64_t seed) { return ferrite::uniform(shape, {seed}, -1, 1, Dtype::f64); }

const Axes kBatch{{.axis = 0, .name = "batch"}};
const Axes kBatchAndTime{{.axis = 0, .name = "batch"}, {.axis = 1, .name = "time"}};

/// Returns a case that runs f at the extents of `in`; it is exported at those of `specs`.
OpenCase open_case(const std::string& name, const Function& f, std::vector<Spec> specs, Axes axes, const Tensors& in) {
  OpenCase c{{name, {}, {}, in, {}, kTolerance}, f, std::move(specs), std::move(axes)};
  const Graph graph = ferrite::trace(f, c.specs);
  for (const Graph::VariableValue& r : graph.reads) c.run.arguments.push_back(graph.variables[r.variable].peek());
  c.run.results = f(in);
  for (const Graph::VariableValue& w : graph.writes) c.run.results.push_back(graph.variables[w.variable].peek());
  return c;
}

/// The extents of the runs: some, and the smallest.
constexpr std::int64_t kRuns[][2] = {{7, 11}, {1, 1}};

std::string at(std::int64_t batch, std::int64_t time) {
  return ", batch " + std::to_string(batch) + ", time " + std::to_string(time);
}

std::shared_ptr<dsl::Network> network(const dsl::Builder& builder) {
  auto net = std::make_shared<dsl::Network>(builder.build(/*seed=*/1, Dtype::f64));
  net->eval();
  return net;
}

Function forward_of(const std::shared_ptr<dsl::Network>& net) {
  return [net](const Tensors& in) -> Tensors { return {(*net)(in[0])}; };
}

/// Returns the function of the gradients by parameters and input.
Function backward_of(const std::shared_ptr<dsl::Network>& net) {
  return [net](const Tensors& in) {
    Tape tape;
    const Tensor x = tape.watch(in[0]);
    const Tensor loss = ferrite::mean(ferrite::square((*net)(x)));
    Tensors all = tape.grad(loss, net->parameters(), {.retain = true});
    all.push_back(tape.grad(loss, {x})[0]);
    return all;
  };
}

/// Adds a network on sequences [B, T, width], and perhaps its gradients.
void add_sequence(const std::string& name, const dsl::Builder& builder, std::int64_t width, bool gradients,
                  std::vector<OpenCase>& list) {
  const auto net = network(builder);
  const Function forward = forward_of(net), backward = backward_of(net);
  const std::vector<Spec> specs{{{2, 5, width}, Dtype::f64}};
  for (const auto& [batch, time] : kRuns) {
    const Tensors in{numbers({batch, time, width}, 7)};
    list.push_back(open_case(name + at(batch, time), forward, specs, kBatchAndTime, in));
    if (gradients)
      list.push_back(open_case(name + ", gradients" + at(batch, time), backward, specs, kBatchAndTime, in));
  }
}

void add_sequences(std::vector<OpenCase>& list) {
  add_sequence("gru", dsl::sequence(3).gru(4, {.layers = 2, .bidirectional = true}).linear(2), 3, true, list);
  add_sequence("gru as a scan", dsl::sequence(3).gru(4, {.form = nn::Form::scan}).linear(2), 3, true, list);
  add_sequence("lstm", dsl::sequence(3).lstm(4).last_step().linear(2), 3, true, list);
  add_sequence("rnn", dsl::sequence(3).rnn(4).linear(2), 3, false, list);
  add_sequence("min_gru", dsl::sequence(3).min_gru(4).linear(2), 3, false, list);
  add_sequence("convolution", dsl::sequence(3).causal_conv1d(4, 3, {.dilation = 2}).relu().layer_norm().linear(2), 3,
               true, list);
  add_sequence("attention", dsl::sequence(8).attention(2, {.causal = true}).linear(2), 8, true, list);
  add_sequence("grouped attention with positions",
               dsl::sequence(8).attention(4, {.kv_heads = 2, .causal = true, .positions = nn::Positions::rotary}), 8,
               false, list);
  add_sequence("mean", dsl::sequence(3).linear(4).gelu().mean_over_time().linear(2), 3, true, list);
}

/// Adds programs of a fixed number of steps without loops.
void add_unrolled(std::vector<OpenCase>& list) {
  const auto net = network(dsl::sequence(3).gru(4).lstm(3).linear(2));
  for (const auto& [batch, time] : kRuns)
    for (const bool gradients : {false, true}) {
      list.push_back(open_case("steps in a row" + std::string(gradients ? ", gradients" : "") + at(batch, 4),
                               gradients ? backward_of(net) : forward_of(net), {{{2, 4, 3}, Dtype::f64}}, kBatch,
                               {numbers({batch, 4, 3}, 7)}));
      list.back().scan = exchange::ScanExport::unrolled;
    }
}

template <class Optimizer>
void add_training(const std::string& name, Optimizer&& optimizer_of, std::vector<OpenCase>& list) {
  for (const auto& [batch, time] : kRuns) {
    const auto net = std::make_shared<dsl::Network>(
        dsl::features(3).linear(5).layer_norm().tanh().linear(4).build(/*seed=*/1, Dtype::f64));
    const auto optimizer = std::make_shared<decltype(optimizer_of(net->parameters()))>(optimizer_of(net->parameters()));
    const Function step = [net, optimizer](const Tensors& in) -> Tensors {
      Tape tape;
      const Tensor loss = nn::cross_entropy((*net)(in[0]), in[1]);
      optimizer->step(tape.grad(loss, net->parameters()));
      return {loss};
    };
    Axes axes = kBatch;
    axes.push_back({.input = 1, .axis = 0, .name = "batch"});
    const Tensor labels = ferrite::cast(ferrite::uniform({batch}, {.seed = 9}, 0, 4), Dtype::i64);
    list.push_back(open_case(name + ", batch " + std::to_string(batch), step, {{{2, 3}, Dtype::f64}, {{2}, Dtype::i64}},
                             axes, {numbers({batch, 3}, 7), labels}));
  }
}

void add_step(std::vector<OpenCase>& list) {
  const auto net = std::make_shared<dsl::Network>(
      dsl::sequence(3).gru(4, {.layers = 2}).causal_conv1d(4, 3).lstm(3).linear(2).build(/*seed=*/1, Dtype::f64));
  net->eval();
  const exchange::StepProgram step = exchange::step_program(*net, {.batch = 2, .width = 3, .dtype = Dtype::f64});
  const Function f = [net, function = step.function](const Tensors& in) { return function(in); };
  for (const auto& [batch, time] : kRuns) {
    std::vector<Spec> specs = step.inputs;
    for (const exchange::DynamicAxis& a : step.batch_axes) specs[a.input].shape[a.axis] = batch;
    Tensors in;
    for (const Spec& s : specs) in.push_back(numbers(s.shape, 20 + in.size()));
    list.push_back(
        open_case("one step with its states, batch " + std::to_string(batch), f, step.inputs, step.batch_axes, in));
  }
}

/// Returns elements and sums of columns, [A B + B], divided by their number.
Tensor sums_of_products(const Tensor& y) {
  const Tensor all = ferrite::concat({ferrite::reshape(y, {-1}), ferrite::sum(y, {0})}, 0);
  return all / static_cast<double>(all.numel());
}

void add_others(std::vector<OpenCase>& list) {
  const Function softmax = [](const Tensors& in) -> Tensors {
    return {ferrite::softmax(in[0], 1), ferrite::argmax(in[0], 1), ferrite::sum(in[0], {0, 1}, true)};
  };
  const auto table = std::make_shared<nn::Embedding>(9, 4, nn::Init{.seed = 3, .dtype = Dtype::f64});
  const Function embedding = [table](const Tensors& in) -> Tensors { return {(*table)(in[0])}; };
  const Function products = [](const Tensors& in) -> Tensors {
    const Tensor y = ferrite::matmul(in[0], in[1]);  // [A, B]
    return {ferrite::reshape(y, {-1}), ferrite::sum(y) / static_cast<double>(y.numel()),
            ferrite::concat({in[0], in[0]}, 0), ferrite::index_select(y, 0, ferrite::argmax(y, 0)),
            sums_of_products(y)};
  };
  const Function pieces = [](const Tensors& in) -> Tensors {
    const Tensor& x = in[0];
    const std::int64_t n = x.shape()[0];
    return {ferrite::pad(x, {n, 0}, {n + 1, 2}, 3),
            ferrite::pad(ferrite::concat({x, x}, 0), {-1, -1}, {1 - n, 0}),
            ferrite::flip(x, {0}),
            ferrite::index_select(x, 0, Tensor::from<std::int64_t>({n - 1, 0})),
            ferrite::arange(0.5, 0.5 + static_cast<double>(n), 1.0, Dtype::f64),
            x + Tensor::from(std::vector<double>(static_cast<std::size_t>(3 * n), 0.25), {n, 3})};
  };
  for (const auto& [batch, time] : kRuns) {
    const std::string where = at(batch, time);
    const Tensor tokens = ferrite::cast(ferrite::uniform({batch, time}, {.seed = 9}, 0, 9), Dtype::i64);
    list.push_back(open_case("softmax" + where, softmax, {{{2, 5, 3}, Dtype::f64}}, kBatchAndTime,
                             {numbers({batch, time, 3}, 7)}));
    list.push_back(open_case("embedding" + where, embedding, {{{2, 5}, Dtype::i64}}, kBatchAndTime, {tokens}));
    list.push_back(open_case("pieces, " + std::to_string(batch) + " rows", pieces, {{{2, 3}, Dtype::f64}}, kBatch,
                             {numbers({batch, 3}, 7)}));
    list.push_back(open_case("two extents" + where, products, {{{2, 3}, Dtype::f64}, {{3, 5}, Dtype::f64}},
                             {{.input = 0, .axis = 0, .name = "A"}, {.input = 1, .axis = 1, .name = "B"}},
                             {numbers({batch, 3}, 7), numbers({3, time}, 8)}));
  }
  const auto image = std::make_shared<dsl::Network>(dsl::image(1, 8, 8)
                                                        .conv2d(2, {3, 3}, {.padding = {1, 1}})
                                                        .max_pool2d({2, 2})
                                                        .conv2d(3, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}})
                                                        .build(/*seed=*/1, Dtype::f64));
  const Function pooled = [image](const Tensors& in) -> Tensors { return {(*image)(in[0])}; };
  list.push_back(open_case("pooling", pooled, {{{1, 1, 8, 8}, Dtype::f64}},
                           {{0, 0, "batch"}, {0, 2, "height", 4}, {0, 3, "width", 4}}, {numbers({3, 1, 12, 20}, 7)}));
}

}  // namespace

std::vector<OpenCase> open_cases() {
  std::vector<OpenCase> list;
  add_sequences(list);
  add_unrolled(list);
  add_training(
      "sgd step", [](const auto& p) { return nn::Sgd(p, {.learning_rate = 0.1, .momentum = 0.9}); }, list);
  add_training(
      "adam step", [](const auto& p) { return nn::Adam(p, {.learning_rate = 0.01}); }, list);
  add_step(list);
  add_others(list);
  return list;
}

std::string written(const OpenCase& c, exchange::DynamicForms forms) {
  return exchange::to_stablehlo(c.f, c.specs, {.scan = c.scan, .dynamic = c.axes, .dynamic_forms = forms});
}

}  // namespace exchange_test
