// Operations and their gradients compared with PyTorch 2.13: tests/data/make_op_fixtures.py writes the cases.
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "golden/functions.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

using In = const Tensors&;

Tensor as_float(const Tensor& x) { return cast(x, Dtype::f64); }

/// Returns the function of every case of the fixture.
const golden::Functions& functions() {
  static const golden::Functions table = golden::with_unary({
      {"add", [](In x) { return x[0] + x[1]; }},
      {"add_broadcast", [](In x) { return x[0] + x[1]; }},
      {"sub", [](In x) { return x[0] - x[1]; }},
      {"mul", [](In x) { return x[0] * x[1]; }},
      {"mul_broadcast", [](In x) { return x[0] * x[1]; }},
      {"div", [](In x) { return x[0] / x[1]; }},
      {"literals", [](In x) { return (2.5 - x[0]) * 3 / (x[0] + 7) + 1; }},
      {"pow", [](In x) { return pow(x[0], x[1]); }},
      {"pow_literal", [](In x) { return pow(x[0], 3); }},
      {"pow_base", [](In x) { return pow(2.5, x[0]); }},
      {"maximum", [](In x) { return maximum(x[0], x[1]); }},
      {"maximum_tie", [](In x) { return maximum(x[0], x[1]); }},
      {"minimum", [](In x) { return minimum(x[0], x[1]); }},
      {"clamp", [](In x) { return clamp(x[0], -0.5, 0.75); }},
      {"where", [](In x) { return where(gt(x[0], 0), x[0] * x[1], x[1]); }},
      {"sum_all", [](In x) { return sum(x[0]); }},
      {"sum_axes",
       [](In x) {
         return sum(x[0], {0, 2});
       }},
      {"sum_keepdim", [](In x) { return sum(x[0], {1}, true); }},
      {"mean", [](In x) { return mean(x[0], {-1}); }},
      {"amax", [](In x) { return amax(x[0], {1}); }},
      {"amax_tie", [](In x) { return amax(x[0], {1}); }},
      {"amin",
       [](In x) {
         return amin(x[0], {0, 1});
       }},
      {"prod", [](In x) { return prod(x[0], {1}); }},
      {"prod_zero", [](In x) { return prod(x[0], {1}); }},
      {"logsumexp", [](In x) { return logsumexp(x[0], {1}); }},
      {"var", [](In x) { return var(x[0], {1}); }},
      {"var_biased", [](In x) { return var(x[0], {0, 1}, false, 0); }},
      {"softmax", [](In x) { return softmax(x[0]); }},
      {"softmax_axis0", [](In x) { return softmax(x[0], 0); }},
      {"log_softmax", [](In x) { return log_softmax(x[0], 1); }},
      {"argmax", [](In x) { return as_float(argmax(x[0], 1)); }},
      {"argmin", [](In x) { return as_float(argmin(x[0], 0)); }},
      {"matmul", [](In x) { return matmul(x[0], x[1]); }},
      {"matmul_vectors", [](In x) { return matmul(x[0], x[1]); }},
      {"matmul_matrix_vector", [](In x) { return matmul(x[0], x[1]); }},
      {"matmul_vector_matrix", [](In x) { return matmul(x[0], x[1]); }},
      {"matmul_batched", [](In x) { return matmul(x[0], x[1]); }},
      {"matmul_folded", [](In x) { return matmul(x[0], x[1]); }},
      {"matmul_broadcast", [](In x) { return matmul(x[0], x[1]); }},
      {"matmul_transposed", [](In x) { return matmul(transpose(x[0]), transpose(x[1])); }},
      {"reshape", [](In x) { return reshape(x[0], {4, 3}) * 2; }},
      {"permute", [](In x) { return permute(x[0], {2, 0, 1}); }},
      {"transpose", [](In x) { return transpose(x[0], 0, 2); }},
      {"slice", [](In x) { return slice(slice(x[0], 0, 1), 1, 0, -1); }},
      {"slice_step", [](In x) { return slice(x[0], 1, 1, kEnd, 2); }},
      {"slice_negative_step", [](In x) { return slice(x[0], 0, kEnd, kEnd, -3); }},
      {"select", [](In x) { return select(x[0], 1, -2); }},
      {"expand", [](In x) { return expand(x[0], {2, 3, 4}); }},
      {"squeeze", [](In x) { return squeeze(x[0], 1); }},
      {"unsqueeze", [](In x) { return unsqueeze(x[0], 1); }},
      {"flip", [](In x) { return flip(x[0], {0, 1}); }},
      {"concat", [](In x) { return concat({x[0], x[1]}, 1); }},
      {"stack", [](In x) { return stack({x[0], x[1]}, 1); }},
      {"split", [](In x) { return split(x[0], 2, 1)[0] * 2 + split(x[0], 2, 1)[1]; }},
      {"chunk", [](In x) { return chunk(x[0], 3)[2]; }},
      {"unbind", [](In x) { return unbind(x[0], 1)[2]; }},
      {"pad", [](In x) { return pad(x[0], {0, 1}, {3, 2}, 1.5); }},
      {"pad_crop", [](In x) { return pad(x[0], {0, -1}, {0, 2}); }},
      {"gather", [](In x) { return gather(x[0], 1, x[1]); }},
      {"index_select", [](In x) { return index_select(x[0], 0, x[1]); }},
      {"scatter_add", [](In x) { return scatter_add(x[0], 0, x[1], x[2]); }},
      {"one_hot", [](In x) { return one_hot(x[0], 5, Dtype::f64); }},
      {"embedding", [](In x) { return reshape(index_select(x[0], 0, reshape(x[1], {-1})), {2, 2, 3}); }},
      {"layer_norm", [](In x) { return layer_norm(x[0]); }},
      {"layer_norm_2", [](In x) { return layer_norm(x[0], 2); }},
      {"cross_entropy", [](In x) { return nn::cross_entropy(x[0], x[1]); }},
      {"cross_entropy_sum", [](In x) { return nn::cross_entropy(x[0], x[1], nn::Reduction::sum); }},
      {"cross_entropy_none", [](In x) { return nn::cross_entropy(x[0], x[1], nn::Reduction::none); }},
      {"mse_loss", [](In x) { return nn::mse_loss(x[0], x[1]); }},
      {"l1_loss", [](In x) { return nn::l1_loss(x[0], x[1]); }},
      {"bce_with_logits", [](In x) { return nn::bce_with_logits(x[0], x[1]); }},
      {"linear", [](In x) { return matmul(x[0], transpose(x[1])) + x[2]; }},
  });
  return table;
}

void check(const std::string& name, const golden::Function& f) {
  const io::TensorFile file = support::fixture("ops.safetensors");
  Tape tape;
  Tensors in;
  for (int k = 0; file.contains(name + "/in" + std::to_string(k)); ++k) {
    const Tensor x = file.tensor(name + "/in" + std::to_string(k));
    in.push_back(is_float(x.dtype()) ? tape.watch(x) : x);
  }
  const Tensor out = f(in);
  BOOST_TEST(within(out, file.tensor(name + "/out"), 1e-13));
  if (!file.contains(name + "/cot")) return;
  Tensors variables;
  std::vector<std::string> names;
  for (std::size_t k = 0; k < in.size(); ++k)
    if (is_float(in[k].dtype())) {
      variables.push_back(in[k]);
      names.push_back(name + "/g" + std::to_string(k));
    }
  const Tensors g =
      tape.grad(out, std::span<const Tensor>(variables.data(), variables.size()), {}, file.tensor(name + "/cot"));
  for (std::size_t k = 0; k < names.size(); ++k) BOOST_TEST(within(g[k], file.tensor(names[k]), 1e-12), names[k]);
}

const bool registered = [] {
  for (const auto& [name, f] : functions())
    boost::unit_test::framework::current_auto_test_suite().add(
        boost::unit_test::make_test_case([name = name, f = f] { check(name, f); }, "op_" + name, __FILE__, __LINE__));
  return true;
}();

}  // namespace

BOOST_AUTO_TEST_CASE(every_case_of_the_fixture_has_its_counterpart) {
  BOOST_TEST(registered);
  const io::TensorFile file = support::fixture("ops.safetensors");
  std::set<std::string> cases;
  for (const std::string_view name : file.names()) cases.insert(std::string(name.substr(0, name.find('/'))));
  for (const std::string& name : cases) BOOST_TEST(functions().contains(name), name);
  BOOST_TEST(cases.size() == functions().size());
  BOOST_TEST(cases.size() >= 60U);
}
