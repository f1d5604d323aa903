// Operations, their gradients and second gradients at zeros, ties, equal elements, ends of domains and exponents 0,
// compared with PyTorch 2.13: tests/data/make_corner_fixtures.py writes the cases.
#include <set>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/nn/loss.h"
#include "golden/functions.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;

namespace {

using In = const Tensors&;

/// Returns the function of every case of the fixture.
const golden::Functions& functions() {
  static const golden::Functions table = golden::with_unary({
      {"add", [](In x) { return x[0] + x[1]; }},
      {"sub", [](In x) { return x[0] - x[1]; }},
      {"mul", [](In x) { return x[0] * x[1]; }},
      {"mul_itself", [](In x) { return x[0] * x[0]; }},
      {"div", [](In x) { return x[0] / x[1]; }},
      {"div_by_zero", [](In x) { return x[0] / x[1]; }},
      {"div_itself", [](In x) { return x[0] / x[0]; }},
      {"pow", [](In x) { return pow(x[0], x[1]); }},
      {"pow_of_negative", [](In x) { return pow(x[0], x[1]); }},
      {"pow_half", [](In x) { return pow(x[0], x[1]); }},
      {"pow_of_0_to_the_minus_1", [](In x) { return pow(x[0], x[1]); }},
      {"pow_negative_exponent", [](In x) { return pow(x[0], x[1]); }},
      {"pow_to_the_0", [](In x) { return pow(x[0], 0); }},
      {"pow_to_the_1", [](In x) { return pow(x[0], 1); }},
      {"pow_to_the_2", [](In x) { return pow(x[0], 2); }},
      {"pow_to_the_3", [](In x) { return pow(x[0], 3); }},
      {"pow_to_the_half", [](In x) { return pow(x[0], 0.5); }},
      {"pow_to_the_minus_1", [](In x) { return pow(x[0], -1); }},
      {"pow_of_2", [](In x) { return pow(2, x[0]); }},
      {"pow_of_1", [](In x) { return pow(1, x[0]); }},
      {"pow_of_0", [](In x) { return pow(0, x[0]); }},
      {"pow_itself", [](In x) { return pow(x[0], x[1]); }},
      {"maximum", [](In x) { return maximum(x[0], x[1]); }},
      {"minimum", [](In x) { return minimum(x[0], x[1]); }},
      {"clamp", [](In x) { return clamp(x[0], -1, 1); }},
      {"clamp_to_a_point", [](In x) { return clamp(x[0], 0, 0); }},
      {"where", [](In x) { return where(gt(x[0], 0), x[0] * x[1], x[1]); }},
      {"masked_sqrt",
       [](In x) {
         const Tensor valid = gt(x[0], 0);
         return where(valid, sqrt(where(valid, x[0], 1)), 0);
       }},
      {"sum", [](In x) { return sum(x[0], {1}); }},
      {"mean", [](In x) { return mean(x[0], {1}); }},
      {"prod", [](In x) { return prod(x[0], {1}); }},
      {"prod_all", [](In x) { return prod(x[0]); }},
      {"prod_one_zero", [](In x) { return prod(x[0]); }},
      {"prod_axes", [](In x) { return prod(x[0]); }},
      {"amax", [](In x) { return amax(x[0], {1}); }},
      {"amin", [](In x) { return amin(x[0], {1}); }},
      {"amax_all", [](In x) { return amax(x[0]); }},
      {"logsumexp", [](In x) { return logsumexp(x[0], {1}); }},
      {"var", [](In x) { return var(x[0], {1}); }},
      {"softmax", [](In x) { return softmax(x[0], 1); }},
      {"log_softmax", [](In x) { return log_softmax(x[0], 1); }},
      {"layer_norm", [](In x) { return layer_norm(x[0]); }},
      {"matmul", [](In x) { return matmul(x[0], x[1]); }},
      {"mse_loss", [](In x) { return nn::mse_loss(x[0], x[1]); }},
      {"l1_loss", [](In x) { return nn::l1_loss(x[0], x[1]); }},
      {"bce_with_logits", [](In x) { return nn::bce_with_logits(x[0], x[1]); }},
  });
  return table;
}

/// Returns whether two numbers are equal within 1e-12 of the larger of 1 and the value; infinities and NaN must match.
bool close(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= 1e-12 * std::max(1.0, std::fabs(b));
}

/// Returns the expected value of a case. It is not PyTorch's where that contradicts mathematics or its own conventions:
/// * gradients of gradients of a^b at a = 0 are 0 times infinity there. Here what is 0 by convention has gradient 0;
/// * d/db (b a^(b - 1)) = 1 / a at b = 0, where PyTorch has masked it.
Tensor wanted_of(const io::TensorFile& file, const std::string& name) {
  const Tensor theirs = file.tensor(name);
  if (!name.starts_with("pow/h") && !name.starts_with("pow_of_0/h")) return theirs;
  const Tensor defined = where(eq(theirs, theirs), theirs, 0);
  if (name != "pow/h01") return defined;
  const Tensor a = file.tensor("pow/in0"), b = file.tensor("pow/in1");
  const Tensor exact = file.tensor("pow/cot") * file.tensor("pow/v0") / where(eq(a, 0), 1, a);
  return where(eq(b, 0) && ne(a, 0), exact, defined);
}

void compare(const Tensor& got, const io::TensorFile& file, const std::string& name) {
  const Tensor wanted = wanted_of(file, name);
  BOOST_TEST_REQUIRE(got.shape().str() == wanted.shape().str(), name);
  const std::vector<double> a = support::doubles(got), b = support::doubles(wanted);
  for (std::size_t i = 0; i < a.size(); ++i)
    BOOST_TEST(close(a[i], b[i]), name << "[" << i << "] is " << a[i] << ", PyTorch's " << b[i]);
}

void check(const std::string& name, const golden::Function& f) {
  const io::TensorFile file = support::fixture("corners.safetensors");
  Tape tape;
  Tensors in;
  for (int k = 0; file.contains(name + "/in" + std::to_string(k)); ++k)
    in.push_back(tape.watch(file.tensor(name + "/in" + std::to_string(k))));
  const std::span<const Tensor> wrt(in.data(), in.size());
  const Tensor out = f(in);
  compare(out, file, name + "/out");
  const Tensors g = tape.grad(out, wrt, {.create_graph = true}, file.tensor(name + "/cot"));
  for (std::size_t j = 0; j < in.size(); ++j) {
    const std::string at = std::to_string(j);
    compare(g[j], file, name + "/g" + at);
    const Tensor v = file.tensor(name + "/v" + at);
    const Tensors h = detail::lenient_grad(tape, {g[j], v}, wrt, {.retain = true});  // zeros if g[j] is constant
    for (std::size_t k = 0; k < in.size(); ++k) compare(h[k], file, name + "/h" + at + std::to_string(k));
  }
}

const bool registered = [] {
  for (const auto& [name, f] : functions())
    boost::unit_test::framework::current_auto_test_suite().add(boost::unit_test::make_test_case(
        [name = name, f = f] { check(name, f); }, "corners_of_" + name, __FILE__, __LINE__));
  return true;
}();

}  // namespace

BOOST_AUTO_TEST_CASE(every_case_of_the_corners_has_its_counterpart) {
  BOOST_TEST(registered);
  const io::TensorFile file = support::fixture("corners.safetensors");
  std::set<std::string> cases;
  for (const std::string_view name : file.names()) cases.insert(std::string(name.substr(0, name.find('/'))));
  for (const std::string& name : cases) BOOST_TEST(functions().contains(name), name);
  BOOST_TEST(cases.size() == functions().size());
}
