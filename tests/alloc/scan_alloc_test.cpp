// Scans allocate once: no step allocates, nor do calls and training steps from the third on.
#include <boost/test/unit_test.hpp>

#include "counted.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/gru.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(alloc)

BOOST_AUTO_TEST_CASE(layers_that_scan_allocate_nothing_from_the_third_call_on) {
  for (const std::int64_t H : {4, 17, 64, 512})
    for (const std::int64_t T : {1, 10, 40}) {
      const nn::Gru gru(12, H, {.layers = 2, .form = nn::Form::scan}, {.seed = 0});
      const nn::Custom custom = nn::custom<nn::LayerNormGruCell>(12, H, {}, {.seed = 0});
      const Tensor x = uniform({3, T, 12}, {1, 2, 3}, -1, 1);
      const std::vector<Parameter> of_gru = gru.parameters(), of_custom = custom.parameters();
      nn::Adam first(of_gru, {}), second(of_custom, {});
      const auto train = [&](const nn::Recurrent& layer, const std::vector<Parameter>& parameters, nn::Adam& adam) {
        Tape tape;
        adam.step(tape.grad(sum(layer(x)), parameters));
      };
      for (int call = 1; call <= 6; ++call) {
        const std::uint64_t forward = counted::during([&] {
          (void)gru(x);
          (void)custom(x);
        });
        const std::uint64_t training = counted::during([&] {
          train(gru, of_gru, first);
          train(custom, of_custom, second);
        });
        if (call < 3) continue;
        BOOST_TEST(forward == 0U, "H " << H << " T " << T << ", call " << call);
        BOOST_TEST(training == 0U, "H " << H << " T " << T << ", training step " << call);
      }
    }
}

BOOST_AUTO_TEST_CASE(as_many_allocations_for_any_number_of_steps) {
  const auto requests = [](std::int64_t T) {
    const Tensor w = uniform({8, 8}, {1, 1, 0}, -1, 1), x = uniform({T, 2, 8}, {1, 2, 0}, -1, 1);
    const auto once = [&] {
      Tape tape;
      const Tensor watched = tape.watch(w);
      const ScanResult r = scan(
          [&](const Tensors& c, const Tensors& in) -> ScanStep {
            const Tensor h = tanh(matmul(c[0], watched) + in[0]);
            return {{h}, {h}};
          },
          {zeros({2, 8})}, {x});
      (void)tape.grad(sum(r.y[0]), {watched});
    };
    for (int i = 0; i < 3; ++i) once();
    const std::uint64_t before = pool_counts().requests;
    const std::uint64_t system = counted::during(once);
    return std::pair(pool_counts().requests - before, system);
  };
  const auto few = requests(256), many = requests(25'600);
  BOOST_TEST(few.first == many.first);
  BOOST_TEST(few.second == many.second);
}

BOOST_AUTO_TEST_SUITE_END()
