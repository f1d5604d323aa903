// Twenty steps of every optimiser, with crossed options, compared with PyTorch: tests/data/make_optimizer_fixtures.py
// writes them.
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

std::set<std::string> runs(const io::TensorFile& file, const std::string& folder) {
  std::set<std::string> names;
  for (const std::string_view name : file.names())
    if (name.starts_with(folder + "/"))
      names.insert(std::string(name.substr(folder.size() + 1, name.rfind('/') - folder.size() - 1)));
  return names;
}

std::vector<Parameter> first_values(const io::TensorFile& file, Dtype dtype) {
  std::vector<Parameter> p;
  for (const std::string& name : kNames) p.emplace_back(name, cast(file.tensor("init/" + name), dtype));
  return p;
}

/// Returns the gradients of a step, as the script makes them.
Tensors gradients(const io::TensorFile& file, const std::vector<Parameter>& p, std::int64_t step) {
  Tensors g;
  for (const Parameter& q : p)
    g.push_back(cast(select(file.tensor("g/" + q.name()), 0, step), q.dtype()) + q.value() / 10);
  return g;
}

void check(const std::string& folder, Dtype dtype, double tolerance) {
  const io::TensorFile file = support::fixture("optimizers.safetensors");
  const std::set<std::string> names = runs(file, folder);
  BOOST_TEST(names.size() >= (dtype == Dtype::f64 ? 60U : 20U));
  for (const std::string& name : names) {
    const std::vector<Parameter> p = first_values(file, dtype);
    const auto optimizer = optimizer_runs::make(name, p);
    for (std::int64_t step = 0; step < 20; ++step) optimizer->step(gradients(file, p, step));
    for (const Parameter& q : p)
      BOOST_TEST(within(q.peek(), file.tensor(folder + "/" + name + "/" + q.name()), tolerance),
                 name << ": " << q.name());
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(optimizers)

BOOST_AUTO_TEST_CASE(twenty_steps_are_pytorchs) { check("run", Dtype::f64, 1e-10); }

/// Twenty steps in f32 round some hundred times; the differences are those between f32 and f64 in PyTorch.
BOOST_AUTO_TEST_CASE(twenty_steps_in_f32_are_pytorchs) { check("run32", Dtype::f32, 2e-6); }

/// A compiled step consists of the operations of an update; an eager one is a sweep in place.
BOOST_AUTO_TEST_CASE(compiled_steps_have_the_bits_of_eager_ones) {
  const io::TensorFile file = support::fixture("optimizers.safetensors");
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::string& name : runs(file, "run")) {
      const std::vector<Parameter> p = first_values(file, dtype), q = first_values(file, dtype);
      const auto eager = optimizer_runs::make(name, p), planned = optimizer_runs::make(name, q);
      const auto step = compile([&](const Tensor& w, const Tensor& b, const Tensor& k) {
        (void)planned->step({w, b, k});
        return w;
      });
      for (std::int64_t t = 0; t < 6; ++t) {
        const Tensors g = gradients(file, p, t);
        (void)eager->step(g);
        (void)step(g[0], g[1], g[2]);
      }
      for (std::size_t i = 0; i < p.size(); ++i)
        BOOST_TEST(identical(p[i].peek(), q[i].peek()), name << ": " << p[i].name());
      for (std::size_t i = 0; i < eager->states().size(); ++i)
        BOOST_TEST(identical(eager->states()[i].variable.peek(), planned->states()[i].variable.peek()),
                   name << ": " << eager->states()[i].name);
    }
}

/// Over whole packets and a tail, and over shares of threads, a sweep has the bits of the operations, which run when
/// the states have another owner.
BOOST_AUTO_TEST_CASE(sweeps_have_the_bits_of_operations_at_every_length) {
  const std::set<std::string> names = runs(support::fixture("optimizers.safetensors"), "run");
  for (const std::int64_t n : {1, 33, 1037, 70001})
    for (const std::string& name : names) {
      if (n > 2000 && name.find("weight_decay") == std::string::npos) continue;  // shares: half of the runs
      const Dtype dtype = n % 2 == 1 && n != 33 ? Dtype::f32 : Dtype::f64;
      const std::vector<Parameter> p{{"p", uniform({n}, {1, 0, 0}, -1, 1, dtype)}}, q{{"p", p[0].peek() + 0}};
      const auto swept = optimizer_runs::make(name, p), composed = optimizer_runs::make(name, q);
      for (std::uint64_t t = 0; t < 3; ++t) {
        const Tensor g = uniform({n}, {2, t, 0}, -1, 1, dtype);
        (void)swept->step({g});
        std::vector<Tensor> held{q[0].peek()};
        for (const auto& s : composed->states()) held.push_back(s.variable.peek());
        (void)composed->step({g});
      }
      BOOST_TEST(identical(p[0].peek(), q[0].peek()), name << ", " << n);
      for (std::size_t i = 0; i < swept->states().size(); ++i)
        BOOST_TEST(identical(swept->states()[i].variable.peek(), composed->states()[i].variable.peek()),
                   name << ", " << n << ": " << swept->states()[i].name);
    }
}

BOOST_AUTO_TEST_SUITE_END()
