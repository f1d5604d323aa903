// The memory that a training step takes from the pool.
#include <boost/test/unit_test.hpp>
#include <thread>

#include "counted.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/scan.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/tensor/reserve.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(alloc)

/// Counts the memory beyond the parameters, Adam's moments and the input for H = 256, T = 100, B = 128. What the pool
/// holds after a step is the most that the step needed.
BOOST_AUTO_TEST_CASE(a_training_step_of_a_gru_keeps_its_gates_once) {
  const auto net = dsl::sequence(256).gru(256).last_step().linear(10).build(1);
  const auto parameters = net.parameters();
  nn::Adam adam(parameters);
  const Tensor x = uniform({128, 100, 256}, {1, 2, 3}, -1, 1);
  const Tensor labels = zeros({128}, Dtype::i64);
  trim();
  const auto step = [&] {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(x), labels);
    adam.step(tape.grad(loss, parameters));
  };
  step();
  const double mib = static_cast<double>(cached_memory()) / (1 << 20);
  BOOST_TEST_MESSAGE("a step needs " << mib << " MiB");
  BOOST_TEST(mib > 60);  // four gates and the outputs are kept: a smaller number means another plan
  BOOST_TEST(mib <= 100);
}

/// Counts the memory beyond the inputs for the gradient of a recurrence over 8192 steps. With carries kept every 64
/// steps it is these and what 64 steps keep.
BOOST_AUTO_TEST_CASE(few_carries_need_little_memory) {
  const std::int64_t T = 8192, H = 64;
  const Tensor w = uniform({H, H}, {1, 1, 0}, -0.1, 0.1), x = uniform({T, 1, H}, {1, 2, 0}, -1, 1);
  const auto mib = [&](std::int64_t every) {
    const auto step = [&] {
      Tape tape;
      const Tensor watched = tape.watch(w);
      const auto body = [&](const Tensors& c, const Tensors& in) {
        return ScanStep{{c[0] + sigmoid(in[0]) * tanh(matmul(c[0], watched))}, {}};
      };
      return tape.grad(sum(scan(body, {zeros({1, H})}, {x}, {.checkpoint_every = every}).carry[0]), {watched})[0];
    };
    (void)step();
    trim();
    (void)step();
    return static_cast<double>(cached_memory()) / (1 << 20);
  };
  const double all = mib(0), few = mib(64);
  BOOST_TEST_MESSAGE("all kept: " << all << " MiB, every 64th: " << few << " MiB");
  BOOST_TEST(all > 3 * 2);  // three values of every step, 2 MiB each
  BOOST_TEST(few < all / 8);
}

/// The tensor is made while a reserve is open, and freed by another thread when the reserve has ended.
BOOST_AUTO_TEST_CASE(a_tensor_may_outlive_the_reserve_that_it_came_from) {
  Tensor left;
  {
    detail::Reserve reserve;
    BOOST_TEST(reserve.empty());
    const auto run = [&](Tensor* result) {
      const detail::Reserve::Open open(reserve);
      const Tensor first = full({100}, 2), second = first * 3;
      if (result) *result = second;
    };
    run(&left);
    BOOST_TEST(!reserve.empty());
    BOOST_TEST(counted::during([&] { run(nullptr); }) > 0U);  // the block of `left` is missing
    BOOST_TEST(counted::during([&] { run(nullptr); }) == 0U);
    std::uint64_t asked = 1;
    std::thread([&] { asked = counted::during([&] { run(nullptr); }); }).join();
    BOOST_TEST(asked == 0U);
  }
  BOOST_TEST(sum(left).item<float>() == 600);
  std::thread([&] { left = Tensor(); }).join();
}

BOOST_AUTO_TEST_SUITE_END()
