// Damaged ONNX files: whatever their bytes are, they are refused by a typed error or run.
#include <boost/test/unit_test.hpp>

#include "ferrite/exchange/onnx.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::says;

namespace {

/// A small model: a GRU with lengths and states.
std::vector<std::byte> model_bytes() {
  const Tensor x = support::fixture("onnx_recurrent.safetensors").tensor("RNN_relu/model");
  std::vector<std::byte> bytes;
  for (const std::int64_t b : cast(x, Dtype::i64).to_vector<std::int64_t>()) bytes.push_back(static_cast<std::byte>(b));
  return bytes;
}

std::string varint(std::size_t n) {
  std::string out;
  for (; n >= 128; n >>= 7) out += static_cast<char>((n & 127) | 128);
  return out + static_cast<char>(n);
}
/// A field of protobuf: a length and that many bytes.
std::string field(std::size_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
/// A field that holds a number.
std::string number(std::size_t field_number, std::size_t value) { return varint(field_number << 3) + varint(value); }

onnx::Model parsed(const std::string& bytes) {
  return onnx::parse(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

/// A model of opset 17 with these nodes; its output is "y".
std::string model(const std::string& nodes) {
  const std::string value = field(1, "y"), input = field(1, "x");
  return number(1, 8) + field(7, nodes + field(2, "g") + field(11, input) + field(12, value)) + field(8, number(2, 17));
}
std::string node(const std::string& op, const std::string& in, const std::string& out, const std::string& more = {}) {
  return field(1, field(1, in) + field(2, out) + field(4, op) + more);
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
  refuses(model(node("Relu", "z", "y")), "z");                           // nobody gives it
  refuses(model(node("Relu", "y", "z") + node("Relu", "z", "y")), "z");  // a cycle
  refuses(model(node("Relu", "x", "w")), "y");                           // no output
  refuses(model(node("Relu", "x", "y") + node("Relu", "x", "y")), "y");  // given twice
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
  // An initialiser that lies in /etc/passwd.
  const std::string where = field(13, field(1, "location") + field(2, "/etc/passwd"));
  const std::string tensor = number(1, 2) + number(2, 1) + field(8, "w") + number(14, 1) + where;
  const std::string bytes = model(node("Relu", "w", "y") + field(5, tensor));
  BOOST_CHECK_EXCEPTION((void)parsed(bytes), Error, says("external"));
}

BOOST_AUTO_TEST_SUITE_END()
