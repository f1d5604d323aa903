// The nets of the examples as ONNX: read again they have the same bits, at any batch. export_runtimes_test.cpp runs
// them in other runtimes.
#include <boost/test/unit_test.hpp>

#include "onnx/example_nets.h"
#include "support/compare.h"
#include "wire.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(onnx_examples)

BOOST_AUTO_TEST_CASE(every_net_comes_back_at_any_batch) {
  const std::vector<onnx_test::ExampleNet> nets = onnx_test::example_nets();
  BOOST_TEST(nets.size() >= 32U);
  for (const onnx_test::ExampleNet& net : nets) {
    BOOST_TEST_CONTEXT(net.name) {
      const onnx::Model model = wire::parsed(written(net));
      bool same = true;
      for (const std::int64_t batch : {1, 2, 5}) {
        const Tensors in = net.with_batch(batch);
        const Tensors y = model.run(in), wanted = net.f(in);
        BOOST_REQUIRE(y.size() == wanted.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
          BOOST_TEST(support::within(y[i], wanted[i], 1e-6));
          same = same && support::identical(y[i], wanted[i]);
        }
      }
      BOOST_TEST(same == net.exact);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
