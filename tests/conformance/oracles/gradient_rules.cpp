// Oracles and samples of autograd/custom_function.cpp.
#include <memory>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/autograd/detail/gradient_rule.h"
#include "ferrite/tensor/ops.h"

namespace oracles::gradient_rules {
namespace {

/// The constants of a gradient rule: the number of last operands that are the values.
struct RuleAttrs {
  std::int64_t values = 0;
  static constexpr auto fields = attr_list(attr("values", &RuleAttrs::values));
};

void copy_last(std::span<const Dense> in, std::span<Dense> out, const Attrs&) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i].values = in[in.size() - out.size() + i].values;
}

/// Returns samples of x and of values in place of x^2 and x + 1. Tests compare the values alone; the rule is what is
/// differentiated.
std::span<const Sample> square_samples() {
  static const std::vector<Sample> all = [] {
    Attrs attrs = RuleAttrs{2};
    attrs.body = std::make_shared<GradientRule>("sample", [](const Vjp& v, std::size_t) {
      return Tensors{v.grad_or_zeros(0) * 2 * v.in(0) + v.grad_or_zeros(1)};
    });
    std::vector<Sample> list;
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const Shape& shape : {Shape{3, 4}, Shape{}, Shape{0, 2}})
        list.push_back({.inputs = {{shape, dtype}, {shape, dtype}, {shape, dtype}}, .attrs = attrs, .smooth = false});
    return list;
  }();
  return all;
}

struct Recompute {
  static constexpr auto name = "recompute";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) { out[0].values = in[0].values; }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}}, {.inputs = {{{}}}}, {.inputs = {{{0, 2}, Dtype::i64}}, .indices = {0}}};
  }
};

const Added of_rules({{.name = "custom_gradient", .evaluate = copy_last, .samples = square_samples},
                      {.name = "gradient_hook", .evaluate = copy_last, .samples = square_samples}});
const Added added = add<Recompute>();

}  // namespace
}  // namespace oracles::gradient_rules
