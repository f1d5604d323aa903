// RTNeural's JSON, weights as JSON, Keras's layout: reading, writing and errors.
#include "ferrite/io/json_weights.h"
#include "ferrite/io/keras.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "io/counting.h"
#include "io/temporary_folder.h"
#include "support/comma_locale.h"
#include "support/compare.h"
#include "support/sanitized.h"

using namespace ferrite;
using io_test::TemporaryFolder;
using support::identical;
using support::says;
using support::within;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

io::TensorFile weights(const std::string& text) { return io::parse_json_weights(bytes_of(text), "w.json"); }
std::unique_ptr<nn::Sequential> net_of(const std::string& text) { return io::parse_rtneural(bytes_of(text), "n.json"); }
std::string layer(const std::string& fields) {
  return "{\"in_shape\": [null, null, 1], \"layers\": [{" + fields + "}]}";
}

struct Hostile {
  std::string text;
  const char* message;
};

std::string nested(std::size_t depth) { return std::string(depth, '[') + "1" + std::string(depth, ']'); }

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {31, stream, 0}, -1, 1); }

}  // namespace

BOOST_AUTO_TEST_SUITE(json)

BOOST_AUTO_TEST_CASE(weights_are_named_lists) {
  const io::TensorFile f = weights(R"({"a": [[1, 2.5, -3e2], [4, 5, 6]], "b": 7, "c": [], "d": [[[1]], [[2]]]})");
  BOOST_TEST(identical(f.tensor("a"), Tensor::from<float>({1, 2.5F, -300, 4, 5, 6}, {2, 3})));
  BOOST_TEST(identical(f.tensor("b"), full({}, 7.0)));
  BOOST_TEST(f.tensor("c").shape().str() == "[0]");
  BOOST_TEST(f.tensor("d").shape().str() == "[2, 1, 1]");
  BOOST_TEST(f.info("a").dtype == "F32");
}

BOOST_AUTO_TEST_CASE(numbers_have_points_in_every_locale) {
  nn::Sequential net;
  net.add("a", std::make_unique<nn::Gru>(1, 3, nn::Init{.seed = 0}));
  net.add("b", std::make_unique<nn::Linear>(3, 1, nn::Init{.seed = 0}));
  const std::string written = io::serialize_rtneural(net);
  const support::CommaLocale locale;
  BOOST_TEST(identical(weights(R"({"a": [1.5, -2.25e3, 12345.5]})").tensor("a"),
                       Tensor::from<float>({1.5F, -2250, 12345.5F})));
  BOOST_TEST(io::serialize_rtneural(net) == written);
  const Tensor x = draw({1, 4, 1}, 3);
  BOOST_TEST(within((*net_of(written))(x), net(x), 1e-6));
}

/// The limit beyond the text is ten times its length and 1 MiB, whatever it holds.
BOOST_AUTO_TEST_CASE(memory_is_bounded_by_the_text) {
  const auto repeated = [](const char* part, std::size_t n) {
    std::string s;
    n = support::unless_sanitized(n, n / 10);
    for (std::size_t i = 0; i < n; ++i) s += (i ? "," : "") + std::string(part);
    return s;
  };
  for (const std::string& inner : {repeated("0", 1000000), repeated("[0]", 300000), repeated("[1,2]", 100000),
                                   repeated("[[[[1]]]]", 100000), repeated("[]", 300000)}) {
    const std::string text = "{\"a\": [" + inner + "]}";
    const std::size_t bytes = counting::peak([&] { (void)weights(text); });
    BOOST_TEST(bytes <= 10 * text.size() + (1u << 20), inner.substr(0, 20) << ": " << bytes << " for " << text.size());
  }
}

BOOST_AUTO_TEST_CASE(hostile_weights_are_refused_in_one_sentence) {
  const std::vector<Hostile> all = {
      {"", "w.json: is not JSON: stopped at byte"},
      {"[1, 2]", "w.json: is not a JSON object"},
      {"{\"a\": [1, 2", "is not JSON: stopped at byte"},
      {"{\"a\": [1, 2,]}", "is not JSON: stopped at byte"},
      {"{\"a\": [1, NaN]}", "is not JSON: stopped at byte"},
      {"{\"a\": [1, Infinity]}", "is not JSON: stopped at byte"},
      {"{\"a\": [0x10]}", "is not JSON: stopped at byte"},
      {"{\"a\": [1,5;2]}", "is not JSON: stopped at byte"},
      {"{\"a\": [1]} x", "is not JSON: stopped at byte"},
      {"{\"a\": [1e999]}", "a number is too large, before byte"},
      {"{\"a\": [1e300]}", "a number does not fit f32"},
      {"{\"a\": [" + std::string(400, '9') + "]}", "a number is too large"},
      {"{\"a\": [1], \"a\": [2]}", "the key 'a' occurs twice"},
      {"{\"a\": [[1, 2], [3]]}", "'a' is a ragged list"},
      {"{\"a\": [[1, 2], 3]}", "'a' is a ragged list"},
      {"{\"a\": [1, null]}", "'a' is a ragged list"},
      {"{\"a\": [1, \"2\"]}", "'a' is a ragged list"},
      {"{\"a\": null}", "'a' is not made of numbers"},
      {"{\"a\": {\"b\": 1}}", "'a' is not made of numbers"},
      {"{\"a\": " + nested(9) + "}", "'a' is a ragged list"},
      {"{\"a\": " + nested(100000) + "}", "is nested deeper than 32 levels"},
      {std::string(100000, '['), "is nested deeper than 32 levels"},
      {"{\"a\": [1], \"\xff\": [2]}", "is not UTF-8: byte"},
      {std::string("\xff\xfe{\0", 4), "is not UTF-8: byte 0"},
      {"{\"layers\": []}", "read it with io::read_rtneural"},
  };
  for (const Hostile& h : all)
    BOOST_TEST_CONTEXT(h.text.substr(0, 40)) BOOST_CHECK_EXCEPTION((void)weights(h.text), IoError, says(h.message));
}

BOOST_AUTO_TEST_CASE(hostile_nets_are_refused_in_one_sentence) {
  const std::string kernel = "[[1, 2]]", bias = "[1, 2]";
  const std::vector<Hostile> all = {
      {"{}", "n.json: has no 'layers'"},
      {"[]", "n.json: has no 'layers'"},
      {"{\"layers\": []}", "n.json: has no layers"},
      {"{\"layers\": 3}", "n.json: has no layers"},
      {"{\"layers\": [3]}", "n.json: layer 0: is no object"},
      {layer(""), "n.json: layer 0: the type '' is not supported"},
      {layer("\"type\": 3"), "n.json: layer 0: 'type' is no text"},
      {layer("\"type\": \"conv1d\""), "n.json: layer 0: conv1d needs 2 arrays of weights, has 0"},
      {layer("\"type\": \"dense\""), "dense needs 2 arrays of weights, has 0"},
      {layer("\"type\": \"dense\", \"weights\": [" + kernel + ", [0], [0]]"), "dense needs 2 arrays of weights, has 3"},
      {layer("\"type\": \"dense\", \"weights\": [" + kernel + ", [1]]"),
       "the bias [1] does not fit the weights [1, 2]"},
      {layer("\"type\": \"dense\", \"weights\": [[1, 2], " + bias + "]"), "weights 0 are no matrix"},
      {layer("\"type\": \"dense\", \"weights\": [[[1, 2], [3]], " + bias + "]"), "weights 0 are no array of numbers"},
      {layer("\"type\": \"dense\", \"activation\": \"elu7\", \"weights\": [" + kernel + ", " + bias + "]"),
       "the activation 'elu7' is not supported"},
      {layer("\"type\": \"gru\", \"weights\": [" + kernel + ", " + kernel + ", " + bias + "]"),
       "a gru's recurrent weights have shape [1, 2]"},
      {layer("\"type\": \"gru\", \"weights\": [[[1, 2, 3]], [[1, 2, 3]], [1, 2]]"), "the bias does not fit"},
      {layer("\"type\": \"gru\", \"activation\": \"relu\", \"weights\": [[[1, 2, 3]], [[1, 2, 3]], [1, 2, 3]]"),
       "a gru with the activation 'relu' is not supported"},
      {layer("\"type\": \"lstm\", \"weights\": [[[1, 2, 3]], [[1, 2, 3, 4]], [1, 2, 3, 4]]"),
       "the matrices of a recurrent layer do not fit each other"},
  };
  for (const Hostile& h : all)
    BOOST_TEST_CONTEXT(h.text.substr(0, 90)) BOOST_CHECK_EXCEPTION((void)net_of(h.text), IoError, says(h.message));
}

BOOST_AUTO_TEST_CASE(a_net_comes_back_as_it_was_written) {
  nn::Sequential net;
  net.add("a", std::make_unique<nn::Linear>(2, 3, nn::Init{.seed = 0}));
  net.add("b", std::make_unique<nn::Activation>("tanh", nn::activation("tanh")));
  net.add("c", std::make_unique<nn::Gru>(3, 4, nn::GruOptions{.layers = 2}, nn::Init{.seed = 0}));
  net.add("d", std::make_unique<nn::Lstm>(4, 3, nn::Init{.seed = 0}));
  net.add("e", std::make_unique<nn::Linear>(3, 1, nn::Init{.seed = 0}));
  const TemporaryFolder folder;
  io::save_rtneural(net, folder / "net.json");
  const auto back = io::read_rtneural(folder / "net.json");
  BOOST_TEST(back->size() == 6u);
  const Tensor x = draw({2, 5, 2}, 1);
  BOOST_TEST(within((*back)(x), net(x), 1e-6));  // an LSTM's biases are added before, not after
  static_cast<const nn::Linear&>((*back)[0]).weight.assign(full({2, 3}, -0.0));
  BOOST_TEST(io::serialize_rtneural(*back) == io::serialize_rtneural(*net_of(io::serialize_rtneural(*back))));
}

BOOST_AUTO_TEST_CASE(what_rtneural_lacks_is_not_written) {
  const auto refuses = [](std::unique_ptr<nn::Layer> l, const char* message) {
    nn::Sequential net;
    net.add("a", std::move(l));
    BOOST_CHECK_EXCEPTION((void)io::serialize_rtneural(net), IoError, says(message));
  };
  refuses(std::make_unique<nn::LayerNorm>(3), "layer 0 (layer_norm): cannot be written");
  refuses(std::make_unique<nn::Gru>(2, 3, nn::GruOptions{.bidirectional = true}, nn::Init{.seed = 0}),
          "two directions cannot be written");
  refuses(std::make_unique<nn::Gru>(2, 3, nn::GruOptions{.reset_after = false}, nn::Init{.seed = 0}),
          "the reset before the product");
  refuses(std::make_unique<nn::Lstm>(2, 3, nn::LstmOptions{.proj_size = 2}, nn::Init{.seed = 0}),
          "a projection cannot be written");
  refuses(std::make_unique<nn::Gru>(2, 3, nn::GruOptions{.bias = false}, nn::Init{.seed = 0}),
          "without bias cannot be written");
  refuses(std::make_unique<nn::Gru>(2, 3, nn::Init{.seed = 0, .dtype = Dtype::f64}), "not f32");
  refuses(std::make_unique<nn::Activation>("tanh", nn::activation("tanh")), "cannot begin with an activation");
}

/// Columns z, r, h of Keras have distinct values, and must arrive in our order.
BOOST_AUTO_TEST_CASE(keras_gates_arrive_in_our_order) {
  const Tensor z = full({1, 2}, 1.0), r = full({1, 2}, 2.0), h = full({1, 2}, 3.0);
  const auto file = [&](const Tensor& bias) {
    return io::tensor_file_of({{"gru.kernel", concat({z, r, h}, 1)},
                               {"gru.recurrent_kernel", concat({concat({z, r, h}, 1), concat({z, r, h}, 1)}, 0)},
                               {"gru.bias", bias},
                               {"dense.kernel", draw({2, 5}, 2)},
                               {"dense.bias", draw({5}, 3)},
                               {"embedding.embeddings", draw({7, 2}, 4)}},
                              "k");
  };
  const Tensor row = squeeze(concat({z, r, h}, 1), 0);
  const io::TensorFile after = io::from_keras(file(stack({row, row + 10})));
  const Tensor ours = squeeze(concat({r, z, h}, 1), 0);
  BOOST_TEST(identical(after.tensor("gru.weight_ih_l0"), unsqueeze(ours, 1)));
  BOOST_TEST(identical(after.tensor("gru.bias_ih_l0"), ours));
  BOOST_TEST(identical(after.tensor("gru.bias_hh_l0"), ours + 10));
  BOOST_TEST(after.tensor("dense.weight").shape().str() == "[5, 2]");
  BOOST_TEST(after.tensor("embedding.weight").shape().str() == "[7, 2]");
  const io::TensorFile before = io::from_keras(file(row));
  BOOST_TEST(identical(before.tensor("gru.bias_hh_l0"), zeros({6})));
  BOOST_CHECK_EXCEPTION((void)io::from_keras(file(draw({5}, 5))), IoError,
                        says("k: 'gru.kernel': the bias does not fit"));
  BOOST_CHECK_EXCEPTION((void)io::from_keras(io::tensor_file_of({{"a.recurrent_kernel", z}}, "k")), IoError,
                        says("'a.recurrent_kernel' has no kernel beside it"));
}

/// The error suggests names: for a misspelling, for a name with a prefix missing, else all names.
BOOST_AUTO_TEST_CASE(an_unknown_name_is_answered_with_names) {
  const Tensor x = full({1}, 1.0);
  const auto file = [&](const std::vector<std::string>& names) {
    std::vector<io::NamedTensor> tensors;
    for (const std::string& name : names) tensors.push_back({name, x});
    return io::tensor_file_of(tensors, "f");
  };
  const auto answers = [&](const io::TensorFile& f, const std::string& name, const std::string& text) {
    BOOST_CHECK_EXCEPTION((void)f.tensor(name), IoError, [&](const IoError& e) {
      BOOST_TEST(std::string(e.what()) == "f: no tensor of this name: '" + name + "'" + text);
      return true;
    });
  };
  const io::TensorFile model = file({"encoder.gru.weight_ih_l0", "encoder.gru.bias_ih_l0", "head.weight", "head.bias",
                                     "tail.weight", "a.b.weight", "c.weight", "d.weight"});
  answers(model, "head.wieght", "; did you mean 'head.weight'?");
  answers(model, "gru.weight_ih_l0", "; did you mean 'encoder.gru.weight_ih_l0'?");
  answers(model, "model.head.bias", "; did you mean 'head.bias'?");
  answers(model, "weight", "; did you mean 'head.weight', 'tail.weight', 'a.b.weight', 'c.weight' or another one?");
  answers(model, "eight",
          "; there are 'encoder.gru.weight_ih_l0', 'encoder.gru.bias_ih_l0', 'head.weight', 'head.bias' and 4 more");
  answers(model, "",
          "; there are 'encoder.gru.weight_ih_l0', 'encoder.gru.bias_ih_l0', 'head.weight', 'head.bias' and 4 more");
  answers(file({"x", "y"}), "weight", "; there are 'x', 'y'");
  answers(file({}), "weight", "");
}

BOOST_AUTO_TEST_CASE(a_model_of_another_reader_is_named) {
  for (const char* text : {R"({"version": "0.5.4", "weights": [1]})", R"({"architecture": "LSTM"})",
                           R"({"config": {}})", R"({"metadata": {"a": 1}})"})
    BOOST_CHECK_EXCEPTION(
        (void)weights(text), IoError,
        says(" is not made of numbers; a .nam file of the Neural Amp Modeler is read with io::read_nam"));
  BOOST_CHECK_EXCEPTION((void)weights(R"({"name": "x"})"), IoError, [](const IoError& e) {
    return std::string(e.what()).ends_with("'name' is not made of numbers");
  });
}

BOOST_AUTO_TEST_CASE(names_can_be_changed) {
  const io::TensorFile f = weights(R"({"model.a": [1], "model.b": [2], "other": [3]})");
  const io::TensorFile r = f.renamed(
      [](std::string_view name) { return name.starts_with("model.") ? std::string(name.substr(6)) : std::string(); });
  BOOST_TEST(r.size() == 2u);
  BOOST_TEST(r.tensor("b").item() == 2);
  BOOST_CHECK_EXCEPTION((void)f.renamed([](std::string_view) { return std::string("x"); }), IoError,
                        says("w.json: two tensors are renamed to one name: 'x'"));
}

BOOST_AUTO_TEST_SUITE_END()
