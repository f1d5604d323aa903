// Exported programs in other hands: onnx.checker accepts each with the shapes of all values, ONNX Runtime and tract give
// our numbers. Needs a Python that has them, named by FERRITE_PYTHON; skipped visibly without.
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "exchange/program_cases.h"
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/io/numpy.h"
#include "io/temporary_folder.h"
#include "random/programs.h"
#include "random/seeds.h"
#include "support/python.h"

namespace {

using exchange_test::ProgramCase;
using ferrite::Tensor;
using ferrite::Tensors;
namespace io = ferrite::io;
namespace onnx = ferrite::onnx;

/// Writes 0.onnx, 0.npz, ... and a list of them: number, tolerance, name.
class Folder {
 public:
  void add(const ProgramCase& c) {
    const std::string number = std::to_string(count_++);
    onnx::write_onnx(folder_ / (number + ".onnx"), c.graph, {.variables_as_inputs = !c.options.inline_variables});
    std::vector<io::NamedTensor> tensors;
    for (const Tensor& x : c.arguments) tensors.push_back({"argument" + std::to_string(tensors.size()), x});
    const std::size_t first = tensors.size();
    for (const Tensor& y : c.results) tensors.push_back({"result" + std::to_string(tensors.size() - first), y});
    io::write_npz(folder_ / (number + ".npz"), tensors);
    list_ << number << '\t' << c.tolerance << '\t' << c.name << '\n';
  }

  /// Whether the runtime gives all results.
  bool agrees(const std::string& runtime) {
    list_.flush();
    const std::string script = std::string(FERRITE_SOURCE_DIR) + "/tests/onnx/run_onnx.py";
    return std::system((support::python() + " '" + script + "' '" + folder_.path().string() + "' " + runtime).c_str()) ==
           0;
  }

 private:
  io_test::TemporaryFolder folder_;
  std::ofstream list_{folder_ / "cases.txt"};
  int count_ = 0;
};

const auto have_onnxruntime = support::python_with("onnx, onnxruntime");

}  // namespace

BOOST_AUTO_TEST_SUITE(runtimes)

BOOST_AUTO_TEST_CASE(onnxruntime_gives_our_numbers_of_every_operation,
                     *boost::unit_test::precondition(have_onnxruntime)) {
  Folder folder;
  for (const ferrite::Primitive* op : exchange_test::all_operations()) {
    if (!onnx::has_onnx(*op)) continue;
    for (const ProgramCase& c : exchange_test::operation_cases(*op)) {
      try {
        folder.add(c);
      } catch (const onnx::ExportError& e) {
        std::cout << "REFUSED " << c.name << e.what() << std::endl;
      }
    }
  }
  BOOST_TEST(folder.agrees("onnxruntime"));
}

BOOST_AUTO_TEST_CASE(onnxruntime_gives_our_numbers_of_whole_programs,
                     *boost::unit_test::precondition(have_onnxruntime)) {
  Folder folder;
  for (const auto& list : {exchange_test::option_cases(), exchange_test::recurrent_cases(),
                           exchange_test::layer_cases(), exchange_test::scan_cases()})
    for (const ProgramCase& c : list)
      if (!c.options.constants_as_arguments && c.options.scan == ferrite::exchange::ScanExport::as_while)
        folder.add(c);
  BOOST_TEST(folder.agrees("onnxruntime"));
}

BOOST_AUTO_TEST_SUITE_END()
