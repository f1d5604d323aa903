// Reading a model takes at most twice the memory of its file and 1 MiB before anything runs.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "counted.h"
#include "ferrite/io/gguf.h"
#include "ferrite/io/nam.h"
#include "support/wrong_calls.h"
#ifdef FERRITE_ONNX
#include "onnx/wire.h"
#endif

using namespace ferrite;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

/// A temporary file with the given bytes.
struct File {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("ferrite_reading_" + std::to_string(::getpid()));
  explicit File(const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::filesystem::remove(path); }
};

std::int64_t size_of(const std::string& bytes) { return static_cast<std::int64_t>(bytes.size()); }

/// Reads a file and checks the memory that this takes: at most twice the file's size, `more` and 1 MiB.
void check(const std::string& bytes, std::int64_t more, const std::function<void(const File&)>& read) {
  const File file(bytes);
  const std::int64_t most = counted::peak([&] { read(file); });
  const double n = static_cast<double>(bytes.size());
  BOOST_TEST_MESSAGE(bytes.size() << " bytes: " << static_cast<double>(most) / n << " x");
  BOOST_TEST(static_cast<double>(most) <= 2 * n + static_cast<double>(more + kMiB));
  BOOST_TEST(most >= size_of(bytes) / 2);  // the memory was counted
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reading)

BOOST_AUTO_TEST_CASE(gguf) {
  const Tensor x = uniform({4096, 1024}, {1, 2, 3});
  for (const io::GgufType type : {io::GgufType::same, io::GgufType::q8_0, io::GgufType::q4_0}) {
    const auto bytes =
        io::serialize_gguf(std::vector<io::NamedTensor>{{"w", x}}, {}, [&](const io::NamedTensor&) { return type; });
    check({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0,
          [](const File& file) { BOOST_TEST(io::read_gguf(file.path).size() == 1U); });
  }
  std::vector<io::NamedTensor> many;
  for (int i = 0; i < 20'000; ++i) many.push_back({"tensor." + std::to_string(i), ones({8})});
  const auto bytes = io::serialize_gguf(many);
  check({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0,
        [](const File& file) { BOOST_TEST(io::read_gguf(file.path).size() == 20'000U); });
}

BOOST_AUTO_TEST_CASE(nam) {
  // An LSTM with a megabyte of weights.
  io::NamModel model{
      .layer = std::make_unique<io::NamLstm>(io::NamLstmOptions{.hidden_size = 256, .layers = 2}, nn::Init{.seed = 1})};
  const std::string bytes = io::serialize_nam(model);
  check(bytes, 0, [](const File& file) { BOOST_TEST((io::read_nam(file.path).layer != nullptr)); });
}

#ifdef FERRITE_ONNX

using namespace wire;

namespace {

void check_model(const std::string& bytes, std::int64_t more = 0) {
  for (const bool frozen : {false, true})
    check(bytes, more, [&](const File& file) { (void)onnx::read(file.path, {.frozen = frozen}); });
}

void check_refused(const std::string& bytes) {
  check(bytes, 0, [](const File& file) { BOOST_CHECK_THROW((void)onnx::read(file.path), onnx::OnnxError); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(onnx_of_large_initialisers) {
  const std::vector<float> large(4U << 20, 1.5F);
  const auto with = [](const std::string& tensors) {
    return model_of(graph(node("Relu", "x", "y") + tensors, {"x"}, {"y"}));
  };
  check_model(with(initialiser(tensor<float>("w", 1, {4U << 20}, large))));
  const std::string raw(16U << 20, '\1');
  const std::string head = number(1, 4U << 20) + number(2, 1) + field(8, "w");
  check_model(with(initialiser(head + field(4, raw))));  // float_data
  std::string apart;
  for (int i = 0; i < 1 << 20; ++i) apart += std::string("\x25\0\0\x80\x3f", 5);
  check_model(with(initialiser(number(1, 1U << 20) + number(2, 1) + field(8, "w") + apart)));  // not packed
  std::string many;
  for (int i = 0; i < 256; ++i)
    many += initialiser(tensor<float>("w" + std::to_string(i), 1, {1U << 14}, std::vector<float>(1U << 14, 1)));
  check_model(with(many));
  // Elements that are wider in memory: parameters are copied from the file, constants keep their dtype.
  for (const bool many_tensors : {false, true}) {
    const std::size_t n = many_tensors ? 256 : 1, each = (4U << 20) / n;
    std::string halves, bytes, numbers;
    for (std::size_t i = 0; i < n; ++i) {
      const std::string name = "w" + std::to_string(i);
      halves += initialiser(tensor<std::uint16_t>(name, 10, {each}, std::vector<std::uint16_t>(each)));
      bytes += initialiser(tensor<char>(name, 3, {each}, std::vector<char>(each)));
      numbers += initialiser(number(1, each) + number(2, 7) + field(8, name) + field(7, std::string(each, '\1')));
    }
    for (const std::string& tensors : {halves, bytes, numbers}) check_model(with(tensors));
  }
}

BOOST_AUTO_TEST_CASE(raw_elements_of_onnx_are_in_memory_once) {
  const auto many = [](const std::function<std::string(const std::string&)>& place) {
    std::string bytes;
    for (int i = 0; i < 64; ++i)
      bytes += place(tensor<float>("w" + std::to_string(i), 1, {1U << 14}, std::vector<float>(1U << 14, 1)));
    return model_of(graph(node("Relu", "x", "y") + bytes, {"x"}, {"y"}));
  };
  int k = 0;
  const auto constant = [&](const std::string& t) {
    return node_of("Constant", {}, {"c" + std::to_string(k++)},
                   field(5, field(1, "value") + number(20, 4) + field(5, t)));
  };
  for (const std::string& bytes : {many(initialiser), many(constant)}) {
    const File file(bytes);
    for (const bool frozen : {false, true})
      BOOST_TEST(counted::peak([&] { (void)onnx::read(file.path, {.frozen = frozen}); }) < size_of(bytes) + kMiB / 8);
  }
}

BOOST_AUTO_TEST_CASE(onnx_of_constants) {
  const std::string value = field(5, field(1, "value") + number(20, 4) +
                                         field(5, tensor<float>("", 1, {4U << 20}, std::vector<float>(4U << 20, 2))));
  check_model(model_of(graph(node_of("Constant", {}, {"c"}, value) + node_of("Add", {"x", "c"}, {"y"}), {"x"}, {"y"})));
}

BOOST_AUTO_TEST_CASE(onnx_of_many_nodes) {
  constexpr int kNodes = 500'000;
  const auto chain = [](const std::string& operation, const std::string& attributes) {
    std::vector<std::string> nodes;
    std::string before = "x";
    for (int i = 0; i < kNodes; ++i) {
      const std::string after = i + 1 == kNodes ? "y" : std::to_string(i);
      nodes.push_back(node(operation, before, after, attributes));
      before = after;
    }
    return nodes;
  };
  const auto joined = [](const std::vector<std::string>& nodes) {
    std::string all;
    for (const std::string& n : nodes) all += n;
    return all;
  };
  check_model(model_of(graph(joined(chain("Relu", "")), {"x"}, {"y"})));
  check_model(model_of(graph(joined(chain("LeakyRelu", float_attribute("alpha", 0.5F))), {"x"}, {"y"})));
  check_model(model_of(graph(node("Mine", "x", "y", own()), {"x"}, {"y"}), 17,
                       field(8, field(1, "own") + number(2, 1)) + function("Mine", {"x"}, {"y"}, chain("Relu", ""))));
  const std::string branch = field(2, "g") + joined(chain("Relu", "")) + field(12, field(1, "y"));
  const std::string both = graph_attribute("then_branch", branch) + graph_attribute("else_branch", branch);
  check_model(model_of(graph(node("If", "c", "z", both) + field(11, field(1, "c")), {"x"}, {"z"})));
}

BOOST_AUTO_TEST_CASE(onnx_of_many_small_constants) {
  constexpr int kTensors = 50'000;
  for (const std::size_t n : {1U, 200U}) {
    std::string initialisers, nodes;
    for (int i = 0; i < kTensors; ++i) {
      const std::string name = std::to_string(i);
      initialisers += initialiser(tensor<char>(name, 3, {n}, std::vector<char>(n)));
      nodes += node_of(
          "Constant", {}, {name},
          field(5, field(1, "value") + number(20, 4) + field(5, tensor<float>("", 1, {n}, std::vector<float>(n)))));
    }
    for (const std::string& tensors : {initialisers, nodes})
      check_model(model_of(graph(node("Relu", "x", "y") + tensors, {"x"}, {"y"})));
  }
}

BOOST_AUTO_TEST_CASE(onnx_of_many_functions) {
  const std::string padding = field(6, std::string(1U << 18, ' '));  // doc_string
  const auto with = [&](int n) {
    std::string functions, calls;
    for (int i = 0; i < n; ++i) functions += field(25, field(1, std::to_string(i)));
    for (int i = 0; i < n; ++i) calls += node_of(std::to_string(i), {}, {});
    return model_of(graph(node("Relu", "x", "y") + calls, {"x"}, {"y"}), 17, functions + padding);
  };
  check_model(with(4096));
  check_refused(with(4097));
  std::string imports = padding;
  for (int i = 0; i < 256; ++i) imports += field(8, field(1, std::to_string(i)) + number(2, 1));
  check_refused(model_of(graph(node("Relu", "x", "y"), {"x"}, {"y"}), 17, imports));
}

BOOST_AUTO_TEST_CASE(onnx_of_functions_with_many_parts) {
  constexpr int kParts = 200'000;
  const auto with = [&](const std::string& part) {
    std::string parts;
    for (int i = 0; i < kParts; ++i) parts += part;
    return model_of(
        graph(node("Mine", "x", "y", own()), {"x"}, {"y"}), 17,
        field(8, field(1, "own") + number(2, 1)) + function("Mine", {"x"}, {"y"}, {node("Relu", "x", "y")}, parts));
  };
  check_model(with(field(11, field(1, "a") + number(3, 1))));  // attributes with defaults
  check_model(with(field(11, field(1, "a") + field(6, ""))));  // the same with graphs as values
  check_model(with(field(6, "")));                             // names of attributes
  check_model(with(field(5, "y")));                            // outputs
}

BOOST_AUTO_TEST_CASE(onnx_of_nodes_with_many_parts) {
  std::string outputs;
  for (int i = 0; i < 1'000'000; ++i) outputs += field(2, "");
  check_model(model_of(graph(node("Relu", "x", "y", outputs), {"x"}, {"y"})));
  std::string deep, ports;
  for (int i = 0; i < 3000; ++i) ports += field(11, field(1, std::to_string(i)));
  for (int depth = 0; depth < 31; ++depth) {
    std::string attributes;
    for (int i = 0; i < 63; ++i) attributes += graph_attribute("a" + std::to_string(i), "");
    deep = node_of("If", {}, {}, attributes + graph_attribute("z", deep + ports));
  }
  check_model(model_of(graph(node("Relu", "x", "y") + deep, {"x"}, {"y"})));
}

/// The limit beyond twice the file is 1,200 bytes for each parameter, and its elements once more.
BOOST_AUTO_TEST_CASE(onnx_of_many_small_parameters) {
  constexpr std::int64_t kTensors = 10'000, kEach = 1200;
  for (const std::size_t n : {4U, 200U, 500U}) {
    std::string halves;
    for (int i = 0; i < kTensors; ++i)
      halves += initialiser(tensor<std::uint16_t>("w" + std::to_string(i), 10, {n}, std::vector<std::uint16_t>(n)));
    const std::string model = model_of(graph(node("Relu", "x", "y") + halves, {"x"}, {"y"}));
    check_model(model, kTensors * (kEach + 2 * static_cast<std::int64_t>(n)));
  }
}

/// The limit beyond twice the file is 160 bytes for each input and output, and 50 for each of its axes.
BOOST_AUTO_TEST_CASE(onnx_of_many_inputs_and_outputs) {
  constexpr std::int64_t kInputs = 20'000, kEach = 160;
  std::vector<std::string> names;
  for (int i = 0; i < kInputs; ++i) names.push_back(std::to_string(i));
  check_model(model_of(graph(node("Relu", "0", "y"), names, names)), 2 * kInputs * kEach);
  constexpr std::int64_t kAxes = 8, kAxis = 50;
  std::string shape, inputs;
  for (int i = 0; i < kAxes; ++i) shape += field(1, "");
  for (const std::string& name : names)
    inputs += field(11, field(1, name) + field(2, field(1, number(1, 1) + field(2, shape))));
  check_model(model_of(graph(node("Relu", "0", "y") + inputs, {}, {"y"})), kInputs * (kEach + kAxes * kAxis));
  std::string axes;
  for (int i = 0; i < 500'000; ++i) axes += field(1, "");  // TensorShapeProto.Dimension
  const std::string type = field(1, number(1, 1) + field(2, axes));
  const std::string many =
      model_of(graph(node("Relu", "x", "y") + field(11, field(1, "x") + field(2, type)), {}, {"y"}));
  check_refused(many);
  BOOST_CHECK_EXCEPTION((void)parsed(many), onnx::OnnxError, support::says("more than 8 axes"));
}

BOOST_AUTO_TEST_CASE(onnx_that_is_refused) {
  std::string empty, inner = node("Relu", "x", "y");
  while (empty.size() < (1U << 22)) empty += field(1, "");
  check_refused(model_of(graph(empty, {"x"}, {"y"})));
  for (int depth = 0; depth < 2000; ++depth)
    inner = node("If", "x", "y",
                 field(5, field(1, "then_branch") + number(20, 5) + field(6, inner + field(12, field(1, "y")))));
  check_refused(model_of(graph(inner, {"x"}, {"y"})));
  std::string dims;
  while (dims.size() < (1U << 22)) dims += number(1, 1);
  check_refused(model_of(graph(initialiser(dims + number(2, 1) + field(8, "w")), {"x"}, {"y"})));
  std::string attributes;
  for (int i = 0; i < 100'000; ++i) attributes += float_attribute(std::to_string(i), 1);
  check_refused(model_of(graph(node("LeakyRelu", "x", "y", attributes), {"x"}, {"y"})));
  std::string sparse;
  for (int i = 0; i < 200; ++i)
    sparse += field(15, field(1, number(1, 0) + number(2, 1) + field(8, std::to_string(i))) +
                            field(2, number(1, 0) + number(2, 7)) + number(3, 1U << 17));
  const std::string with_sparse = model_of(graph(node("Relu", "x", "y") + sparse, {"x"}, {"y"}));
  BOOST_TEST(counted::peak([&] { BOOST_CHECK_THROW((void)parsed(with_sparse), onnx::OnnxError); }) < 2 * kMiB);
  std::string functions;
  for (int n = 0; n < 30; ++n) {
    const std::string next = "f" + std::to_string(n + 1);
    functions += n == 29 ? function("f29", {"x"}, {"y"}, {node("Relu", "x", "y")})
                         : function("f" + std::to_string(n), {"x"}, {"y"},
                                    {node(next, "x", "a", own()), node(next, "a", "y", own())});
  }
  const std::string padding = field(6, std::string(1U << 20, ' '));  // doc_string
  check_refused(model_of(graph(node("f0", "x", "y", own()), {"x"}, {"y"}), 17,
                         field(8, field(1, "own") + number(2, 1)) + functions + padding));
}

#endif

BOOST_AUTO_TEST_SUITE_END()
