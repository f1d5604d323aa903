// Causal convolutions compared with torch.nn.functional.conv1d: tests/data/make_causal_conv1d_fixtures.py writes the
// cases.
#include "ferrite/nn/layers/causal_conv1d.h"

#include <regex>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

/// Returns the layer of a case "k3_d2_g1_o6_t11" with the weights of the file.
nn::CausalConv1d loaded(const io::TensorFile& file, const std::string& name, Dtype dtype) {
  std::smatch n;
  const std::regex pattern("k(\\d+)_d(\\d+)_g(\\d+)_o(\\d+)_t(\\d+)");
  BOOST_TEST_REQUIRE(std::regex_match(name, n, pattern));
  nn::CausalConv1d layer({.in_channels = 4,
                          .out_channels = std::stoll(n[4]),
                          .kernel_size = std::stoll(n[1]),
                          .dilation = std::stoll(n[2]),
                          .groups = std::stoll(n[3]),
                          .bias = n[5] != "3"},
                         {.dtype = dtype});
  for (const auto& [parameter, variable] : layer.named_parameters())
    variable.assign(cast(file.tensor(name + "/" + parameter), dtype));
  return layer;
}

std::vector<std::string> cases(const io::TensorFile& file) {
  std::vector<std::string> names;
  for (const std::string_view n : file.names())
    if (n.ends_with("/dy")) names.emplace_back(n.substr(0, n.size() - 3));
  return names;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(causal_conv1d_golden)

BOOST_AUTO_TEST_CASE(values_and_gradients) {
  const io::TensorFile file = support::fixture("causal_conv1d.safetensors");
  for (const std::string& name : cases(file)) {
    const auto at = [&](const std::string& what) { return file.tensor(name + "/" + what); };
    const nn::CausalConv1d layer = loaded(file, name, Dtype::f64);
    Tape tape;
    const Tensor x = tape.watch(at("x")), y = layer(x);
    BOOST_TEST(within(y, at("y"), 1e-12), name);
    const Tensor loss = sum(y * at("dy"));
    BOOST_TEST(within(tape.grad(loss, {x}, {.retain = true})[0], at("g/x"), 1e-12), name);
    const Tensors gradients = tape.grad(loss, layer.parameters());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::string& parameter = layer.named_parameters()[i].name;
      BOOST_TEST(within(gradients[i], at("g/" + parameter), 1e-12), name << " " << parameter);
    }
    BOOST_TEST(within(loaded(file, name, Dtype::f32)(cast(at("x"), Dtype::f32)), at("y"), 1e-6), name << " in f32");
  }
  BOOST_TEST(cases(file).size() == 144U);
}

BOOST_AUTO_TEST_CASE(streams_have_the_bits_of_the_whole) {
  const io::TensorFile file = support::fixture("causal_conv1d.safetensors");
  for (const std::string& name : cases(file)) {
    const nn::CausalConv1d layer = loaded(file, name, Dtype::f32);
    const Tensor x = cast(file.tensor(name + "/x"), Dtype::f32), y = layer(x);
    nn::Stream stream = layer.stream(2);
    BOOST_TEST(stream.on_tensors() == 0U, name);
    for (std::int64_t t = 0; t < x.shape()[1]; ++t) {
      const Tensor in = contiguous(select(x, 1, t));
      std::vector<float> out(static_cast<std::size_t>(2 * layer.options().out_channels));
      stream.step(in.values<float>(), out);
      BOOST_TEST(identical(Tensor::from(out, {2, layer.options().out_channels}), contiguous(select(y, 1, t))),
                 name << ", step " << t);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_state_dict_loads_in_one_line_and_gives_pytorchs_numbers) {
  const io::TensorFile wanted = support::fixture("causal_conv1d.safetensors");
  for (const Dtype dtype : {Dtype::f64, Dtype::f32}) {
    const auto net = dsl::sequence(3)
                         .causal_conv1d(8, 3, {.dilation = 2}, "first")
                         .tanh()
                         .causal_conv1d(6, 2, {.groups = 2, .bias = false}, "second")
                         .tanh()
                         .linear(2, "head")
                         .build({}, dtype);
    io::load(net, support::fixture_path("causal_conv1d.pt"));
    BOOST_TEST(
        within(net(cast(wanted.tensor("net/x"), dtype)), wanted.tensor("net/y"), dtype == Dtype::f64 ? 1e-12 : 1e-6));
  }
}

BOOST_AUTO_TEST_SUITE_END()
