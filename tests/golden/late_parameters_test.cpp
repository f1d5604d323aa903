// Parameters that have no gradient in some steps, compared with PyTorch: tests/data/make_late_parameter_fixtures.py
// writes the runs. Compiled steps have the bits of eager ones.
#include <set>

#include "ferrite/compile/compile.h"
#include "golden/optimizer_runs.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

const std::vector<std::string> kNames = {"w", "b", "k"};

/// Returns the kinds, such as "frozen", with the runs of each.
std::set<std::pair<std::string, std::string>> runs(const io::TensorFile& file) {
  std::set<std::pair<std::string, std::string>> all;
  for (const std::string_view name : file.names()) {
    if (!name.starts_with("run/")) continue;
    const std::string text(name.substr(4, name.rfind('/') - 4));
    all.insert({text.substr(0, text.find('/')), text.substr(text.find('/') + 1)});
  }
  return all;
}

struct Run {
  io::TensorFile file = support::fixture("late_parameters.safetensors");
  std::string pattern;
  std::vector<Parameter> parameters;
  std::unique_ptr<nn::Optimizer> optimizer;
  std::vector<std::vector<std::int64_t>> has;

  Run(const std::string& of, const std::string& name) : pattern(of) {
    for (const std::string& p : kNames) {
      parameters.emplace_back(p, file.tensor("init/" + p));
      has.push_back(file.tensor("has/" + pattern + "/" + p).to_vector<std::int64_t>());
    }
    optimizer = optimizer_runs::make(name, parameters);
  }
  std::int64_t steps() const { return static_cast<std::int64_t>(has[0].size()); }
  bool has_gradient(std::size_t i, std::int64_t t) const { return has[i][static_cast<std::size_t>(t)] != 0; }
  Tensor given(std::size_t i, std::int64_t t) const { return select(file.tensor("g/" + kNames[i]), 0, t % 20); }
  void step(std::int64_t t) const {
    Tensors g;
    for (std::size_t i = 0; i < 3; ++i)
      g.push_back(has_gradient(i, t) ? given(i, t) + parameters[i].value() / 10 : Tensor());
    optimizer->step(g);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(late_parameters)

BOOST_AUTO_TEST_CASE(have_pytorchs_values_in_every_optimiser) {
  const io::TensorFile file = support::fixture("late_parameters.safetensors");
  BOOST_TEST(runs(file).size() == 54U);
  for (const auto& [pattern, name] : runs(file)) {
    const Run run(pattern, name);
    for (std::int64_t t = 0; t < run.steps(); ++t) run.step(t);
    for (const Parameter& p : run.parameters)
      BOOST_TEST(within(p.peek(), file.tensor("run/" + pattern + "/" + name + "/" + p.name()), 1e-10),
                 pattern << ", " << name << ": " << p.name());
  }
}

/// Each set of parameters with a gradient has its own program; the programs share the counts.
BOOST_AUTO_TEST_CASE(have_the_bits_of_eager_steps_in_compiled_ones) {
  for (const auto& [pattern, name] : runs(support::fixture("late_parameters.safetensors"))) {
    if (pattern == "idle") continue;
    const Run eager(pattern, name), compiled(pattern, name);
    std::map<std::vector<bool>, std::function<void(const Tensor&, const Tensor&, const Tensor&)>> programs;
    for (std::int64_t t = 0; t < eager.steps(); ++t) {
      eager.step(t);
      std::vector<bool> has;
      for (std::size_t i = 0; i < 3; ++i) has.push_back(compiled.has_gradient(i, t));
      auto& program = programs[has];
      if (!program) {
        const auto made = compile([&compiled, has](const Tensor& w, const Tensor& b, const Tensor& k) {
          Tensors g;
          const Tensor* const given[] = {&w, &b, &k};
          for (std::size_t i = 0; i < 3; ++i)
            g.push_back(has[i] ? *given[i] + compiled.parameters[i].value() / 10 : Tensor());
          compiled.optimizer->step(g);
          return w;
        });
        program = [made](const Tensor& w, const Tensor& b, const Tensor& k) { (void)made(w, b, k); };
      }
      program(compiled.given(0, t), compiled.given(1, t), compiled.given(2, t));
    }
    for (std::size_t i = 0; i < 3; ++i)
      BOOST_TEST(identical(eager.parameters[i].peek(), compiled.parameters[i].peek()), pattern << ", " << name);
    for (std::size_t i = 0; i < eager.optimizer->states().size(); ++i)
      BOOST_TEST(
          identical(eager.optimizer->states()[i].variable.peek(), compiled.optimizer->states()[i].variable.peek()),
          pattern << ", " << name << ": " << eager.optimizer->states()[i].name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
