// Programs written as ONNX and read again: the same numbers, open extents, names, and what is refused.
#include "ferrite/exchange/onnx_export.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "exchange/program_cases.h"
#include "ferrite/exchange/onnx.h"
#include "onnx/layers_with_inputs.h"
#include "support/compare.h"

using namespace ferrite;
using exchange_test::ProgramCase;

namespace {

onnx::Model read_again(const std::string& bytes) {
  return onnx::parse(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

/// What a case's program gives after it was written and read.
Tensors there_and_back(const ProgramCase& c) {
  const onnx::Model model =
      read_again(onnx::to_onnx(c.graph, {.variables_as_inputs = !c.options.inline_variables}));
  return model.run(c.arguments);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_export)

BOOST_AUTO_TEST_CASE(every_operation_comes_back) {
  for (const Primitive* op : exchange_test::all_operations()) {
    if (!onnx::has_onnx(*op)) continue;
    for (const ProgramCase& c : exchange_test::operation_cases(*op)) {
      BOOST_TEST_CONTEXT(c.name) {
        try {
          const Tensors y = there_and_back(c);
          BOOST_TEST_REQUIRE(y.size() == c.results.size());
          for (std::size_t i = 0; i < y.size(); ++i) BOOST_TEST(support::within(y[i], c.results[i], c.tolerance));
        } catch (const Error& e) {
          BOOST_TEST(false, e.what());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(whole_programs_come_back) {
  for (const auto& list : {exchange_test::option_cases(), exchange_test::recurrent_cases(),
                           exchange_test::layer_cases(), exchange_test::scan_cases()})
    for (const ProgramCase& c : list) {
      if (c.options.constants_as_arguments || c.options.scan != exchange::ScanExport::as_while) continue;
      BOOST_TEST_CONTEXT(c.name) {
        const Tensors y = there_and_back(c);
        BOOST_TEST_REQUIRE(y.size() == c.results.size());
        for (std::size_t i = 0; i < y.size(); ++i) BOOST_TEST(support::within(y[i], c.results[i], c.tolerance));
      }
    }
}

/// With the batch left open, at the batch it was written with and at others.
BOOST_AUTO_TEST_CASE(every_layer_comes_back_at_any_batch) {
  for (const auto& [name, layer, x] : onnx_test::layers_with_inputs()) {
    BOOST_TEST_CONTEXT(layer->summary()) {
      const auto f = [&](const Tensors& in) -> Tensors { return {(*layer)(in[0])}; };
      const std::vector<Spec> specs{x.spec()};
      const onnx::Model model = read_again(onnx::to_onnx(f, specs, {.dynamic = {{.name = "batch"}}}));
      BOOST_TEST(model.inputs()[0].shape[0] == "batch");
      for (const std::int64_t batch : {1, 2, 5}) {
        const Tensor in = onnx_test::with_batch(x, batch);
        BOOST_TEST(support::identical(model.run({in})[0], (*layer)(in)));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
