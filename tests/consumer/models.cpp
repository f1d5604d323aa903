// A program that uses the component onnx: it exports a net and reads it back.
#include <ferrite/exchange/onnx.h>
#include <ferrite/exchange/onnx_export.h>
#include <ferrite/ferrite.h>

#include <cstdio>

int main() {
  using namespace ferrite;
  const auto net = dsl::sequence(3).gru(4).linear(2).build(/*seed=*/1);
  const auto f = [&](const Tensors& in) { return Tensors{net(in[0])}; };
  const std::vector<Spec> inputs{{{1, 5, 3}}};
  const std::string bytes = onnx::to_onnx(f, inputs, {.dynamic = {{.name = "batch"}}});
  const onnx::Model model = onnx::parse(std::as_bytes(std::span(bytes)));
  const Tensor x = uniform({2, 5, 3}, {.seed = 2}, -1, 1);
  const bool same = model(x).to_vector<float>() == net(x).to_vector<float>();
  std::printf("%s", model.report().c_str());
  return same ? 0 : 1;
}
