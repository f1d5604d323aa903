// Imported models as modules: gradients, training, copies and files, compared with the nets that they were written
// from.
#include <boost/test/unit_test.hpp>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "io/temporary_folder.h"
#include "onnx/exporting.h"
#include "onnx/wire.h"
#include "support/compare.h"

using namespace ferrite;
using exporting::numbers;

namespace {

onnx::Model imported(const nn::Layer& net, const Tensor& x, const onnx::ReadOptions& options = {}) {
  const auto f = [&](const Tensors& in) -> Tensors { return {net(in[0])}; };
  const std::vector<Spec> specs{x.spec()};
  return wire::parsed(onnx::to_onnx(f, specs), options);
}

Parameter named(const nn::Module& module, const std::string& name) {
  for (const auto& p : module.named_parameters())
    if (p.name == name) return p.variable;
  throw std::invalid_argument("no parameter " + name);
}

/// Returns recurrent, convolutional, normed and attention nets.
std::vector<dsl::Network> nets() {
  std::vector<dsl::Network> all;
  all.push_back(dsl::sequence(4).gru(5).linear(2).build(/*seed=*/1));
  all.push_back(dsl::sequence(4).lstm(5, {.layers = 2, .bidirectional = true}).linear(2).build(/*seed=*/2));
  all.push_back(dsl::sequence(4).causal_conv1d(6, 3).relu().layer_norm().linear(2).build(/*seed=*/3));
  all.push_back(dsl::sequence(4).attention(2, {.causal = true}).rnn(3).linear(2).build(/*seed=*/4));
  for (const dsl::Network& net : all) net.eval();
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_training)

BOOST_AUTO_TEST_CASE(gradients_are_those_of_the_net) {
  for (const dsl::Network& net : nets()) {
    BOOST_TEST_CONTEXT(net.summary()) {
      const Tensor x = numbers({3, 6, 4}), y = numbers({3, 6, 2}, 4);
      const onnx::Model model = imported(net, x);
      const auto gradients = [&](const nn::Layer& layer) {
        Tape tape;
        const Tensor in = tape.watch(x);
        const Tensor loss = nn::mse_loss(layer(in), y);
        Tensors all;
        for (const auto& p : net.named_parameters())
          all.push_back(tape.grad(loss, std::vector<Parameter>{named(layer, p.name)}, {.retain = true})[0]);
        all.push_back(tape.grad(loss, {in})[0]);
        return all;
      };
      const Tensors ours = gradients(net), theirs = gradients(model);
      for (std::size_t i = 0; i < ours.size(); ++i) BOOST_TEST(support::within(theirs[i], ours[i], 1e-6));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_model_trains_as_the_net_does) {
  const Tensor x = numbers({3, 6, 4}), y = numbers({3, 6, 2}, 4);
  const auto net = dsl::sequence(4).gru(5).linear(2).build(/*seed=*/1);
  const onnx::Model model = imported(net, x);
  nn::Adam of_net(net.parameters(), {.learning_rate = 0.01}), of_model(model.parameters(), {.learning_rate = 0.01});
  const auto step = [&](const nn::Layer& layer, nn::Adam& adam) {
    return compile([&](const Tensors& in) -> Tensors {
      Tape tape;
      const Tensor loss = nn::mse_loss(layer(in[0]), in[1]);
      adam.step(tape.grad(loss, layer.parameters()));
      return {loss};
    });
  };
  const auto ours = step(net, of_net), theirs = step(model, of_model);
  Tensor first, last;
  for (int i = 0; i < 30; ++i) {
    last = theirs({x, y})[0];
    if (i == 0) first = last;
    BOOST_TEST(support::within(last, ours({x, y})[0], 1e-5));
  }
  BOOST_TEST(last.item<float>() < 0.7F * first.item<float>());
}

BOOST_AUTO_TEST_CASE(copies_and_files_keep_what_was_learnt) {
  const Tensor x = numbers({3, 6, 4});
  const auto net = dsl::sequence(4).gru(5).linear(2).build(/*seed=*/1);
  const onnx::Model model = imported(net, x);
  const Tensor before = model(x);
  const auto copy = model.clone();
  const Parameter weight = named(model, "1.weight");
  weight.assign(weight.value() * 2);
  BOOST_TEST(support::identical((*copy)(x), before));
  BOOST_TEST(!support::identical(model(x), before));

  const io_test::TemporaryFolder folder;
  io::save(model, folder / "model.safetensors");
  io::load(*copy, folder / "model.safetensors");
  BOOST_TEST(support::identical((*copy)(x), model(x)));
}

BOOST_AUTO_TEST_CASE(a_frozen_model_has_no_parameters) {
  const Tensor x = numbers({3, 6, 4});
  for (const dsl::Network& net : nets()) {
    const onnx::Model model = imported(net, x, {.frozen = true});
    BOOST_TEST(model.parameters().empty());
    const auto planned = compile([&](const Tensors& in) { return model.run(in); });
    BOOST_TEST(support::identical(planned({x})[0], imported(net, x)(x)));
  }
}

/// An input of f16 that never changes is converted once, not in the trace.
BOOST_AUTO_TEST_CASE(constant_inputs_of_every_type) {
  using namespace wire;
  const std::string half = field(11, field(1, "h") + field(2, field(1, number(1, 10))));
  const std::string nodes = node("Cast", "h", "w", int_attribute("to", 1)) + node_of("Mul", {"w", "x"}, {"y"});
  const onnx::Model model =
      parsed(model_of(graph(nodes + half, {"x"}, {"y"})), {.constants = {{"h", Tensor::from({1.5F, 2.0F + 1e-5F})}}});
  BOOST_TEST(model.inputs().size() == 1U);
  const Tensor x = Tensor::from({2.0F, 3.0F});
  const auto planned = compile([&](const Tensors& in) { return model.run(in); });
  BOOST_TEST(support::identical(planned({x})[0], Tensor::from({3.0F, 6.0F})));
}

BOOST_AUTO_TEST_SUITE_END()
