// Exported programs in other hands: onnx.checker accepts each with the shapes of all values, ONNX Runtime and tract
// give our numbers. Needs a Python that has them, named by FERRITE_PYTHON; skipped visibly without.
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "compile/programs.h"
#include "exchange/program_cases.h"
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/io/numpy.h"
#include "io/temporary_folder.h"
#include "onnx/layers_with_inputs.h"
#include "support/compare.h"
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
    add(c, onnx::to_onnx(c.graph, {.variables_as_inputs = !c.options.inline_variables}));
  }
  /// A case's arguments and results beside a model that was written in another way.
  void add(const ProgramCase& c, const std::string& model) {
    const std::string number = std::to_string(count_++);
    std::ofstream(folder_ / (number + ".onnx"), std::ios::binary) << model;
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
    return std::system(
               (support::python() + " '" + script + "' '" + folder_.path().string() + "' " + runtime).c_str()) == 0;
  }

 private:
  io_test::TemporaryFolder folder_;
  std::ofstream list_{folder_ / "cases.txt"};
  int count_ = 0;
};

/// Bits of integers come with opset 18.
bool refused_by_type(const ProgramCase& c) {
  return c.name.starts_with("bitwise_") && c.graph.values[c.graph.inputs[0]].dtype != ferrite::Dtype::boolean;
}

const auto have_onnxruntime = support::python_with("onnx, onnxruntime");

}  // namespace

BOOST_AUTO_TEST_SUITE(runtimes)

BOOST_AUTO_TEST_CASE(onnxruntime_gives_our_numbers_of_every_operation,
                     *boost::unit_test::precondition(have_onnxruntime)) {
  Folder folder;
  for (const ferrite::Primitive* op : exchange_test::all_operations()) {
    if (!onnx::has_onnx(*op)) continue;
    for (const ProgramCase& c : exchange_test::operation_cases(*op)) {
      if (!refused_by_type(c)) folder.add(c);
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
      if (!c.options.constants_as_arguments && c.options.scan == ferrite::exchange::ScanExport::as_while) folder.add(c);
  BOOST_TEST(folder.agrees("onnxruntime"));
}

/// By how much results move when inputs do by a rounding: programs that compare and divide may be steep.
double steepness(const programs::Program& program, const Tensors& in, const Tensors& out) {
  double most = 0;
  for (const double step : {0x1p-23, -0x1p-23, 0x1p-21, -0x1p-21}) {
    Tensors moved;
    for (const Tensor& x : in) moved.push_back(ferrite::is_float(x.dtype()) ? x * (1 + step) : x);
    const Tensors y = program(moved);
    for (std::size_t i = 0; i < y.size(); ++i)
      if (ferrite::is_float(y[i].dtype())) most = std::max(most, support::distance(y[i], out[i]));
  }
  return most;
}

/// Written with the batch left open, run at another.
void add_layers(Folder& folder) {
  for (const onnx_test::LayerWithInput& layer : onnx_test::layers_with_inputs()) {
    const auto f = [&](const Tensors& in) -> Tensors { return {layer(in[0])}; };
    const std::vector<ferrite::Spec> specs{layer.x.spec()};
    const Tensor in = onnx_test::with_batch(layer.x, 3);
    folder.add({layer.name, {}, {}, {in}, f({in}), 1e-5}, onnx::to_onnx(f, specs, {.dynamic = {{.name = "batch"}}}));
  }
}

BOOST_AUTO_TEST_CASE(onnxruntime_gives_our_numbers_of_every_layer, *boost::unit_test::precondition(have_onnxruntime)) {
  Folder folder;
  add_layers(folder);
  BOOST_TEST(folder.agrees("onnxruntime"));
}

BOOST_AUTO_TEST_CASE(tract_gives_our_numbers_of_every_layer,
                     *boost::unit_test::precondition(support::python_with("onnx, tract"))) {
  Folder folder;
  add_layers(folder);
  BOOST_TEST(folder.agrees("tract"));
}

BOOST_AUTO_TEST_CASE(onnxruntime_gives_our_numbers_of_random_programs,
                     *boost::unit_test::precondition(have_onnxruntime)) {
  Folder folder;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {  // the same ones always: what is steep here is so by chance
    const programs::Program program(seed);
    const Tensors in = program.inputs();
    const ferrite::Graph graph = ferrite::trace(program, program.specs());
    const Tensors out = program(in);
    const double rounding = 64 * steepness(program, in, out);
    folder.add({"seed " + std::to_string(seed),
                graph,
                {},
                in,
                out,
                rounding < 1e-5   ? 1e-5
                : rounding < 1e-3 ? 1e-3
                                  : 1});
  }
  BOOST_TEST(folder.agrees("onnxruntime"));
}

BOOST_AUTO_TEST_SUITE_END()
