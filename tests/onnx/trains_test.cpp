// The rule that decides which initialisers of a model are trained, its exceptions, and losses compared with PyTorch's
// (tests/data/make_onnx_training_fixtures.py).
#include <boost/test/unit_test.hpp>
#include <limits>
#include <sstream>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/math.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "wire.h"

using namespace ferrite;
using namespace wire;
using support::says;

namespace {

std::string floats(const std::string& name, const std::vector<std::size_t>& dims, const std::vector<float>& values) {
  return initialiser(tensor<float>(name, 1, dims, values));
}
std::string integers(const std::string& name, const std::vector<std::size_t>& dims,
                     const std::vector<std::int64_t>& values) {
  return initialiser(tensor<std::int64_t>(name, 7, dims, values));
}

std::string names_of(const nn::Module& model) {
  std::string all;
  for (const auto& p : model.named_parameters()) all += (all.empty() ? "" : " ") + p.name;
  return all;
}

/// Returns the line of the report about an initialiser.
std::string line_of(const onnx::Model& model, const std::string& name) {
  std::istringstream report(model.report());
  const std::string head = '"' + name + "\" (initialiser): ";
  for (std::string line; std::getline(report, line);)
    if (line.starts_with(head)) return line.substr(head.size());
  return "none";
}

std::string bytes_of(const Tensor& x) {
  std::string bytes;
  for (const std::int64_t b : cast(x, Dtype::i64).to_vector<std::int64_t>()) bytes.push_back(static_cast<char>(b));
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_trains)

BOOST_AUTO_TEST_CASE(losses_of_the_first_steps_are_those_of_pytorch) {
  const io::TensorFile file = support::fixture("onnx_training.safetensors");
  const std::map<std::string, std::string> trained = {
      {"rms", "norm.weight head.weight head.bias"},
      {"groups", "conv.weight conv.bias running.weight running.bias val_21 val_23"},
      {"experts", "gate.weight gate.bias val_3"},
      // val_133 is head.weight, which the exporter has transposed.
      {"recurrent", "head.bias val_27 val_28 val_44 val_97 val_98 val_120 val_133"},
  };
  std::istringstream names(std::string(file.metadata().at("cases")));
  std::size_t cases = 0;
  for (std::string name; names >> name; ++cases) {
    const Tensor x = file.tensor(name + "/x"), y = file.tensor(name + "/y");
    for (const bool adam : {false, true}) {
      for (const bool compiled : {false, true}) {
        BOOST_TEST_CONTEXT(name << (adam ? ", Adam" : ", SGD") << (compiled ? ", compiled" : "")) {
          const onnx::Model model = parsed(bytes_of(file.tensor(name + "/model")));
          if (trained.contains(name)) BOOST_TEST(names_of(model) == trained.at(name));
          nn::Adam by_adam(model.parameters(), {.learning_rate = 0.01});
          nn::Sgd by_sgd(model.parameters(), {.learning_rate = 0.05});
          const auto step = [&](const Tensors& in) -> Tensors {
            Tape tape;
            const Tensor loss = nn::mse_loss(model.run({in[0]})[0], in[1]);
            const Tensors gradients = tape.grad(loss, model.parameters());
            adam ? by_adam.step(gradients) : by_sgd.step(gradients);
            return {loss};
          };
          const auto planned = compile(step);
          std::vector<float> losses;
          for (int i = 0; i < 6; ++i) losses.push_back((compiled ? planned({x, y}) : step({x, y}))[0].item<float>());
          BOOST_TEST(support::within(Tensor::from(losses, {6}), file.tensor(name + (adam ? "/adam" : "/sgd")), 1e-5));
        }
      }
    }
  }
  BOOST_TEST(cases == 5U);
}

/// Returns a model that computes x W and the row of E at its largest element.
std::string greedy() {
  return floats("W", {2, 3}, {1, 2, 3, 4, 5, 6}) + floats("E", {3, 2}, {1, 2, 3, 4, 5, 6}) +
         node_of("MatMul", {"x", "W"}, {"l"}) + node("ArgMax", "l", "i", int_attribute("axis", 1)) +
         node_of("Gather", {"E", "i"}, {"y"});
}

BOOST_AUTO_TEST_CASE(weights_that_lead_to_indices_are_parameters) {
  const onnx::Model model = parsed(model_of(graph(greedy(), {"x"}, {"y"})));
  BOOST_TEST(names_of(model) == "W E");
  BOOST_TEST(line_of(model, "W") == "trains: floats that have a name");
  const Tensor x = ones({1, 2});
  const auto planned = compile([&](const Tensors& in) { return model.run(in); });
  BOOST_TEST(support::identical(planned({x})[0], model.run({x})[0]));
  BOOST_TEST(support::identical(model.run({x})[0], Tensor::from({5.0F, 6.0F}, {1, 1, 2})));
}

BOOST_AUTO_TEST_CASE(bounds_and_scales_under_names_of_their_own_train) {
  const std::string nodes = node("Neg", "alpha", "low") + node_of("Clip", {"x", "low", "alpha"}, {"c"}) +
                            node("Abs", "step", "s") + node_of("QuantizeLinear", {"c", "s"}, {"q"}) +
                            node_of("DequantizeLinear", {"q", "s"}, {"y"});
  const onnx::Model model =
      parsed(model_of(graph(floats("alpha", {}, {0.5F}) + floats("step", {}, {0.25F}) + nodes, {"x"}, {"y"})));
  BOOST_TEST(names_of(model) == "alpha step");
  // y = 0.25 round(clip(x) / 0.25); d y / d step = round(clip(x) / step), because the rounded quotient is a constant.
  const Tensor x = Tensor::from({0.3F, 2.0F});
  BOOST_TEST(support::identical(model.run({x})[0], Tensor::from({0.25F, 0.5F})));
  Tape tape;
  const Tensors g = tape.grad(sum(model.run({x})[0]), model.parameters());
  BOOST_TEST(g[1].item<float>() == 3.0F);
}

BOOST_AUTO_TEST_CASE(only_what_has_to_be_known_is_folded) {
  // Extents times a scale are a shape; a product with data is not, though its shape is read.
  const std::string content =
      floats("factor", {1}, {2}) + floats("scales", {2}, {1, 2}) + floats("w", {2}, {3, 4}) +
      integers("zero", {1}, {0}) + integers("one", {1}, {1}) + node("Shape", "x", "extents") +
      node_of("Slice", {"extents", "zero", "one"}, {"rows"}) + node("Cast", "rows", "f", int_attribute("to", 1)) +
      node_of("Mul", {"f", "factor"}, {"doubled"}) + node("Cast", "doubled", "n", int_attribute("to", 7)) +
      node_of("Concat", {"n", "one"}, {"shape"}, int_attribute("axis", 0)) + node_of("Mul", {"x", "w"}, {"a"}) +
      node_of("Reshape", {"a", "shape"}, {"b"}) + node_of("Resize", {"b", "", "scales"}, {"y"});
  const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
  BOOST_TEST(names_of(model) == "w");
  BOOST_TEST(line_of(model, "scales") ==
             "folded: its numbers have to be known while a program is traced, by node \"y\" (Resize)");
  BOOST_TEST(line_of(model, "factor").starts_with("folded: its numbers have to be known"));
  BOOST_TEST(line_of(model, "zero") == "fixed: no floats");
  const auto planned = compile([&](const Tensors& in) { return model.run(in); });
  BOOST_TEST(planned({ones({1, 2})})[0].shape() == Shape({2, 2}));
}

/// A number of rows that depends on data cannot be known: values that it is computed from stay parameters.
BOOST_AUTO_TEST_CASE(weights_of_a_shape_that_depends_on_data_are_parameters) {
  const std::string content = floats("w", {3}, {1, 2, 3}) + integers("zero", {1}, {0}) +
                              node_of("Mul", {"x", "w"}, {"a"}) + node("ArgMax", "a", "i", int_attribute("axis", 0)) +
                              node_of("Slice", {"a", "zero", "i"}, {"y"});
  const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
  BOOST_TEST(names_of(model) == "w");
  BOOST_TEST(support::identical(model.run({ones({3})})[0], Tensor::from({1.0F, 2.0F})));
}

BOOST_AUTO_TEST_CASE(shapes_within_functions_are_folded) {
  const std::string bytes =
      model_of(graph(floats("s", {2}, {1, 2}) + node_of("Up", {"x", "s"}, {"y"}, own()), {"x"}, {"y"}), 17,
               field(8, field(1, "own") + number(2, 1)) +
                   function("Up", {"a", "b"}, {"c"}, {node_of("Resize", {"a", "", "b"}, {"c"})}));
  const onnx::Model model = parsed(bytes);
  BOOST_TEST(names_of(model) == "");
  const auto planned = compile([&](const Tensors& in) { return model.run(in); });
  BOOST_TEST(planned({ones({1, 2})})[0].shape() == Shape({1, 4}));
}

/// Covers every name, use and shape that the rule knows.
BOOST_AUTO_TEST_CASE(names_uses_and_shapes_decide) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto check = [](const std::string& content, const std::string& name, const std::string& wanted) {
    BOOST_TEST_CONTEXT(name << ": " << wanted) {
      const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
      BOOST_TEST(line_of(model, name) == wanted);
      BOOST_TEST((names_of(model).find(name) != std::string::npos) == wanted.starts_with("trains"));
    }
  };
  const std::string one = "fixed: one number under a name that an exporter made",
                    own_name = "trains: floats that have a name",
                    used = "trains: an exporter made its name, but its use and shape are those of a weight";
  for (const char* const name : {"val_3", "val", "onnx::Add_7", "17", "Constant_2", "threshold_cast", "_to_copy_1",
                                 "lifted_tensor_0", "const_fold_opt__44", "scalar_tensor_default"})
    check(floats(name, {}, {1}) + node_of("Add", {"x", name}, {"y"}), name, one);
  for (const char* const name : {"scale", "0.val_3", "value_3", "val_3x", "logit_scale", "eps"})
    check(floats(name, {}, {1}) + node_of("Add", {"x", name}, {"y"}), name, own_name);
  check(floats("val_1", {1, 1}, {1}) + node_of("MatMul", {"x", "val_1"}, {"y"}), "val_1", used);
  check(floats("val_1", {1}, {1}) + node_of("PRelu", {"x", "val_1"}, {"y"}), "val_1", used);
  check(floats("val_1", {2, 1}, {1, 1}) + node_of("Mul", {"x", "val_1"}, {"y"}), "val_1", used);
  check(floats("val_1", {2, 2}, {1, 2, 3, 4}) + node_of("Mul", {"x", "val_1"}, {"y"}), "val_1",
        "fixed: a table in arithmetic of elements under a name that an exporter made");
  check(floats("rope", {2, 2}, {1, 2, 3, 4}) + node_of("Mul", {"x", "rope"}, {"y"}), "rope", own_name);
  check(floats("bias", {2}, {0, -inf}) + node_of("Add", {"x", "bias"}, {"y"}), "bias",
        "fixed: infinite elements in arithmetic: a mask");
  const std::string norm = node_of("InstanceNormalization", {"x", "val_1", "b"}, {"y"}) + floats("b", {2}, {0, 0});
  check(floats("val_1", {2}, {1, 1}) + norm, "val_1",
        "fixed: what an exporter gave a normalisation that has no weights");
  check(floats("val_1", {2}, {1, 2}) + norm, "val_1", used);
  check(floats("val_1", {2}, {1, 1}) + norm, "b", own_name);
  check(floats("x_scale", {}, {1}) + node_of("QuantizeLinear", {"x", "x_scale"}, {"y"}), "x_scale",
        "fixed: a scale of quantisation under a name that a tool made");
  check(floats("x_scale", {2}, {1, 1}) + node_of("Mul", {"x", "x_scale"}, {"y"}), "x_scale", own_name);
  check(floats("add_min", {}, {1}) + node_of("Clip", {"x", "add_min"}, {"y"}), "add_min", one);
  const auto gru = [](const std::string& h0) {
    return floats("w", {1, 3, 1}, {1, 1, 1}) + floats("r", {1, 3, 1}, {1, 1, 1}) +
           node_of("GRU", {"x", "w", "r", "", "", h0}, {"y"}) + floats(h0, {1, 1, 1}, {0});
  };
  check(gru("val_9"), "val_9", "fixed: an initial state or a window, no weight");
  check(gru("h0"), "h0", own_name);
  check(initialiser(tensor<char>("flag", 9, {}, {1})) + node_of("Where", {"flag", "x", "x"}, {"y"}), "flag",
        "fixed: no floats");
}

/// PyTorch's exporter merges equal initialisers: the weight of a new BatchNormalization is its variance, too.
BOOST_AUTO_TEST_CASE(running_statistics_stay_where_an_initialiser_is_a_weight_too) {
  const std::string content = floats("g", {2}, {1, 1}) + floats("b", {2}, {0, 0}) +
                              node_of("BatchNormalization", {"x", "g", "b", "b", "g"}, {"y"});
  const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
  BOOST_TEST(names_of(model) == "g b");
  const Tensor x = uniform({3, 2}, {1, 2, 3});
  model.parameters()[0].assign(full({2}, 4.0));
  model.parameters()[1].assign(full({2}, 0.5));
  // Mean 0 and variance 1 are unchanged, epsilon 1e-5.
  BOOST_TEST(support::within(model.run({x})[0], x * (4.0 / std::sqrt(1 + 1e-5)) + 0.5, 1e-6));
  const std::string alone = floats("g", {2}, {1, 1}) + floats("b", {2}, {0, 0}) + floats("m", {2}, {0, 0}) +
                            floats("v", {2}, {1, 1}) + node_of("BatchNormalization", {"x", "g", "b", "m", "v"}, {"y"});
  BOOST_TEST(names_of(parsed(model_of(graph(alone, {"x"}, {"y"})))) == "g b");
}

BOOST_AUTO_TEST_CASE(the_rule_is_overridden_by_name) {
  const std::string content = floats("val_3", {}, {1}) + floats("w", {2}, {1, 2}) + floats("s", {2}, {1, 2}) +
                              integers("k", {1}, {0}) + node_of("Add", {"x", "val_3"}, {"a"}) +
                              node_of("Mul", {"a", "w"}, {"b"}) + node_of("Resize", {"b", "", "s"}, {"c"}) +
                              node_of("Unsqueeze", {"c", "k"}, {"y"});
  const std::string bytes = model_of(graph(content, {"x"}, {"y"}));
  const onnx::Model model = parsed(bytes, {.trains = {{"val_3", true}, {"w", false}, {"s", false}}});
  BOOST_TEST(names_of(model) == "val_3");
  BOOST_TEST(line_of(model, "val_3") == "trains: ReadOptions::trains says so");
  BOOST_TEST(line_of(model, "w") == "fixed: ReadOptions::trains says so");
  const auto refuses = [&](const onnx::ReadOptions& o, const std::string& why) {
    BOOST_CHECK_EXCEPTION((void)parsed(bytes, o), ValueError, says(why));
  };
  refuses({.trains = {{"v", true}}}, "ReadOptions::trains names no initialiser of the model: \"v\"");
  refuses({.trains = {{"s", true}}}, "initialiser \"s\" cannot train: its numbers have to be known");
  refuses({.trains = {{"k", true}}}, "initialiser \"k\" cannot train: its elements are no floats");
  refuses({.frozen = true, .trains = {{"w", true}}}, "initialiser \"w\" cannot train: the model is frozen");
  BOOST_TEST(line_of(parsed(bytes, {.frozen = true}), "w") == "fixed: the model is frozen");
}

BOOST_AUTO_TEST_SUITE_END()
