// Causal convolutions with strides compared with torch.nn.functional.conv1d on padded input, and their lengths before a
// recurrent layer with packed sequences: values, gradients of first and second order, streams.
// tests/data/make_causal_conv1d_fixtures.py writes the cases.
#include <regex>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/fed.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

const io::TensorFile& file() {
  static const io::TensorFile f = support::fixture("causal_conv1d_strided.safetensors");
  return f;
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const std::string_view n : file().names())
    if (n.ends_with("/dy") && !n.starts_with("packed")) names.emplace_back(n.substr(0, n.size() - 3));
  return names;
}

/// Returns a tensor of the file as the parameter is stored in memory.
Tensor in_memory(const Parameter& p, const Tensor& x) {
  return p.layout() == FileLayout::transposed ? contiguous(transpose(x, 0, 1)) : x;
}

nn::CausalConv1d loaded(const std::string& name, Dtype dtype) {
  std::smatch n;
  const std::regex pattern("k(\\d+)_d(\\d+)_g(\\d+)_s(\\d+)_t(\\d+)");
  BOOST_TEST_REQUIRE(std::regex_match(name, n, pattern));
  nn::CausalConv1d layer({.in_channels = 4,
                          .out_channels = 8,
                          .kernel_size = std::stoll(n[1]),
                          .dilation = std::stoll(n[2]),
                          .stride = std::stoll(n[4]),
                          .groups = std::stoll(n[3])},
                         {.dtype = dtype});
  for (const auto& [parameter, variable] : layer.named_parameters())
    variable.assign(cast(file().tensor(name + "/" + parameter), dtype));
  return layer;
}

/// Compares the values and gradients of f with a case, which names the parameters of the module.
void check(const std::string& name, const nn::Module& module, const std::function<Tensor(const Tensor&)>& f) {
  constexpr double kMost = 1e-10;
  const auto at = [&](const std::string& what) { return file().tensor(name + "/" + what); };
  std::vector<std::string> names{"x"};
  for (const auto& p : module.named_parameters()) names.push_back(p.name);
  const std::vector<Parameter> parameters = module.parameters();
  const auto of = [&](const char* kind, std::size_t i) {
    return i == 0 ? at(kind + names[i]) : in_memory(parameters[i - 1], at(kind + names[i]));
  };
  Tape tape;
  const Tensor x = tape.watch(at("x")), y = f(x);
  BOOST_TEST(within(y, at("y"), kMost), name);
  const GradOf cotangent{y, at("dy")};
  Tensors g = tape.grad({cotangent}, {x}, {.create_graph = true});
  for (const Tensor& t : tape.grad({cotangent}, parameters, {.create_graph = true})) g.push_back(t);
  Tensor total = zeros({}, Dtype::f64);
  for (std::size_t i = 0; i < g.size(); ++i) {
    BOOST_TEST(within(g[i], of("g/", i), kMost), name << ": gradient of " << names[i]);
    total = total + sum(g[i] * of("v/", i));
  }
  Tensors h = tape.grad({{total}}, {x}, {.retain = true});
  for (const Tensor& t : tape.grad({{total}}, parameters)) h.push_back(t);
  for (std::size_t i = 0; i < h.size(); ++i)
    BOOST_TEST(within(h[i], of("h/", i), kMost), name << ": double backward of " << names[i]);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(strided_conv1d_golden)

BOOST_AUTO_TEST_CASE(values_gradients_and_streams) {
  for (const std::string& name : cases()) {
    const nn::CausalConv1d layer = loaded(name, Dtype::f64);
    check(name, layer, [&](const Tensor& x) { return layer(x); });
    const Tensor x = cast(file().tensor(name + "/x"), Dtype::f32);
    const nn::CausalConv1d single = loaded(name, Dtype::f32);
    const Tensor y = single(x);
    BOOST_TEST(within(y, file().tensor(name + "/y"), 1e-6), name << " in f32");
    nn::Stream stream = single.stream(2);
    BOOST_TEST(support::gave(stream, support::fed(stream, x, y.spec()), y, 0, x.shape()[1]), name << ", streamed");
  }
  BOOST_TEST(cases().size() == 36U);
}

BOOST_AUTO_TEST_CASE(lengths_are_those_of_packed_sequences) {
  const auto net =
      dsl::sequence(4).causal_conv1d(8, 3, {.dilation = 2, .stride = 3}, "conv").gru(5, "gru").build({}, Dtype::f64);
  for (const auto& [name, variable] : net.named_parameters())
    variable.assign(in_memory(variable, file().tensor("packed/" + name)));
  const Tensor lengths = file().tensor("packed/lengths");
  BOOST_TEST(identical(net.lengths_after(lengths), file().tensor("packed/left")));
  check("packed", net, [&](const Tensor& x) { return net(x, {.lengths = lengths}); });
}

BOOST_AUTO_TEST_SUITE_END()
