// Oracle and samples of a compiled call, compile/compile.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/compile/detail/program.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/ops.h"

namespace oracles::compiled {
namespace {

struct CompiledCall {
  static constexpr auto name = "compiled";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs) {
    const std::vector<Dense> ends = evaluate(static_cast<const Program&>(*attrs.body).recorded(), in);
    for (std::size_t k = 0; k < out.size(); ++k) out[k].values = ends[k].values;
  }
  /// A product, a nonlinearity and a result that the gradient does not need.
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      const std::vector<Spec> in = {{{2, 3}, dtype}, {{3, 4}, dtype}, {{4}, dtype}};
      const auto f = [](const Tensors& x) {
        const Tensor y = tanh(matmul(x[0], x[1]) + x[2]);
        return Tensors{y, sum(y * y, {1}), y < 0};
      };
      Sample s{.inputs = in, .range = {-1, 1}};
      s.attrs.body = Program::make({trace(f, in), {}, {}}, {});
      list.push_back(std::move(s));
    }
    return list;
  }
};

const Added added(
    {{.name = CompiledCall::name, .evaluate = CompiledCall::oracle, .samples = samples_of<CompiledCall>}});

}  // namespace
}  // namespace oracles::compiled
