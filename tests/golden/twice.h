#pragma once
/// Cases of a fixture with gradients of first and second order: NAME/in0.., NAME/out, NAME/cot, NAME/g0.., and for
/// directions NAME/v0.. the gradients NAME/h0.. of the sum of <g_k, v_k>.
#include <set>
#include <string>

#include "ferrite/autograd/tape.h"
#include "golden/functions.h"
#include "support/compare.h"
#include "support/fixtures.h"

namespace golden {

inline std::set<std::string> cases_of(const std::string& file_name) {
  std::set<std::string> cases;
  const ferrite::io::TensorFile file = support::fixture(file_name);
  for (const std::string_view name : file.names()) cases.insert(std::string(name.substr(0, name.find('/'))));
  return cases;
}

/// Compares a function with a case, within 1e-10.
inline void check_twice(const std::string& file_name, const std::string& name, const Function& f) {
  using namespace ferrite;
  const io::TensorFile file = support::fixture(file_name);
  constexpr double kMost = 1e-10;
  Tape tape;
  Tensors in, directions;
  for (int k = 0; file.contains(name + "/in" + std::to_string(k)); ++k) {
    in.push_back(tape.watch(file.tensor(name + "/in" + std::to_string(k))));
    directions.push_back(file.tensor(name + "/v" + std::to_string(k)));
  }
  const std::span<const Tensor> variables(in.data(), in.size());
  const Tensor out = f(in);
  BOOST_TEST(support::within(out, file.tensor(name + "/out"), kMost));
  const Tensors g = tape.grad(out, variables, {.create_graph = true}, file.tensor(name + "/cot"));
  Tensor total;
  for (std::size_t k = 0; k < g.size(); ++k) {
    BOOST_TEST(support::within(g[k], file.tensor(name + "/g" + std::to_string(k)), kMost), "gradient " << k);
    const Tensor part = sum(g[k] * directions[k]);
    total = total.defined() ? total + part : part;
  }
  const Tensors h = tape.grad(total, variables);
  for (std::size_t k = 0; k < h.size(); ++k)
    BOOST_TEST(support::within(h[k], file.tensor(name + "/h" + std::to_string(k)), kMost), "double backward " << k);
}

/// Adds a test case for each function, in the suite around the call.
inline bool add_cases(const std::string& file, const Functions& functions) {
  for (const auto& [name, f] : functions)
    boost::unit_test::framework::current_auto_test_suite().add(boost::unit_test::make_test_case(
        [file, name = name, f = f] { check_twice(file, name, f); }, "twice_" + name, __FILE__, __LINE__));
  return true;
}

}  // namespace golden
