// Directional derivatives, Jacobians, Hessians and third derivatives compared with torch.autograd.functional of PyTorch
// 2.13: tests/data/make_autograd_fixtures.py writes the cases.
#include <set>

#include "ferrite/autograd/checkpoint.h"
#include "ferrite/autograd/custom_function.h"
#include "ferrite/autograd/jacobian.h"
#include "ferrite/autograd/jvp.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/loss.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

using In = const Tensors&;
using Function = std::function<Tensor(const Tensors&)>;

const Tensor& picks() {
  static const Tensor index = Tensor::from<std::int64_t>({0, 2, 2, 1, 0, 1}, {2, 3});
  return index;
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      {"square", [](In x) { return x[0] * x[0]; }},
      {"tanh_of_product", [](In x) { return tanh(matmul(x[0], x[1])); }},
      {"mlp", [](In x) { return matmul(tanh(matmul(x[0], x[1]) + x[2]), x[3]); }},
      {"softmax", [](In x) { return softmax(x[0]); }},
      {"log_softmax", [](In x) { return log_softmax(x[0], 0); }},
      {"logsumexp", [](In x) { return logsumexp(x[0], {1}); }},
      {"layer_norm", [](In x) { return layer_norm(x[0]); }},
      {"gelu", [](In x) { return gelu(x[0]); }},
      {"silu", [](In x) { return silu(x[0]); }},
      {"sigmoid", [](In x) { return sigmoid(x[0]); }},
      {"softplus", [](In x) { return softplus(x[0]); }},
      {"exp_sin", [](In x) { return exp(sin(x[0]) * x[1]); }},
      {"quotient", [](In x) { return x[0] / (2 + x[1] * x[1]); }},
      {"power", [](In x) { return pow(2 + x[0], 1.5); }},
      {"pow_both", [](In x) { return pow(2 + x[0], x[1]); }},
      {"broadcast", [](In x) { return x[0] * x[1] + x[1]; }},
      {"prod", [](In x) { return prod(x[0], {1}); }},
      {"prod_with_zero", [](In x) { return prod(x[0]); }},
      {"var", [](In x) { return var(x[0], {1}); }},
      {"amax_of_distinct", [](In x) { return amax(x[0], {1}) * sum(x[0], {1}); }},
      {"gather", [](In x) { return square(gather(x[0], 1, picks())); }},
      {"scatter_add", [](In x) { return square(scatter_add(x[0], 1, picks(), x[1])); }},
      {"where", [](In x) { return where(gt(x[0], 0), x[0] * x[1], x[1] * x[1]); }},
      {"relu", [](In x) { return relu(x[0]) * x[0]; }},
      {"clamp", [](In x) { return clamp(x[0], -0.5, 0.5) * x[0]; }},
      {"pad_slice_concat",
       [](In x) {
         return pow(concat({slice(pad(x[0], {1}, {2}), 0, 1, 5), x[1]}), 3);
       }},
      {"permute_reshape",
       [](In x) {
         return square(reshape(permute(x[0], {2, 0, 1}), {4, 3}));
       }},
      {"rank_0", [](In x) { return x[0] * cos(x[1]); }},
      {"one_element", [](In x) { return log(x[0] * x[0] + 1); }},
      {"tall", [](In x) { return reshape(unsqueeze(x[0], 1) * x[0], {9}); }},
      {"wide", [](In x) { return slice(sum(matmul(x[0], transpose(x[0])), {0}), 0, 0, 1); }},
      {"independent", [](In x) { return x[0] * 2; }},
      {"batched_product", [](In x) { return matmul(x[0], x[1]); }},
      {"cross_entropy",
       [](In x) {
         return nn::cross_entropy(x[0], Tensor::from<std::int64_t>({1, 0}), nn::Reduction::none);
       }},
      {"bce",
       [](In x) {
         const Tensor y = sigmoid(x[1]);
         return relu(x[0]) - x[0] * y + log1p(exp(-abs(x[0])));
       }},
      {"recurrence",
       [](In x) {
         Tensor h = x[0];
         for (int i = 0; i < 3; ++i) h = tanh(matmul(h, x[1]));
         return h;
       }},
  };
  return table;
}

constexpr double kTolerance = 1e-10;

/// One case of the fixture.
struct Case {
  Case(const io::TensorFile& from, const std::string& of) : file(from), name(of) {
    inputs = list("in"), directions = list("v");
  }
  Tensor tensor(const std::string& what) const { return file.tensor(name + "/" + what); }
  Tensors list(const std::string& what) const {
    Tensors all;
    for (int k = 0; file.contains(name + "/" + what + std::to_string(k)); ++k)
      all.push_back(tensor(what + std::to_string(k)));
    return all;
  }
  void check(const Tensors& got, const std::string& what) const {
    const Tensors wanted = list(what);
    BOOST_TEST(got.size() == wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k)
      BOOST_TEST(within(got[k], wanted[k], kTolerance), name << " " << what << k);
  }

  const io::TensorFile& file;
  std::string name;
  Tensors inputs, directions;
};

/// Returns a function as it is, in a checkpoint, compiled, and as a custom function with the gradient of its
/// operations.
std::vector<Function> forms(const Function& f, const std::string& name) {
  const auto many = [f](In x) { return Tensors{f(x)}; };
  const CustomFunction custom =
      custom_function(name, many, [many](In x, In, In g) { return vjp(many, x, g).gradients; });
  return {f, [many](In x) { return checkpoint(many, x)[0]; },
          [f](In x) { return compile([f](const Tensors& in) { return f(in); })(x); },
          [custom](In x) { return custom(x)[0]; }};
}

void check_first_order(const Case& c, const Function& f) {
  const auto many = [&](In x) { return Tensors{f(x)}; };
  const JvpResult j = jvp(many, c.inputs, c.directions);
  BOOST_TEST(within(j.values[0], c.tensor("out"), kTolerance), c.name);
  BOOST_TEST(within(j.tangents[0], c.tensor("jvp"), kTolerance), c.name << " jvp");
  c.check(vjp(many, c.inputs, {c.tensor("u")}).gradients, "vjp");
  for (const JacobianBy by : {JacobianBy::rows, JacobianBy::columns})
    c.check(jacobian(many, c.inputs, {.by = by})[0], "j");
}

void check_second_order(const Case& c, const Function& f) {
  const auto loss = [&](In x) {
    const Tensor y = f(x);
    return sum(c.tensor("w") * y * y);
  };
  const auto h = hessian(loss, c.inputs);
  for (std::size_t i = 0; i < h.size(); ++i) c.check(h[i], "h" + std::to_string(i));
  c.check(hvp(loss, c.inputs, c.directions).products, "hvp");
  Tape tape;
  Tensors in;
  for (const Tensor& x : c.inputs) in.push_back(tape.watch(x));
  const Tensors products = hvp(loss, in, c.directions).products;
  Tensor curvature = zeros({}, Dtype::f64);
  for (std::size_t k = 0; k < in.size(); ++k) curvature = curvature + sum(products[k] * c.directions[k]);
  const auto third = [&]() -> Tensors {
    if (curvature.tape_slot() != 0) return tape.grad(curvature, in);
    Tensors none;
    for (const Tensor& x : in) none.push_back(zeros(x.shape(), x.dtype()));
    return none;
  };
  c.check(third(), "t");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(autograd_golden)

BOOST_AUTO_TEST_CASE(as_pytorch) {
  const io::TensorFile file = support::fixture("autograd.safetensors");
  std::set<std::string> names;
  for (const std::string_view key : file.names()) names.insert(std::string(key.substr(0, key.find('/'))));
  BOOST_TEST(names.size() == functions().size());
  for (const auto& [name, f] : functions()) {
    BOOST_TEST(names.contains(name), name);
    const Case c(file, name);
    for (const Function& form : forms(f, name)) {
      check_first_order(c, form);
      check_second_order(c, form);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
