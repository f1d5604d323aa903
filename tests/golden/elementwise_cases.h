#pragma once
/// Compares functions with PyTorch's values and first and second derivatives. tests/data/make_elementwise_fixtures.py
/// writes the cases and describes their contents.
#include <boost/test/unit_test.hpp>
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops.h"
#include "golden/functions.h"
#include "support/compare.h"
#include "support/fixtures.h"

namespace golden {

/// Returns ((k step + 3) mod period - period / 2) / 8 for every element k.
inline ferrite::Tensor weights(const ferrite::Shape& shape, std::int64_t step, std::int64_t period) {
  return ferrite::Tensor::build<double>(shape, [&](std::span<double> out) {
    for (std::size_t k = 0; k < out.size(); ++k)
      out[k] = static_cast<double>((static_cast<std::int64_t>(k) * step + 3) % period - period / 2) / 8;
  });
}

/// Returns several results as one, flattened and joined.
inline ferrite::Tensor joined(const ferrite::Tensors& parts) {
  ferrite::Tensors flat;
  for (const ferrite::Tensor& x : parts) flat.push_back(ferrite::reshape(x, {-1}));
  return ferrite::concat(std::span<const ferrite::Tensor>(flat.data(), flat.size()), 0);
}

/// Compares a function with a case: its value, its gradient, and the gradient of that.
inline void check_case(const ferrite::io::TensorFile& file, const std::string& name, const Function& f,
                       double tolerance = 1e-10) {
  ferrite::Tape tape;
  ferrite::Tensors in, variables;
  for (int k = 0; file.contains(name + "/in" + std::to_string(k)); ++k) {
    const ferrite::Tensor x = file.tensor(name + "/in" + std::to_string(k));
    const bool real = ferrite::is_float(x.dtype());
    in.push_back(real ? tape.watch(x) : x);
    if (real) variables.push_back(in[in.size() - 1]);
  }
  const ferrite::Tensor out = f(in);
  BOOST_TEST(support::within(out, file.tensor(name + "/out"), tolerance), name << ": its value");
  if (!file.contains(name + "/g")) return;
  const bool twice = file.contains(name + "/h");
  const ferrite::Tensor cotangent = tape.watch(weights(out.shape(), 7, 11));
  const auto list = [](const ferrite::Tensors& t) { return std::span<const ferrite::Tensor>(t.data(), t.size()); };
  const ferrite::Tensors g = tape.grad(out, list(variables), {.create_graph = twice}, cotangent);
  BOOST_TEST(support::within(joined(g), file.tensor(name + "/g"), tolerance), name << ": its gradient");
  if (!twice) return;
  ferrite::Tensor total;  // on the tape, whatever the gradients depend on
  for (const ferrite::Tensor& x : variables) {
    const ferrite::Tensor none = 0 * ferrite::sum(x);
    total = total.defined() ? total + none : none;
  }
  for (std::size_t k = 0; k < g.size(); ++k) {
    const ferrite::Tensor part = ferrite::sum(g[k] * weights(g[k].shape(), 5, 9 + static_cast<std::int64_t>(k)));
    total = total + part;
  }
  variables.push_back(cotangent);
  const ferrite::Tensors h = tape.grad(total, list(variables));
  BOOST_TEST(support::within(joined(h), file.tensor(name + "/h"), tolerance), name << ": its second derivative");
}

/// Registers one test case for each function of a family, and one that checks that none is missing.
inline bool register_cases(const std::string& fixture, const std::string& family, const Functions& table) {
  namespace unit = boost::unit_test;
  unit::test_suite& suite = unit::framework::current_auto_test_suite();
  for (const auto& [name, f] : table)
    suite.add(
        unit::make_test_case([=, name = name, f = f] { check_case(support::fixture(fixture), family + "." + name, f); },
                             family + "_" + name, __FILE__, __LINE__));
  suite.add(unit::make_test_case(
      [=] {
        const ferrite::io::TensorFile file = support::fixture(fixture);
        std::set<std::string> cases;
        for (const std::string_view name : file.names())
          if (name.starts_with(family + ".")) cases.insert(std::string(name.substr(0, name.find('/'))));
        for (const std::string& name : cases) BOOST_TEST(table.contains(name.substr(family.size() + 1)), name);
        BOOST_TEST(cases.size() == table.size());
      },
      family + "_every_case_has_its_counterpart", __FILE__, __LINE__));
  return true;
}

}  // namespace golden
