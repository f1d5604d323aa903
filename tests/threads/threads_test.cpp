// One model in many threads: reading is safe and has the same bits; each thread has its own tapes and pools.
#include <thread>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

dsl::Network small_net(std::uint64_t seed = 1) { return dsl::sequence(4).gru(16).last_step().linear(3).build(seed); }
Tensor input() { return uniform({5, 6, 4}, {1, 2, 3}, -1, 1); }
const Tensor kTargets = Tensor::from<std::int64_t>({0, 1, 2, 0, 1});

Tensors gradients(const dsl::Network& net) {
  Tape tape;
  const Tensor loss = nn::cross_entropy(net(input()), kTargets);
  return tape.grad(loss, net.parameters());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(threads)

BOOST_AUTO_TEST_CASE(eight_threads_read_one_model) {
  const dsl::Network net = small_net();
  const Tensor x = input();
  const Tensor wanted = net(x);
  Tensors results(8);
  {
    std::vector<std::jthread> pool;
    for (std::size_t k = 0; k < 8; ++k)
      pool.emplace_back([&, k] {
        for (int i = 0; i < 20; ++i) results[k] = net(x);
      });
  }
  for (const Tensor& y : results) BOOST_TEST(identical(y, wanted));
}

BOOST_AUTO_TEST_CASE(two_threads_have_their_own_tapes_on_one_model) {
  const dsl::Network net = small_net();
  const Tensors wanted = gradients(net);
  Tensors results[2];
  {
    std::vector<std::jthread> pool;
    for (Tensors& r : results)
      pool.emplace_back([&] {
        for (int i = 0; i < 20; ++i) r = gradients(net);
      });
  }
  for (const Tensors& r : results)
    for (std::size_t i = 0; i < wanted.size(); ++i) BOOST_TEST(identical(r[i], wanted[i]));
}

BOOST_AUTO_TEST_CASE(two_threads_train_two_models) {
  const auto train = [] {
    const dsl::Network net = small_net();
    nn::Adam adam(net.parameters());
    for (int i = 0; i < 10; ++i) adam.step(gradients(net));
    return net.parameters()[1].peek();
  };
  const Tensor wanted = train();
  Tensors results(2);
  {
    std::vector<std::jthread> pool;
    for (std::size_t k = 0; k < 2; ++k) pool.emplace_back([&, k] { results[k] = train(); });
  }
  for (const Tensor& r : results) BOOST_TEST(identical(r, wanted));
}

BOOST_AUTO_TEST_CASE(four_threads_give_the_bits_of_one) {
  const dsl::Network net = dsl::sequence(40).gru(160).build(3);
  const auto run = [&] {
    Tape tape;
    const Tensor x = tape.watch(uniform({64, 5, 40}, {1, 1, 1}, -1, 1));
    const Tensor y = net(x);
    Tensors all = tape.grad(sum(square(y)), net.parameters(), {.retain = true});
    all.push_back(tape.grad(sum(square(y)), {x})[0]);
    all.push_back(y);
    return all;
  };
  const Tensors one = run();
  set_threads(4);
  const Tensors four = run();
  set_threads(1);
  for (std::size_t i = 0; i < one.size(); ++i) BOOST_TEST(identical(one[i], four[i]));
}

BOOST_AUTO_TEST_CASE(an_exception_in_a_parallel_loop_arrives) {
  set_threads(4);
  BOOST_CHECK_THROW(detail::parallel_for(100,
                                         [](std::int64_t i) {
                                           if (i == 57) throw Error("here");
                                         }),
                    Error);
  std::atomic<int> count{0};
  detail::parallel_for(100, [&](std::int64_t) { ++count; });
  set_threads(1);
  BOOST_TEST(count == 100);
}

BOOST_AUTO_TEST_CASE(too_many_threads_are_refused) {
  BOOST_CHECK_EXCEPTION(set_threads(100000), ValueError,
                        support::says("set_threads: at most 1024 threads, got 100000"));
  BOOST_TEST(thread_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
