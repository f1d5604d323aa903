// Operations whose defaults and forms differ between opsets, with numbers computed by hand.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "support/compare.h"
#include "wire.h"

using namespace ferrite;
using namespace wire;
using support::within;

namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

std::string text_attribute(const std::string& name, const std::string& value) {
  return field(5, field(1, name) + number(20, 3) + field(4, value));
}
std::string floats(const std::string& name, const std::vector<std::size_t>& dims, const Floats& values) {
  return initialiser(tensor<float>(name, 1, dims, values));
}
std::string integers(const std::string& name, const Integers& values) {
  return initialiser(tensor<std::int64_t>(name, 7, {values.size()}, values));
}

/// Runs one node from x (and initialisers) to y.
Tensor run(std::size_t opset, const std::string& op, const std::vector<std::string>& inputs,
           const std::string& attributes, const std::string& initialisers, const Tensor& x) {
  return parsed(model_of(graph(initialisers + node_of(op, inputs, {"y"}, attributes), {"x"}, {"y"}), opset))
      .run({x})[0];
}
void check(const Tensor& y, const Tensor& expected) {
  BOOST_TEST(y.shape().str() == expected.shape().str());
  if (y.shape() == expected.shape()) BOOST_TEST(within(cast(y, Dtype::f32), cast(expected, Dtype::f32), 1e-6));
}
Tensor line(const Floats& values) { return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())}); }
Tensor signal(const Floats& values) {
  return Tensor::from<float>(values, {1, 1, static_cast<std::int64_t>(values.size())});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_operations)

BOOST_AUTO_TEST_CASE(softmax_before_opset_13_is_over_all_axes_from_one_on) {
  check(run(11, "Softmax", {"x"}, "", "", zeros({1, 2, 2})), full({1, 2, 2}, 0.25));
  check(run(13, "Softmax", {"x"}, "", "", zeros({1, 2, 4})), full({1, 2, 4}, 0.25));
  check(run(11, "LogSoftmax", {"x"}, int_attribute("axis", 2), "", zeros({1, 2, 2})), full({1, 2, 2}, -std::log(2.0)));
}

BOOST_AUTO_TEST_CASE(reductions_keep_axes_and_take_them_from_where_the_opset_has_them) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  check(run(11, "ReduceSum", {"x"}, "", "", x), full({1, 1}, 10));
  check(run(11, "ReduceSum", {"x"}, ints_attribute("axes", {1}), "", x), Tensor::from<float>({3, 7}, {2, 1}));
  check(run(13, "ReduceSum", {"x", "a"}, int_attribute("keepdims", 0), integers("a", {-2}), x), line({4, 6}));
  check(run(13, "ReduceSum", {"x"}, int_attribute("noop_with_empty_axes", 1), "", x), x);
  check(run(13, "ReduceMean", {"x"}, ints_attribute("axes", {0}), "", x), Tensor::from<float>({2, 3}, {1, 2}));
  check(run(18, "ReduceMean", {"x", "a"}, "", integers("a", {1}), x), Tensor::from<float>({1.5F, 3.5F}, {2, 1}));
}

BOOST_AUTO_TEST_CASE(padding_of_convolutions_and_pools) {
  const Tensor x = signal({1, 2, 3});
  const std::string w = floats("w", {1, 1, 2}, {1, 10});
  const auto conv = [&](const std::string& more) { return run(11, "Conv", {"x", "w"}, more, w, x); };
  check(conv(text_attribute("auto_pad", "SAME_LOWER")), signal({10, 21, 32}));
  check(conv(text_attribute("auto_pad", "SAME_UPPER")), signal({21, 32, 3}));
  check(conv(text_attribute("auto_pad", "VALID")), signal({21, 32}));
  check(conv(ints_attribute("pads", {0, 2})), signal({21, 32, 3, 0}));
  check(conv(ints_attribute("pads", {1, 0}) + ints_attribute("strides", {2})), signal({10, 32}));
  const std::string kernel = ints_attribute("kernel_shape", {2});
  const auto mean = [&](const std::string& more) { return run(11, "AveragePool", {"x"}, kernel + more, "", x); };
  check(mean(ints_attribute("pads", {1, 0})), signal({1, 1.5F, 2.5F}));
  check(mean(ints_attribute("pads", {1, 0}) + int_attribute("count_include_pad", 1)), signal({0.5F, 1.5F, 2.5F}));
  const auto most = [&](const std::string& more) {
    return run(11, "MaxPool", {"x"}, kernel + ints_attribute("strides", {2}) + more, "", x);
  };
  check(most(""), signal({2}));
  check(most(int_attribute("ceil_mode", 1)), signal({2, 3}));
  // All begins come before all ends.
  check(run(11, "Pad", {"x", "p"}, "", integers("p", {0, 0, 1, 0, 0, 2}), x), signal({0, 1, 2, 3, 0, 0}));
  check(run(2, "Pad", {"x"}, ints_attribute("pads", {0, 0, 0, 0, 0, 1}) + float_attribute("value", 9), "", x),
        signal({1, 2, 3, 9}));
}

BOOST_AUTO_TEST_CASE(slices_and_gathers) {
  const Tensor x = line({0, 1, 2, 3, 4, 5});
  const auto slice = [&](std::int64_t begin, std::int64_t end, std::int64_t step) {
    return run(13, "Slice", {"x", "b", "e", "a", "s"}, "",
               integers("b", {begin}) + integers("e", {end}) + integers("a", {0}) + integers("s", {step}), x);
  };
  check(slice(1, 6, 2), line({1, 3, 5}));
  check(slice(-2, 1, -1), line({4, 3, 2}));
  check(slice(5, std::numeric_limits<std::int64_t>::min(), -2), line({5, 3, 1}));
  check(slice(4, 3, -2), line({4}));
  check(slice(-100, 100, 4), line({0, 4}));
  check(run(9, "Slice", {"x"}, ints_attribute("starts", {2}) + ints_attribute("ends", {4}), "", x), line({2, 3}));
  check(run(13, "Gather", {"x", "i"}, "", integers("i", {-1, 1}), x), line({5, 1}));
  check(run(13, "GatherElements", {"x", "i"}, "", integers("i", {-6, -2}), x), line({0, 4}));
  const Tensor parts = run(11, "Split", {"x"}, ints_attribute("split", {6}), "", x);
  check(parts, x);
}

BOOST_AUTO_TEST_CASE(resizing_in_every_coordinate_mode) {
  const Tensor x = signal({0, 4});
  const auto resized = [&](const std::string& mode, const std::string& coordinates, const Floats& scales,
                           const std::string& more = {}) {
    return run(13, "Resize", {"x", "", "s"},
               text_attribute("mode", mode) + text_attribute("coordinate_transformation_mode", coordinates) + more,
               floats("s", {3}, scales), x);
  };
  check(resized("linear", "half_pixel", {1, 1, 2}), signal({0, 1, 3, 4}));
  check(resized("linear", "asymmetric", {1, 1, 2}), signal({0, 2, 4, 4}));
  check(resized("linear", "align_corners", {1, 1, 2}), signal({0, 4.0F / 3, 8.0F / 3, 4}));
  check(resized("linear", "pytorch_half_pixel", {1, 1, 0.5F}), signal({0}));
  check(resized("linear", "half_pixel", {1, 1, 0.5F}), signal({2}));
  check(resized("nearest", "asymmetric", {1, 1, 2}), signal({0, 0, 4, 4}));  // 0.5 to the floor
  check(resized("nearest", "asymmetric", {1, 1, 2}, text_attribute("nearest_mode", "round_prefer_ceil")),
        signal({0, 4, 4, 4}));
  check(resized("nearest", "asymmetric", {1, 1, 2}, text_attribute("nearest_mode", "ceil")), signal({0, 4, 4, 4}));
  check(run(9, "Upsample", {"x", "s"}, text_attribute("mode", "linear"), floats("s", {3}, {1, 1, 2}), x),
        signal({0, 2, 4, 4}));
}

BOOST_AUTO_TEST_CASE(quantising_rounds_to_even_and_saturates) {
  const Tensor x = line({-100, -3, 1, 3, 5, 1000});
  const auto quantised = [&](const std::string& zero) {
    return run(13, "QuantizeLinear", {"x", "s", "z"}, "", floats("s", {}, {2}) + initialiser(zero), x);
  };
  check(quantised(tensor<std::uint8_t>("z", 2, {}, {10})), line({0, 8, 10, 12, 12, 255}));
  check(quantised(tensor<std::int8_t>("z", 3, {}, {-10})), line({-60, -12, -10, -8, -8, 127}));
  const std::string bytes = initialiser(tensor<std::uint8_t>("q", 2, {2, 2}, {0, 1, 2, 255}));
  const std::string axis_0 = floats("s", {2}, {1, 10}) + initialiser(tensor<std::uint8_t>("z", 2, {2}, {1, 2}));
  const auto back = [&](const std::string& axis) {
    const std::string nodes =
        node_of("DequantizeLinear", {"q", "s", "z"}, {"d"}, axis) + node_of("Add", {"d", "x"}, {"y"});
    return parsed(model_of(graph(bytes + axis_0 + nodes, {"x"}, {"y"}), 13)).run({zeros({1})})[0];
  };
  check(back(int_attribute("axis", 0)), Tensor::from<float>({-1, 0, 0, 2530}, {2, 2}));
  check(back(""), Tensor::from<float>({-1, -10, 1, 2530}, {2, 2}));  // the last axis
}

/// Integer fields hold the bits of float16 and bfloat16 and integers of any width, packed or one by one.
BOOST_AUTO_TEST_CASE(elements_in_typed_fields) {
  const auto values = [](std::size_t type, std::size_t elements, const std::string& fields) {
    const std::string held = initialiser(number(1, elements) + number(2, type) + field(8, "w") + fields);
    const std::string nodes = node_of("Cast", {"w"}, {"c"}, int_attribute("to", 1)) + node_of("Add", {"c", "x"}, {"y"});
    return parsed(model_of(graph(held + nodes, {"x"}, {"y"}))).run({zeros({1})})[0];
  };
  const std::size_t minus_2 = ~std::size_t{0} - 1;
  check(values(7, 3, number(7, 300) + number(7, minus_2) + number(7, 70'000)), line({300, -2, 70'000}));
  check(values(7, 2, field(7, varint(300) + varint(5))), line({300, 5}));
  check(values(6, 2, field(5, varint(40'000) + varint(minus_2))), line({40'000, -2}));
  check(values(3, 2, field(5, varint(100) + varint(minus_2))), line({100, -2}));
  check(values(12, 1, number(11, 4'000'000'000)), line({4e9F}));
  check(values(10, 2, field(5, varint(0x3C00) + varint(0xC000))), line({1, -2}));
  check(values(16, 2, number(5, 0x3F80) + number(5, 0xC000)), line({1, -2}));
  check(values(9, 2, number(5, 1) + number(5, 0)), line({1, 0}));
  check(values(22, 3, field(5, varint(0x71) + varint(0x0F))), line({1, 7, -1}));  // int4, the low half first
  const Floats many(20'000, 1.5F);
  std::string raw(many.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), many.data(), raw.size());
  check(values(1, 20'000, field(4, raw)), full({20'000}, 1.5));
  check(values(1, 1, varint(4U << 3 | 5) + raw.substr(0, 4)), line({1.5F}));
  const double half = 0.5;
  check(values(11, 1, field(10, std::string(reinterpret_cast<const char*>(&half), 8))), line({0.5F}));
}

BOOST_AUTO_TEST_CASE(defaults_of_attributes) {
  const auto one = [](const std::string& op, float x) { return run(13, op, {"x"}, "", "", line({x})); };
  check(one("LeakyRelu", -100), line({-1}));
  check(one("Elu", -1), line({std::expm1(-1.0F)}));
  check(one("HardSigmoid", 1), line({0.7F}));
  check(one("ThresholdedRelu", 0.75F), line({0}));
  check(one("Selu", 1), line({1.05070098F}));
  check(run(6, "Clip", {"x"}, float_attribute("max", 1), "", line({-1e30F, 5})), line({-1e30F, 1}));
  check(run(11, "Clip", {"x", "", "m"}, "", floats("m", {}, {1}), line({-1e30F, 5})), line({-1e30F, 1}));
  // The deviations are 0, so only the epsilon, 1e-5, remains.
  const std::string numbers =
      floats("g", {1}, {1}) + floats("b", {1}, {0}) + floats("m", {1}, {0}) + floats("v", {1}, {0});
  check(run(13, "BatchNormalization", {"x", "g", "b", "m", "v"}, "", numbers, signal({0.01F})),
        signal({0.01F / std::sqrt(1e-5F)}));
  check(run(13, "BatchNormalization", {"x", "g", "b", "m", "v"}, float_attribute("epsilon", 1), numbers, signal({3})),
        signal({3}));
  check(run(13, "LRN", {"x"}, int_attribute("size", 1), "", signal({10})), signal({10 / std::pow(1.01F, 0.75F)}));
  const Tensor square = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  check(run(13, "Gemm", {"x", "w"}, int_attribute("transA", 1), floats("w", {2, 1}, {1, 10}), square),
        Tensor::from<float>({31, 42}, {2, 1}));
  check(run(13, "Gemm", {"x", "w", "c"}, float_attribute("beta", 2),
            floats("w", {2, 1}, {1, 10}) + floats("c", {1}, {0.5F}), square),
        Tensor::from<float>({22, 44}, {2, 1}));
  check(run(13, "CumSum", {"x", "a"}, int_attribute("exclusive", 1), initialiser(tensor<std::int64_t>("a", 7, {}, {0})),
            line({1, 2, 3})),
        line({0, 1, 3}));
  check(run(13, "Flatten", {"x"}, "", "", zeros({2, 3, 4})), zeros({2, 12}));
}

BOOST_AUTO_TEST_SUITE_END()
