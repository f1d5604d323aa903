/// Comparison with other implementations of StableHLO: the reference interpreter of jaxlib for every operation, for
/// GRUs, causal convolutions and scans, and the compilers XLA and IREE for these programs. Needs a Python with them,
/// named by FERRITE_PYTHON; skipped visibly without it.
#include <boost/test/unit_test.hpp>

#include "exchange/program_folder.h"
#include "ferrite/exchange/stablehlo.h"

namespace {

using exchange_test::ProgramCase;
namespace exchange = ferrite::exchange;

const auto have_jaxlib = support::python_with("jax, jaxlib");
const auto have_iree = support::python_with("iree.compiler, iree.runtime");

void check(const std::string& script, const std::vector<ProgramCase>& cases) {
  exchange_test::ProgramFolder folder(".mlir");
  for (const ProgramCase& c : cases) folder.add(c, exchange::to_stablehlo(c.graph, c.options));
  BOOST_TEST(folder.agrees("exchange/" + script));
}

/// Checks programs with open extents by running a script.
void check(const std::string& script, const std::vector<exchange_test::OpenCase>& cases, exchange::DynamicForms forms) {
  exchange_test::ProgramFolder folder(".mlir");
  for (const exchange_test::OpenCase& c : cases) folder.add(c.run, written(c, forms));
  BOOST_TEST(folder.agrees("exchange/" + script));
}

/// Returns the programs to compile. Scans are compiled as loops only; recurrent layers test the step-by-step form.
std::vector<ProgramCase> compiled_programs() {
  std::vector<ProgramCase> all = exchange_test::recurrent_cases();
  for (ProgramCase& c : exchange_test::layer_cases()) all.push_back(std::move(c));
  for (ProgramCase& c : exchange_test::scan_cases())
    if (c.options.scan == exchange::ScanExport::as_while) all.push_back(std::move(c));
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(interpreters)

BOOST_AUTO_TEST_CASE(the_reference_interpreter_gives_our_numbers, *boost::unit_test::precondition(have_jaxlib)) {
  std::vector<ProgramCase> cases;
  for (const ferrite::Primitive* op : exchange_test::all_operations()) {
    if (!exchange::has_stablehlo(*op)) continue;
    for (ProgramCase& c : exchange_test::operation_cases(*op)) cases.push_back(std::move(c));
  }
  for (ProgramCase& c : exchange_test::option_cases()) cases.push_back(std::move(c));
  for (ProgramCase& c : exchange_test::recurrent_cases()) cases.push_back(std::move(c));
  for (ProgramCase& c : exchange_test::layer_cases()) cases.push_back(std::move(c));
  for (ProgramCase& c : exchange_test::scan_cases()) cases.push_back(std::move(c));
  check("check_stablehlo.py", cases);
}

BOOST_AUTO_TEST_CASE(xla_gives_our_numbers, *boost::unit_test::precondition(have_jaxlib)) {
  check("run_xla.py", compiled_programs());
}

BOOST_AUTO_TEST_CASE(iree_gives_our_numbers, *boost::unit_test::precondition(have_iree)) {
  check("run_iree.py", compiled_programs());
}

/// XLA compiles a program at the extents of its arguments, IREE once for all extents.
BOOST_AUTO_TEST_CASE(xla_gives_our_numbers_at_other_extents, *boost::unit_test::precondition(have_jaxlib)) {
  check("run_xla.py", exchange_test::open_cases(), exchange::DynamicForms::complete);
  check("run_xla.py", exchange_test::open_cases(), exchange::DynamicForms::gathers);
  check("run_xla.py", exchange_test::open_layer_cases(), exchange::DynamicForms::complete);
  check("run_xla.py", exchange_test::open_window_cases(), exchange::DynamicForms::complete);
  check("run_xla.py", exchange_test::open_window_cases(), exchange::DynamicForms::gathers);
}

BOOST_AUTO_TEST_CASE(iree_gives_our_numbers_at_other_extents, *boost::unit_test::precondition(have_iree)) {
  check("run_iree.py", exchange_test::open_cases(), exchange::DynamicForms::gathers);
  std::vector<exchange_test::OpenCase> layers = exchange_test::open_layer_cases();
  std::erase_if(layers, [](const exchange_test::OpenCase& c) { return c.run.name.ends_with(", any time"); });
  check("run_iree.py", layers, exchange::DynamicForms::gathers);
}

BOOST_AUTO_TEST_SUITE_END()
