// Damaged ONNX files, whatever their bytes, are refused by a typed error or run.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "ferrite/compile/compile.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/tensor/system/system.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "support/system.h"
#include "wire.h"

using namespace ferrite;
using namespace wire;
using support::says;

namespace {

/// Returns a small model: a GRU with lengths and states.
std::vector<std::byte> model_bytes() {
  const Tensor x = support::fixture("onnx_recurrent.safetensors").tensor("RNN_relu/model");
  std::vector<std::byte> bytes;
  for (const std::int64_t b : cast(x, Dtype::i64).to_vector<std::int64_t>()) bytes.push_back(static_cast<std::byte>(b));
  return bytes;
}

/// Returns a model of opset 17 with these nodes, whose output is "y".
std::string model(const std::string& nodes) {
  const std::string value = field(1, "y"), input = field(1, "x");
  return number(1, 8) + field(7, nodes + field(2, "g") + field(11, input) + field(12, value)) + field(8, number(2, 17));
}
}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_hostile)

BOOST_AUTO_TEST_CASE(a_file_that_ends_anywhere_is_refused_or_runs) {
  const std::vector<std::byte> whole = model_bytes();
  std::size_t refused = 0;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    try {
      const onnx::Model m = onnx::parse(std::span(whole).first(n));
      (void)m.run({ones({2, 3, 4})});
    } catch (const Error&) {
      ++refused;
    }
  }
  BOOST_TEST(refused > whole.size() * 9 / 10);
}

BOOST_AUTO_TEST_CASE(a_file_with_one_other_byte_is_refused_or_runs) {
  const std::vector<std::byte> whole = model_bytes();
  for (const unsigned other : {0x00U, 0x7FU, 0x80U, 0xFFU}) {
    for (std::size_t n = 0; n < whole.size(); ++n) {
      std::vector<std::byte> bytes = whole;
      bytes[n] = static_cast<std::byte>(other);
      try {
        const onnx::Model m = onnx::parse(bytes);
        (void)m.run({ones({2, 3, 4})});
      } catch (const Error&) {
      }
    }
  }
  const onnx::Model m = onnx::parse(whole);
  BOOST_TEST(m.inputs().size() == 1U);
}

BOOST_AUTO_TEST_CASE(graphs_that_cannot_run_are_refused_by_name) {
  const Tensor x = Tensor::from<float>({-1, 2}, {2});
  BOOST_TEST(support::identical(parsed(model(node("Relu", "x", "y"))).run({x})[0], Tensor::from<float>({0, 2}, {2})));
  const auto refuses = [&](const std::string& bytes, const std::string& words) {
    BOOST_TEST_CONTEXT(words) { BOOST_CHECK_EXCEPTION((void)parsed(bytes).run({x}), Error, says(words)); }
  };
  refuses(model(node("Frobnicate", "x", "y")), "Frobnicate");
  refuses(model(node("Relu", "z", "y")), "z");                           // no node defines it
  refuses(model(node("Relu", "y", "z") + node("Relu", "z", "y")), "z");  // a cycle
  refuses(model(node("Relu", "x", "w")), "y");                           // no output
  refuses(model(node("Relu", "x", "y") + node("Relu", "x", "y")), "y");  // defined twice
  refuses(model(node("Relu", "x", "y", field(5, field(1, "alpha") + number(20, 2) + number(3, 1)))), "alpha");
  refuses(model(node("Relu", "x", "y", field(7, "com.example"))), "com.example");  // another domain
  refuses(model(node("Add", "x", "y")), "input 1");                                // an input is missing
  refuses(number(1, 8) + field(8, number(2, 17)), "graph");                        // no graph
  refuses(model(node("Relu", "x", "y")).substr(0, 2), "graph");
  BOOST_CHECK_THROW((void)onnx::read("no_such_file.onnx"), onnx::OnnxError);
}

BOOST_AUTO_TEST_CASE(deep_graphs_and_many_nodes_end) {
  std::string inner = node("Relu", "x", "y");
  for (int depth = 0; depth < 2000; ++depth)
    inner = node("If", "x", "y",
                 field(5, field(1, "then_branch") + number(20, 5) + field(6, inner + field(12, field(1, "y")))));
  BOOST_CHECK_THROW((void)parsed(model(inner)), Error);
  std::string many;
  while (many.size() < (1U << 20)) many += field(1, "");
  BOOST_CHECK_THROW((void)parsed(model(many)), Error);
}

BOOST_AUTO_TEST_CASE(external_data_is_off) {
  // An initialiser whose data are in /etc/passwd.
  const std::string where = field(13, field(1, "location") + field(2, "/etc/passwd"));
  const std::string tensor = number(1, 2) + number(2, 1) + field(8, "w") + number(14, 1) + where;
  const std::string bytes = model(node("Relu", "w", "y") + field(5, tensor));
  BOOST_CHECK_EXCEPTION((void)parsed(bytes), Error, says("external"));
}

BOOST_AUTO_TEST_CASE(tensors_that_do_not_fit_are_refused) {
  const Tensor x = ones({2});
  const auto with = [](const std::string& bytes) {
    return model(node("Relu", "x", "y") + node("Identity", "w", "z") + initialiser(bytes));
  };
  const std::vector<float> two{1, 2};
  BOOST_TEST(parsed(with(tensor<float>("w", 1, {2}, two))).run({x}).size() == 1U);
  const std::size_t minus_one = ~std::size_t{0};
  const std::pair<std::string, const char*> wrong[] = {
      {tensor<float>("w", 1, {3}, two), "bytes"},
      {tensor<float>("w", 1, {1}, two), "bytes"},
      {tensor<float>("w", 1, {}, two), "bytes"},
      {tensor<float>("w", 1, {minus_one}, two), "negative"},
      {tensor<float>("w", 1, {std::size_t{1} << 62, 8}, {}), ""},
      {tensor<float>("w", 1, {std::size_t{1} << 60}, {}), ""},
      {tensor<float>("w", 1, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1.0F}), "axes"},
      {tensor<float>("w", 0, {2}, two), "undefined"},
      {tensor<float>("w", 8, {2}, two), "string"},
      {tensor<float>("w", 14, {2}, two), "complex64"},
      {tensor<float>("w", 17, {8}, two), "float8e4m3fn"},
      {tensor<float>("w", 99, {2}, two), "99"},
      {tensor<char>("w", 9, {2}, {1, 2}), "bool"},
      {tensor<float>("w", 11, {2}, two), "bytes"},
      {tensor<char>("w", 22, {3}, {1}), "bytes"},
      {tensor<float>("w", 1, {2}, two) + field(4, std::string(8, '\0')), "twice"},
      {number(1, 2) + number(2, 1) + field(8, "w") + field(4, std::string(7, '\0')), "multiple"},
      {number(1, 2) + number(2, 1) + field(8, "w") + field(7, "\1\1"), "another type"},
      {number(1, 2) + number(2, 1) + field(8, "w") + number(4, 1), "wire type"},
      {number(1, 2) + number(2, 1) + number(8, 1) + field(9, std::string(8, '\0')), "wire type"},
      {field(1, "\x80\x80") + number(2, 1) + field(8, "w"), "damaged"},
      {tensor<float>("w", 1, {2}, two) + field(3, number(1, 0)), "segments"},
      {tensor<float>("x", 1, {2}, two), "w"},
      {tensor<float>("", 1, {2}, two), "no name"},
  };
  for (const auto& [bytes, words] : wrong) {
    BOOST_TEST_CONTEXT(words) {
      BOOST_CHECK_EXCEPTION((void)parsed(with(bytes)).run({x}), onnx::OnnxError, says(words));
    }
  }
}

BOOST_AUTO_TEST_CASE(sparse_tensors_that_do_not_fit_are_refused) {
  const auto sparse = [](std::vector<std::int64_t> at, std::size_t size) {
    const std::string values = tensor<float>("w", 1, {2}, {5, 7});
    const std::string indices = tensor<std::int64_t>("", 7, {at.size()}, at);
    return model(node_of("Add", {"x", "w"}, {"y"}) + field(15, field(1, values) + field(2, indices) + number(3, size)));
  };
  const Tensor x = zeros({4});
  BOOST_TEST(support::identical(parsed(sparse({0, 2}, 4)).run({x})[0], Tensor::from<float>({5, 0, 7, 0}, {4})));
  BOOST_CHECK_EXCEPTION((void)parsed(sparse({0, 4}, 4)), onnx::OnnxError, says("outside"));
  BOOST_CHECK_EXCEPTION((void)parsed(sparse({2, 2}, 4)), onnx::OnnxError, says("rise"));
  BOOST_CHECK_EXCEPTION((void)parsed(sparse({2, 0}, 4)), onnx::OnnxError, says("rise"));
  BOOST_CHECK_EXCEPTION((void)parsed(sparse({0, 1, 2}, 4)), onnx::OnnxError, says("do not fit"));
  BOOST_CHECK_EXCEPTION((void)parsed(sparse({0, 1}, std::size_t{1} << 40)), onnx::OnnxError, says("too large"));
}

BOOST_AUTO_TEST_CASE(models_and_nodes_that_do_not_fit_are_refused) {
  const Tensor x = ones({2});
  const std::string relu = node("Relu", "x", "y");
  const std::string whole = graph(relu, {"x"}, {"y"});
  const std::string leaky = "LeakyRelu";
  const auto with_attribute = [&](const std::string& bytes) { return model(node(leaky, "x", "y", field(5, bytes))); };
  const std::pair<std::string, const char*> wrong[] = {
      {model_of(whole) + field(7, whole), "two graphs"},
      {number(1, 8) + field(7, whole), "opset"},
      {model_of(whole, 29), "opset 29"},
      {number(1, 8) + field(7, whole) + field(8, field(1, "other") + number(2, 1)), "no opset"},
      {model_of(graph(relu, {"x", "x"}, {"y"})), "two inputs"},
      {model_of(graph(relu, {"x", "y"}, {"y"})), "two values"},
      {model_of(graph(relu, {"x", ""}, {"y"})), "no name"},
      {model_of(graph(relu, {"x"}, {""})), "not defined"},
      {model(node("", "x", "y")), "no operation"},
      {model(node_of("Relu", {}, {"y"})), "missing"},
      {model(node_of("Relu", {"x", "x"}, {"y"})), "input 1"},
      {model(node_of("Relu", {"x"}, {"y", "z"})), "output 1"},
      {with_attribute(number(20, 1)), "no name"},
      {with_attribute(field(1, "alpha") + number(20, 1) + number(3, 1)), "no value of its type"},
      {with_attribute(field(1, "alpha") + number(20, 77)), "no value of its type"},
      {with_attribute(field(1, "alpha") + number(20, 2) + number(3, 1)), "of type"},
      {model(node(leaky, "x", "y", float_attribute("alpha", 1) + float_attribute("alpha", 1))), "twice"},
      {model(node("If", "x", "y", graph_attribute("then_branch", "") + graph_attribute("else_branch", ""))),
       "condition"},
      {model(node("GRU", "x", "y")), ""},
      {model(node("Loop", "x", "y")), ""},
      {model(node("Scan", "x", "y")), ""},
      {model_of(field(5, "x")), "damaged"},
      {field(1, "x"), "wire type"},
      {std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 11), "damaged"},
      {std::string("\x3A\xFF\xFF\xFF\xFF\x0F", 6), "damaged"},
      {std::string("\x3B", 1), ""},
      {std::string(), "no graph"},
      {"PK\3\4 is not a model", ""},
  };
  for (const auto& [bytes, words] : wrong) {
    BOOST_TEST_CONTEXT(words) { BOOST_CHECK_EXCEPTION((void)parsed(bytes).run({x}), onnx::OnnxError, says(words)); }
  }
}

BOOST_AUTO_TEST_CASE(functions_that_call_each_other_are_refused) {
  const auto with = [](const std::string& functions) {
    return model_of(graph(node("f0", "x", "y", own()), {"x"}, {"y"}), 17,
                    field(8, field(1, "own") + number(2, 1)) + functions);
  };
  const auto f = [](int n, const std::vector<int>& calls) {
    std::vector<std::string> nodes;
    std::string before = "x";
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::string after = i + 1 == calls.size() ? "y" : "v" + std::to_string(i);
      nodes.push_back(calls[i] < 0 ? node("Relu", before, after)
                                   : node("f" + std::to_string(calls[i]), before, after, own()));
      before = after;
    }
    return function("f" + std::to_string(n), {"x"}, {"y"}, nodes);
  };
  BOOST_TEST(parsed(with(f(0, {1, -1}) + f(1, {-1}))).run({ones({2})}).size() == 1U);
  BOOST_CHECK_EXCEPTION((void)parsed(with(f(0, {0}))), onnx::OnnxError, says("circle"));
  BOOST_CHECK_EXCEPTION((void)parsed(with(f(0, {1}) + f(1, {2}) + f(2, {0}))), onnx::OnnxError, says("circle"));
  BOOST_CHECK_EXCEPTION((void)parsed(with(f(0, {-1}) + f(0, {-1}))), onnx::OnnxError, says("twice"));
  std::string deep;
  std::string wide;
  for (int n = 0; n < 100; ++n) deep += f(n, {n == 99 ? -1 : n + 1});
  for (int n = 0; n < 30; ++n) wide += n == 29 ? f(n, {-1}) : f(n, {n + 1, n + 1});  // 2^29 nodes in their places
  BOOST_CHECK_EXCEPTION((void)parsed(with(deep)), onnx::OnnxError, says("deeper"));
  BOOST_CHECK_EXCEPTION((void)parsed(with(wide)), onnx::OnnxError, says("more than"));
}

BOOST_AUTO_TEST_CASE(loops_within_loops_end) {
  std::string inner = node_of("Identity", {"x"}, {"y"});
  for (int depth = 0; depth < 12; ++depth) {
    const std::string body = graph(inner + node("Identity", "c", "c2"), {"i", "c"}, {"c2", "y"});
    inner = node_of("Loop", {"n", ""}, {"y"}, graph_attribute("body", body));
  }
  const std::string bytes = model_of(graph(initialiser(tensor<std::int64_t>("n", 7, {}, {8})) + inner, {"x"}, {"y"}));
  BOOST_CHECK_THROW((void)parsed(bytes, {.most_trips = 8}).run({ones({1})}), Error);
}

/// Views cost nothing; the results that they are copied into are limited, eagerly and compiled.
BOOST_AUTO_TEST_CASE(results_that_take_all_memory_are_refused) {
  const auto with = [](std::size_t extent, const std::string& op, const std::string& more) {
    return model_of(graph(initialiser(tensor<std::int64_t>("s", 7, {1}, {static_cast<std::int64_t>(extent)})) +
                              node_of("Expand", {"x", "s"}, {"w"}) + node_of(op, {"w", "w"}, {"y"}, more),
                          {"x"}, {"y"}));
  };
  const std::string joined = int_attribute("axis", 0);
  BOOST_TEST(parsed(with(8, "Concat", joined)).run({ones({1})})[0].numel() == 16);
  const auto refuses = [](const std::string& bytes, const onnx::ReadOptions& options) {
    const onnx::Model m = parsed(bytes, options);
    BOOST_CHECK_EXCEPTION((void)m.run({ones({1})}), onnx::OnnxError, says("too large"));
    const auto compiled = compile([&](const Tensors& x) { return m.run(x); });
    BOOST_CHECK_EXCEPTION((void)compiled(Tensors{ones({1})}), onnx::OnnxError, says("too large"));
  };
  refuses(with(std::size_t{1} << 41, "Concat", joined), {});
  refuses(with(std::size_t{1} << 32, "Concat", joined), {});
  refuses(with(600, "Concat", joined), {.most_elements = 1000});
  refuses(with(2000, "Add", {}), {.most_elements = 1000});
  BOOST_TEST(parsed(with(1000, "Add", {}), {.most_elements = 1000}).run({ones({1})})[0].numel() == 1000);
  BOOST_TEST(ones({2000}).numel() == 2000);  // the limit ends with the node
}

/// Attributes and inputs from which extents are computed: 0 where it would divide, and so large that sums and products
/// would overflow, or that lists would take all memory.
BOOST_AUTO_TEST_CASE(numbers_without_sense_are_refused) {
  const std::size_t far = std::size_t{1} << 62, back = ~std::size_t{0} - far;
  const auto list = [](const std::string& name, const std::vector<std::int64_t>& values) {
    return initialiser(tensor<std::int64_t>(name, 7, {values.size()}, values));
  };
  const auto one = [](const std::string& name, std::int64_t value) {
    return initialiser(tensor<std::int64_t>(name, 7, {}, {value}));
  };
  const std::string kernel = ints_attribute("kernel_shape", {2}),
                    w = initialiser(tensor<float>("w", 1, {1, 1, 1}, {1}));
  const auto large = static_cast<std::int64_t>(far);
  struct Case {
    std::string op;
    std::vector<std::string> inputs;
    std::string attributes, initialisers;
    std::size_t opset = 18;
  };
  std::vector<Case> cases = {
      {"Conv", {"x", "w"}, ints_attribute("strides", {0}), w},
      {"Conv", {"x", "w"}, ints_attribute("dilations", {far}), w},
      {"Conv", {"x", "w"}, ints_attribute("pads", {far, far}), w},
      {"ConvTranspose", {"x", "w"}, ints_attribute("strides", {far}), w},
      {"ConvTranspose", {"x", "w"}, ints_attribute("output_padding", {far}), w},
      {"ConvTranspose", {"x", "w"}, ints_attribute("output_shape", {back}), w},
      {"DepthToSpace", {"v"}, int_attribute("blocksize", std::size_t{1} << 32), w},
      {"SpaceToDepth", {"v"}, int_attribute("blocksize", std::size_t{1} << 32), w},
      {"Split", {"x"}, int_attribute("num_outputs", 0), {}},
      {"Split", {"x"}, int_attribute("num_outputs", far), {}},
      {"Pad", {"x", "p"}, {}, list("p", {0, 0, large, 0, 0, large})},
      {"Range", {"a", "b", "c"}, {}, one("a", -large) + one("b", large) + one("c", 1)},
      {"Range", {"a", "b", "c"}, {}, one("a", 0) + one("b", large >> 8) + one("c", 1)},
      {"Resize", {"x", "", "", "p"}, {}, list("p", {1, 1, std::int64_t{1} << 40})},
      {"Resize", {"x", "", "f"}, {}, initialiser(tensor<float>("f", 1, {3}, {1, 1, 1e30F}))},
      {"Resize",
       {"x", "", "f"},
       field(5, field(1, "mode") + number(20, 3) + field(4, "linear")) + int_attribute("antialias", 1),
       initialiser(tensor<float>("f", 1, {3}, {1, 1, 1e-12F}))},
      {"OneHot",
       {"i", "d", "f"},
       {},
       list("i", {0}) + initialiser(tensor<float>("d", 1, {}, {1e30F})) +
           initialiser(tensor<float>("f", 1, {2}, {0, 1}))},
      {"HannWindow", {"a"}, {}, one("a", large)},
      {"MelWeightMatrix",
       {"a", "b", "c", "f", "g"},
       {},
       one("a", 1 << 20) + one("b", 1 << 24) + one("c", 1) + initialiser(tensor<float>("f", 1, {}, {0})) +
           initialiser(tensor<float>("g", 1, {}, {1e30F}))},
      {"AffineGrid",
       {"t", "p"},
       {},
       initialiser(tensor<float>("t", 1, {1, 2, 3}, std::vector<float>(6))) +
           list("p", {1, 1, std::int64_t{1} << 40, 2}),
       20},
      {"Col2Im", {"x", "p", "q"}, ints_attribute("strides", {0}), list("p", {4}) + list("q", {1})},
      {"Col2Im", {"x", "p", "q"}, ints_attribute("pads", {far, far}), list("p", {4}) + list("q", {1})},
      {"CenterCropPad", {"x", "p"}, {}, list("p", {1, 1, large})},
      {"MaxUnpool", {"x", "x"}, kernel + ints_attribute("strides", {far}), {}},
  };
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"})
    for (const std::string& more : {ints_attribute("strides", {0}), ints_attribute("strides", {far}),
                                    ints_attribute("pads", {far, far}), ints_attribute("pads", {back, back})}) {
      cases.push_back({op, {"x"}, kernel + more, {}});
      cases.push_back({op, {"x"}, kernel + more + int_attribute("ceil_mode", 1), {}});
    }
  for (const std::size_t extent : {std::size_t{0}, far, back})
    cases.push_back({"MaxPool", {"x"}, ints_attribute("kernel_shape", {extent}), {}});
  cases.push_back({"MaxPool", {"x"}, kernel + ints_attribute("dilations", {far}), {}});
  const std::string plane = initialiser(tensor<float>("v", 1, {1, 4, 2, 2}, std::vector<float>(16)));
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT(c.op << " " << &c - cases.data()) {
      const std::string bytes =
          model_of(graph(plane + c.initialisers + node_of(c.op, c.inputs, {"y"}, c.attributes), {"x"}, {"y"}), c.opset);
      BOOST_CHECK_THROW((void)parsed(bytes).run({ones({1, 1, 4})}), onnx::OnnxError);
    }
  }
}

BOOST_AUTO_TEST_CASE(external_data_stays_in_the_folder_of_the_model,
                     *boost::unit_test::precondition(support::has_links)) {
  namespace fs = std::filesystem;
  const fs::path root =
      fs::temp_directory_path() / ("ferrite_onnx_" + std::to_string(ferrite::detail::process_number()));
  fs::remove_all(root);
  fs::create_directories(root / "model" / "inside");
  const std::vector<float> held{1, 2, 3};
  const auto write = [](const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  };
  const std::string raw(reinterpret_cast<const char*>(held.data()), 12);
  write(root / "secret.bin", raw);
  write(root / "model" / "inside" / "w.bin", raw);
  fs::create_symlink(root / "secret.bin", root / "model" / "link.bin");
  fs::create_directory_symlink(root, root / "model" / "up");
  fs::create_symlink("inside/w.bin", root / "model" / "own.bin");
  const auto run = [&](const std::string& location, const std::string& offset = {}, const std::string& length = {},
                       bool allowed = true) {
    std::string where = field(13, field(1, "location") + field(2, location));
    if (!offset.empty()) where += field(13, field(1, "offset") + field(2, offset));
    if (!length.empty()) where += field(13, field(1, "length") + field(2, length));
    const std::string w = number(1, 2) + number(2, 1) + field(8, "w") + number(14, 1) + where;
    write(root / "model" / "m.onnx", model(node_of("Add", {"x", "w"}, {"y"}) + initialiser(w)));
    return onnx::read(root / "model" / "m.onnx", {.external_data = allowed}).run({zeros({2})})[0];
  };
  BOOST_TEST(support::identical(run("inside/w.bin"), Tensor::from<float>({1, 2}, {2})));
  BOOST_TEST(support::identical(run("inside/w.bin", "4", "8"), Tensor::from<float>({2, 3}, {2})));
  BOOST_TEST(support::identical(run("own.bin"), Tensor::from<float>({1, 2}, {2})));  // a link that stays inside
  BOOST_CHECK_EXCEPTION((void)run("inside/w.bin", {}, {}, false), onnx::OnnxError, says("external_data"));
  for (const char* outside : {"link.bin", "up/secret.bin"})
    BOOST_CHECK_EXCEPTION((void)run(outside), onnx::OnnxError, says("leaves"));
  for (const std::string& outside : {std::string("../secret.bin"), (root / "secret.bin").string(), std::string(),
                                     std::string("inside/../../secret.bin"), std::string("inside/w.bin\0x", 14)})
    BOOST_CHECK_EXCEPTION((void)run(outside), onnx::OnnxError, says("below the model's folder"));
  BOOST_CHECK_EXCEPTION((void)run("missing.bin"), onnx::OnnxError, says("missing"));
  BOOST_CHECK_EXCEPTION((void)run("inside"), onnx::OnnxError, says("regular"));
  for (const char* offset : {"8", "12", "999999999999"})
    BOOST_CHECK_EXCEPTION((void)run("inside/w.bin", offset), onnx::OnnxError, says("does not fit"));
  BOOST_CHECK_EXCEPTION((void)run("inside/w.bin", "0", "12"), onnx::OnnxError, says("does not fit"));
  for (const char* offset : {"-4", "four", "99999999999999999999"})
    BOOST_CHECK_EXCEPTION((void)run("inside/w.bin", offset), onnx::OnnxError, says("no number"));
  fs::remove_all(root);
}

BOOST_AUTO_TEST_SUITE_END()
