// The memory of a training step, as the pool hands it out.
#include <boost/test/unit_test.hpp>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(alloc)

/// H = 256, T = 100, B = 128: beyond the parameters, Adam's moments and the input. What the pool holds after a step is
/// what it needed at its most.
BOOST_AUTO_TEST_CASE(a_training_step_of_a_gru_keeps_its_gates_once) {
  const auto net = dsl::sequence(256).gru(256).last_step().linear(10).build(1);
  const auto parameters = net.parameters();
  nn::Adam adam(parameters);
  const Tensor x = uniform({128, 100, 256}, {1, 2, 3}, -1, 1);
  const Tensor labels = zeros({128}, Dtype::i64);
  release_cached_memory();
  const auto step = [&] {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(x), labels);
    adam.step(tape.grad(loss, parameters));
  };
  step();
  const double mib = static_cast<double>(cached_memory()) / (1 << 20);
  BOOST_TEST_MESSAGE("a step needs " << mib << " MiB");
  BOOST_TEST(mib > 60);  // four gates and the outputs are kept: less would be another plan
  BOOST_TEST(mib <= 100);
}

BOOST_AUTO_TEST_SUITE_END()
