/// Applies functions of elements to numbers from a file, for scripts/accuracy.
///
///     evaluate list                            the names, one a line
///     evaluate NAME f32|f64 OPERANDS RESULTS   raw numbers; of a function of two all first ones, then all others
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace {

using ferrite::Tensor;
using Operands = std::vector<Tensor>;

struct Function {
  std::size_t operands;
  std::function<Tensor(const Operands&)> f;
};
Function one(Tensor (*f)(const Tensor&)) {
  return {1, [f](const Operands& x) { return f(x[0]); }};
}
template <class F>
Function one(F f) {
  return {1, [f](const Operands& x) { return f(x[0]); }};
}
template <class F>
Function two(F f) {
  return {2, [f](const Operands& x) { return f(x[0], x[1]); }};
}

const std::map<std::string, Function>& functions() {
  using T = const Tensor&;
  static const std::map<std::string, Function> all = {
      {"acos", one(ferrite::acos)},
      {"acosh", one(ferrite::acosh)},
      {"asin", one(ferrite::asin)},
      {"asinh", one(ferrite::asinh)},
      {"atan", one(ferrite::atan)},
      {"atan2", two([](T a, T b) { return ferrite::atan2(a, b); })},
      {"atanh", one(ferrite::atanh)},
      {"celu", one([](T x) { return ferrite::celu(x, 0.5); })},
      {"cos", one(ferrite::cos)},
      {"cosh", one(ferrite::cosh)},
      {"digamma", one(ferrite::digamma)},
      {"elu", one([](T x) { return ferrite::elu(x); })},
      {"erf", one(ferrite::erf)},
      {"erfc", one(ferrite::erfc)},
      {"erfinv", one(ferrite::erfinv)},
      {"exp", one(ferrite::exp)},
      {"exp10", one(ferrite::exp10)},
      {"exp2", one(ferrite::exp2)},
      {"expm1", one(ferrite::expm1)},
      {"fmod", two([](T a, T b) { return ferrite::fmod(a, b); })},
      {"gelu", one([](T x) { return ferrite::gelu(x); })},
      {"gelu_tanh", one([](T x) { return ferrite::gelu(x, ferrite::GeluForm::tanh); })},
      {"hypot", two([](T a, T b) { return ferrite::hypot(a, b); })},
      {"lgamma", one(ferrite::lgamma)},
      {"log", one(ferrite::log)},
      {"log10", one(ferrite::log10)},
      {"log1p", one(ferrite::log1p)},
      {"log2", one(ferrite::log2)},
      {"log_sigmoid", one(ferrite::log_sigmoid)},
      {"logaddexp", two([](T a, T b) { return ferrite::logaddexp(a, b); })},
      {"logaddexp2", two([](T a, T b) { return ferrite::logaddexp2(a, b); })},
      {"logit", one([](T x) { return ferrite::logit(x); })},
      {"mish", one(ferrite::mish)},
      {"polygamma(1)", one([](T x) { return ferrite::polygamma(1, x); })},
      {"polygamma(2)", one([](T x) { return ferrite::polygamma(2, x); })},
      {"polygamma(5)", one([](T x) { return ferrite::polygamma(5, x); })},
      {"polygamma(20)", one([](T x) { return ferrite::polygamma(20, x); })},
      {"pow", two([](T a, T b) { return ferrite::pow(a, b); })},
      {"reciprocal", one(ferrite::reciprocal)},
      {"remainder", two([](T a, T b) { return ferrite::remainder(a, b); })},
      {"rsqrt", one(ferrite::rsqrt)},
      {"selu", one(ferrite::selu)},
      {"sigmoid", one(ferrite::sigmoid)},
      {"silu", one(ferrite::silu)},
      {"sin", one(ferrite::sin)},
      {"sinc", one(ferrite::sinc)},
      {"sinh", one(ferrite::sinh)},
      {"softplus", one(ferrite::softplus)},
      {"softsign", one(ferrite::softsign)},
      {"sqrt", one(ferrite::sqrt)},
      {"tan", one(ferrite::tan)},
      {"tanh", one(ferrite::tanh)},
      {"tanhshrink", one(ferrite::tanhshrink)},
      {"xlogy", two([](T a, T b) { return ferrite::xlogy(a, b); })},
  };
  return all;
}

template <class T>
void run(const Function& function, const std::string& from, const std::string& to) {
  std::ifstream in(from, std::ios::binary | std::ios::ate);
  std::vector<T> values(static_cast<std::size_t>(in.tellg()) / sizeof(T));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  const std::size_t n = values.size() / function.operands;
  std::ofstream out(to, std::ios::binary);
  constexpr std::size_t kMost = std::size_t{1} << 16;
  for (std::size_t at = 0; at < n; at += kMost) {
    const std::size_t count = std::min(kMost, n - at);
    Operands operands;
    for (std::size_t k = 0; k < function.operands; ++k) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(k * n + at);
      operands.push_back(Tensor::from(std::vector<T>(first, first + static_cast<std::ptrdiff_t>(count)),
                                      {static_cast<std::int64_t>(count)}));
    }
    const std::vector<T> y = function.f(operands).template to_vector<T>();
    out.write(reinterpret_cast<const char*>(y.data()), static_cast<std::streamsize>(count * sizeof(T)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "list") {
    for (const auto& [name, function] : functions()) std::cout << name << '\n';
    return 0;
  }
  if (words.size() == 1 && words[0] == "levels") {
    std::vector<std::string_view> levels = ferrite::instruction_sets();
    std::reverse(levels.begin(), levels.end());
    for (const std::string_view level : levels) std::cout << level << '\n';
    return 0;
  }
  const auto found = words.empty() ? functions().end() : functions().find(words[0]);
  if (words.size() != 4 || found == functions().end()) {
    std::cerr << "accuracy_values list | levels | NAME f32|f64 OPERANDS RESULTS\n";
    return 2;
  }
  words[1] == "f32" ? run<float>(found->second, words[2], words[3]) : run<double>(found->second, words[2], words[3]);
  return 0;
}
