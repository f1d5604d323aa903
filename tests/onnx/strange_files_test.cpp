// Rare contents of other tools' files: empty names, large uint64, corner cases of Resize, norms. Expected numbers are
// closed forms, or loops in the test.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "ferrite/compile/compile.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"
#include "wire.h"

using namespace ferrite;
using namespace wire;
using support::identical;
using support::says;

namespace {

/// Returns an input of f32 with one name for each axis.
std::string input_of(const std::string& name, const std::vector<std::string>& axes, std::size_t type = 1) {
  std::string shape;
  for (const std::string& axis : axes) shape += field(1, field(2, axis));
  return field(11, field(1, name) + field(2, field(1, number(1, type) + field(2, shape))));
}
std::string text_attribute(const std::string& name, const std::string& value) {
  return field(5, field(1, name) + number(20, 3) + field(4, value));
}

/// Runs a model eager and compiled, which must agree.
Tensor result(const onnx::Model& model, const Tensors& in) {
  const Tensor eager = model.run(in)[0];
  const auto compiled = compile([&](const Tensors& x) { return model.run(x); });
  BOOST_TEST(identical(compiled(in)[0], eager));
  return eager;
}

Tensor floats(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

/// Returns x op c for uint64, both given by their bits.
Tensor of_uint64(const std::string& op, const std::vector<std::uint64_t>& x, const std::vector<std::uint64_t>& c,
                 const std::string& more = {}) {
  const std::string content = initialiser(tensor("c", 13, {c.size()}, c)) + node_of(op, {"x", "c"}, {"y"}, more);
  const onnx::Model model = parsed(model_of(graph(content + input_of("x", {"n"}, 13), {}, {"y"}), 18));
  std::vector<std::int64_t> bits;
  for (const std::uint64_t v : x) bits.push_back(static_cast<std::int64_t>(v));
  return result(model, {Tensor::from(bits, {static_cast<std::int64_t>(bits.size())})});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_strange_files)

BOOST_AUTO_TEST_CASE(axes_that_are_named_by_a_question_mark_are_independent) {
  for (const std::string name : {"?", "-1", "None", ""}) {
    const onnx::Model model = parsed(model_of(graph(node("Relu", "x", "y") + input_of("x", {name, name}), {}, {"y"})));
    const Tensor x = Tensor::from({-1.0F, 2.0F, 3.0F, -4.0F, 5.0F, -6.0F}, {2, 3});
    BOOST_TEST(identical(result(model, {x}), relu(x)));
  }
  const onnx::Model same = parsed(model_of(graph(node("Relu", "x", "y") + input_of("x", {"n", "n"}), {}, {"y"})));
  BOOST_CHECK_EXCEPTION((void)same.run({ones({2, 3})}), ShapeError, says("[2, 3] for [n, n]"));
}

/// The results are compared with the compiler's arithmetic.
BOOST_AUTO_TEST_CASE(uint64_from_2_to_the_63_on_is_read_and_ordered) {
  const std::uint64_t top = std::uint64_t{1} << 63U;
  const std::vector<std::uint64_t> numbers{
      0, 1, 2, 7, top - 1, top, top + 1, top + 12345, ~std::uint64_t{0} - 1, ~std::uint64_t{0}};
  std::vector<std::uint64_t> a, b;
  for (const std::uint64_t x : numbers)
    for (const std::uint64_t y : numbers)
      if (y != 0) a.push_back(x), b.push_back(y);
  const auto check = [&](const std::string& op, const auto& f, const std::string& more = {}) {
    std::vector<std::int64_t> wanted;
    for (std::size_t i = 0; i < a.size(); ++i) wanted.push_back(static_cast<std::int64_t>(f(a[i], b[i])));
    BOOST_TEST_CONTEXT(op) {
      const Tensor y = of_uint64(op, a, b, more);
      BOOST_TEST(identical(cast(y, Dtype::i64), Tensor::from(wanted, {static_cast<std::int64_t>(wanted.size())})));
    }
  };
  check("BitwiseAnd", [](auto x, auto y) { return x & y; });
  check("Add", [](auto x, auto y) { return x + y; });
  check("Mul", [](auto x, auto y) { return x * y; });
  check("Div", [](auto x, auto y) { return x / y; });
  check("Mod", [](auto x, auto y) { return x % y; });
  check("Max", [](auto x, auto y) { return std::max(x, y); });
  check("Min", [](auto x, auto y) { return std::min(x, y); });
  check("Less", [](auto x, auto y) { return x < y; });
  check("GreaterOrEqual", [](auto x, auto y) { return x >= y; });
  check("Equal", [](auto x, auto y) { return x == y; });
}

BOOST_AUTO_TEST_CASE(reductions_order_uint64_by_its_value) {
  const std::uint64_t top = std::uint64_t{1} << 63U;
  const auto reduce = [&](const std::string& op, const std::string& out, const std::string& more = {}) {
    const std::string content = initialiser(tensor<std::uint64_t>("c", 13, {3}, {7, top + 2, 1})) +
                                node(op, "c", out, more) + node_of("Add", {"x", out}, {"y"});
    return parsed(model_of(graph(content + input_of("x", {"n"}, op[0] == 'A' ? 7 : 13), {}, {"y"}), 18))
        .run({zeros({1}, Dtype::i64)})[0]
        .to_vector<std::int64_t>()[0];
  };
  BOOST_TEST(reduce("ReduceMax", "m") == static_cast<std::int64_t>(top + 2));
  BOOST_TEST(reduce("ReduceMin", "m") == 1);
  BOOST_TEST(reduce("ArgMax", "m", int_attribute("axis", 0)) == 1);
  BOOST_TEST(reduce("ArgMin", "m", int_attribute("axis", 0)) == 2);
}

/// Keys' cubic at coordinate 0 is the first element; at -0.5 it would blend.
BOOST_AUTO_TEST_CASE(one_element_by_pytorch_half_pixel_is_the_first) {
  for (const std::string mode : {"cubic", "linear"}) {
    const std::string content =
        initialiser(tensor<std::int64_t>("sizes", 7, {1}, {1})) +
        node_of("Resize", {"x", "", "", "sizes"}, {"y"},
                text_attribute("mode", mode) + text_attribute("coordinate_transformation_mode", "pytorch_half_pixel"));
    const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
    BOOST_TEST(identical(result(model, {floats({3, 1, 4, 1, 5})}), floats({3})));
  }
}

BOOST_AUTO_TEST_CASE(norms_of_negative_numbers) {
  const auto normalised = [](std::size_t p) {
    const onnx::Model model = parsed(model_of(
        graph(node("LpNormalization", "x", "y", int_attribute("p", p) + int_attribute("axis", 1)), {"x"}, {"y"})));
    return result(model, {Tensor::from({-3.0F, 1.0F, 0.0F, -4.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F}, {3, 3})});
  };
  BOOST_TEST(
      identical(normalised(1), Tensor::from({-0.75F, 0.25F, 0.0F, -1.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F}, {3, 3})));
  const float n = std::sqrt(10.0F);
  BOOST_TEST(support::within(normalised(2),
                             Tensor::from({-3 / n, 1 / n, 0.0F, -1.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F}, {3, 3}), 1e-7));
}

BOOST_AUTO_TEST_CASE(errors_of_compiled_models_name_the_model_and_the_node) {
  const std::string content = node_of("Gather", {"x", "i"}, {"a"}, field(3, "encoder/look")) + node("Relu", "a", "y");
  const onnx::Model model = parsed(model_of(graph(content, {"x", "i"}, {"y"})));
  const auto compiled = compile([&](const Tensors& in) { return model.run(in); });
  const Tensor x = floats({1, -2});
  const auto at = [](std::int64_t i) { return Tensor::from<std::int64_t>({i}, {1}); };
  BOOST_TEST(identical(compiled({x, at(0)})[0], floats({1})));
  BOOST_CHECK_EXCEPTION((void)model.run({x, at(9)}), Error, says("onnx: node \"encoder/look\" (Gather): "));
  BOOST_CHECK_EXCEPTION((void)compiled({x, at(9)}), Error, says("in onnx/encoder/look: "));
}

BOOST_AUTO_TEST_SUITE_END()
