// Exported programs in other tools: onnx.checker accepts each with the shapes of all values, ONNX Runtime and tract
// compute our numbers. Needs a Python with them, named by FERRITE_PYTHON; skipped visibly without it.
#include <boost/test/unit_test.hpp>

#include "compile/programs.h"
#include "exchange/program_folder.h"
#include "onnx/example_nets.h"
#include "onnx/exported_cases.h"
#include "support/compare.h"

namespace {

using ferrite::Tensor;
using ferrite::Tensors;
using onnx_test::ProgramCase;
using onnx_test::written;
namespace onnx = ferrite::onnx;

class Folder : public exchange_test::ProgramFolder {
 public:
  Folder() : ProgramFolder(".onnx") {}
  bool agrees(const std::string& runtime) { return ProgramFolder::agrees("onnx/run_onnx.py", runtime); }
};

const auto have_onnxruntime = support::python_with("onnx, onnxruntime");

}  // namespace

BOOST_AUTO_TEST_SUITE(runtimes)

BOOST_AUTO_TEST_CASE(onnxruntime_gives_our_numbers_of_every_operation,
                     *boost::unit_test::precondition(have_onnxruntime)) {
  Folder folder;
  for (const ferrite::Primitive* op : exchange_test::all_operations()) {
    if (!onnx::has_onnx(*op)) continue;
    for (const ProgramCase& c : exchange_test::operation_cases(*op))
      if (!onnx_test::has_integer_bits(c)) folder.add(c, written(c));
  }
  BOOST_TEST(folder.agrees("onnxruntime"));
}

BOOST_AUTO_TEST_CASE(onnxruntime_gives_our_numbers_of_whole_programs,
                     *boost::unit_test::precondition(have_onnxruntime)) {
  Folder folder;
  for (const ProgramCase& c : onnx_test::whole_programs()) folder.add(c, written(c));
  BOOST_TEST(folder.agrees("onnxruntime"));
}

/// Returns how far results move when inputs move by a rounding: programs that compare and divide may be steep.
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

/// Adds layers written with the batch left open and run at another.
void add_layers(Folder& folder) {
  for (const onnx_test::LayerWithInput& layer : onnx_test::layers_with_inputs()) {
    const Tensor in = onnx_test::with_batch(layer.x, 3);
    folder.add({layer.name, {}, {}, {in}, {layer(in)}, 1e-5}, written(layer));
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

BOOST_AUTO_TEST_CASE(onnxruntime_gives_our_numbers_of_the_nets_of_the_examples,
                     *boost::unit_test::precondition(have_onnxruntime)) {
  Folder folder;
  for (const onnx_test::ExampleNet& net : onnx_test::example_nets()) {
    const Tensors in = net.with_batch(3);
    folder.add({net.name, {}, {}, in, net.f(in), 1e-5}, written(net));
  }
  BOOST_TEST(folder.agrees("onnxruntime"));
}

BOOST_AUTO_TEST_CASE(onnxruntime_gives_our_numbers_of_random_programs,
                     *boost::unit_test::precondition(have_onnxruntime)) {
  Folder folder;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {  // always the same seeds, because steepness depends on chance
    const programs::Program program(seed);
    const Tensors in = program.inputs();
    const ferrite::Graph graph = ferrite::trace(program, program.specs());
    const Tensors out = program(in);
    double tolerance = 1e-5;
    while (tolerance < std::min(1.0, 4 * steepness(program, in, out))) tolerance *= 10;
    const ProgramCase c{"seed " + std::to_string(seed), graph, {}, in, out, tolerance};
    folder.add(c, written(c));
  }
  BOOST_TEST(folder.agrees("onnxruntime"));
}

BOOST_AUTO_TEST_SUITE_END()
