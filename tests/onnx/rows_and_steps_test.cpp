// Exported nets on batches without rows and sequences of one step: the file has the results of the net.
#include <boost/test/unit_test.hpp>

#include "dsl/layer_catalogue.h"
#include "ferrite/exchange/onnx.h"
#include "onnx/exporting.h"
#include "onnx/wire.h"
#include "support/compare.h"

using namespace ferrite;
using exporting::Function;
using support::within;

BOOST_AUTO_TEST_SUITE(onnx_rows_and_steps)

BOOST_AUTO_TEST_CASE(every_exported_layer_takes_a_batch_without_rows_and_a_single_step) {
  std::size_t tried = 0;
  for (const auto& [word, nets] : layer_catalogue::catalogue(Dtype::f32)) BOOST_TEST_CONTEXT(word) {
      const dsl::Network net = nets[0]().build(2);
      net.eval();
      const Tensor x = layer_catalogue::input(net, 4, Dtype::f32), y = net(x);
      const Function f = [&](const Tensors& in) -> Tensors { return {net(in[0])}; };
      std::string file;
      try {
        file = exporting::exported(f, {x.spec()}, {.dynamic = {{.name = "batch"}}});
      } catch (const onnx::ExportError&) {  // its rows cannot stay open
        continue;
      }
      ++tried;
      const onnx::Model model = wire::parsed(file);
      BOOST_TEST(within(model.run({x})[0], y, 1e-5));
      Shape none = y.shape();
      none[0] = 0;
      BOOST_CHECK_NO_THROW(BOOST_TEST((model.run({slice(x, 0, 0, 0)})[0].shape() == none)));
      const Tensor step = slice(x, 1, 0, 1);
      Tensor of_step;
      try {
        of_step = net(step);
      } catch (const ShapeError&) {  // a window of several steps
        continue;
      }
      const onnx::Model single = wire::parsed(exporting::exported(f, {step.spec()}));
      BOOST_TEST(within(single.run({step})[0], of_step, 1e-5), "one step");
    }
  BOOST_TEST(tried > 20U);
}

BOOST_AUTO_TEST_SUITE_END()
