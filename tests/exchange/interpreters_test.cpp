/// Other implementations of StableHLO give our numbers: the reference interpreter of jaxlib for every operation, for
/// GRUs, causal convolutions and scans, the compilers XLA and IREE for these programs. Needs a Python that has them,
/// named by FERRITE_PYTHON; skipped visibly without.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>

#include "exchange/program_cases.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/io/numpy.h"
#include "io/temporary_folder.h"

namespace {

using exchange_test::ProgramCase;
using ferrite::Tensor;
namespace exchange = ferrite::exchange;
namespace io = ferrite::io;

const std::string kScripts = std::string(FERRITE_SOURCE_DIR) + "/tests/exchange/";

int run_python(const std::string& arguments) {
  return std::system((std::string(std::getenv("FERRITE_PYTHON")) + " " + arguments).c_str());
}

boost::test_tools::assertion_result have(const std::string& modules) {
  const bool there = std::getenv("FERRITE_PYTHON") != nullptr && run_python("-c 'import " + modules + "'") == 0;
  boost::test_tools::assertion_result result(there);
  result.message() << "FERRITE_PYTHON names no Python that has " << modules;
  return result;
}
boost::test_tools::assertion_result have_jaxlib(boost::unit_test::test_unit_id) { return have("jax, jaxlib"); }
boost::test_tools::assertion_result have_iree(boost::unit_test::test_unit_id) {
  return have("iree.compiler, iree.runtime");
}

/// Writes 0.mlir, 0.npz, ... and a list of them: number, tolerance, name.
void write(const std::filesystem::path& folder, const std::vector<ProgramCase>& cases) {
  std::ofstream list(folder / "cases.txt");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const ProgramCase& c = cases[i];
    std::ofstream(folder / (std::to_string(i) + ".mlir")) << exchange::to_stablehlo(c.graph, c.options);
    std::vector<io::NamedTensor> tensors;
    for (const Tensor& x : c.arguments) tensors.push_back({"argument" + std::to_string(tensors.size()), x});
    const std::size_t first = tensors.size();
    for (const Tensor& y : c.results) tensors.push_back({"result" + std::to_string(tensors.size() - first), y});
    io::write_npz(folder / (std::to_string(i) + ".npz"), tensors);
    list << i << '\t' << c.tolerance << '\t' << c.name << '\n';
  }
}

void check(const std::string& script, const std::vector<ProgramCase>& cases) {
  const io_test::TemporaryFolder folder;
  write(folder.path(), cases);
  BOOST_TEST(run_python("'" + kScripts + script + "' '" + folder.path().string() + "'") == 0);
}

/// Scans are compiled as loops only: what they are step by step, the recurrent layers show.
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

BOOST_AUTO_TEST_SUITE_END()
