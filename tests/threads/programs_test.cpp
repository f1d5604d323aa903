// Compiled functions, scans and streams in many threads: plans and gradients that are made on first use are right,
// whichever threads need them at the same time, and every thread gets the bits of a single one.
#include <barrier>
#include <thread>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

constexpr std::size_t kThreads = 4;

/// Calls f(number of the thread) on all threads at the same time.
template <class F>
void at_once(F f) {
  std::barrier begin(static_cast<std::ptrdiff_t>(kThreads));
  std::vector<std::jthread> pool;
  for (std::size_t k = 0; k < kThreads; ++k)
    pool.emplace_back([&begin, &f, k] {
      begin.arrive_and_wait();
      f(k);
    });
}

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {81, stream, 0}, -1, 1); }

dsl::Network network(std::uint64_t seed = 1) {
  return dsl::sequence(3).recurrent<nn::LayerNormGruCell>(5).gru(6).last_step().linear(2).build(seed);
}
Tensor input(std::int64_t T = 7) { return draw({4, T, 3}, static_cast<std::uint64_t>(T)); }

void check_same(const std::vector<Tensors>& got, const std::vector<Tensors>& wanted) {
  for (std::size_t k = 0; k < kThreads; ++k) {
    BOOST_REQUIRE(got[k].size() == wanted[k].size());
    for (std::size_t i = 0; i < got[k].size(); ++i)
      BOOST_TEST(identical(got[k][i], wanted[k][i]), "thread " << k << ", result " << i);
  }
}

/// Checks that every thread, doing the same repeatedly, gets at last the results of one thread.
template <class F>
void check(F f, int times = 10) {
  std::vector<Tensors> got(kThreads), wanted;
  at_once([&](std::size_t k) {
    for (int i = 0; i < times; ++i) got[k] = f(k);
  });
  for (std::size_t k = 0; k < kThreads; ++k) wanted.push_back(f(k));
  check_same(got, wanted);
}

/// Returns the length of a thread's sequences, which two threads share.
std::int64_t length(std::size_t k) { return 6 + static_cast<std::int64_t>(k / 2); }

ScanStep elman(const Tensors& carry, const Tensors& x, const Tensor& w, const Tensor& u) {
  const Tensor h = tanh(matmul(x[0], w) + matmul(carry[0], u));
  return {{h}, {h * 2}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(programs_in_threads)

BOOST_AUTO_TEST_CASE(a_compiled_function_is_first_called_by_several_threads) {
  const dsl::Network net = network();
  for (int round = 0; round < 3; ++round) {
    const auto fast = net.compiled();
    check([&](std::size_t k) { return Tensors{fast(input(length(k)))}; });
    BOOST_TEST(fast.plans() == 2U);
    for (std::size_t k = 0; k < kThreads; ++k) BOOST_TEST(identical(fast(input(length(k))), net(input(length(k)))));
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_a_compiled_function) {
  const dsl::Network net = network();
  for (int round = 0; round < 3; ++round) {
    const auto fast = net.compiled();
    check([&](std::size_t k) {
      Tape tape;
      const Tensor x = tape.watch(input(length(k)));
      const Tensor loss = sum(square(fast(x)));
      Tensors g = k % 2 ? tape.grad(loss, net.parameters()) : tape.grad(loss, {x});
      g.push_back(loss);
      return g;
    });
  }
}

BOOST_AUTO_TEST_CASE(a_report_while_others_call) {
  const dsl::Network net = network();
  const auto fast = net.compiled();
  (void)fast(input());
  std::vector<std::size_t> operations(kThreads);
  check([&](std::size_t k) {
    const auto same = fast;  // copies share their plans
    operations[k] = same.report().operations + same.graph().nodes.size() + same.plans();
    return Tensors{same(input(length(k)))};
  });
  for (const std::size_t n : operations) BOOST_TEST(n > 0U);
}

BOOST_AUTO_TEST_CASE(each_thread_trains_its_own_compiled_step) {
  check(
      [&](std::size_t k) {
        const dsl::Network net = network(k);
        nn::Adam adam(net.parameters(), {.learning_rate = 0.05});
        const auto step = compile([&](const Tensor& x, const Tensor& y) {
          Tape tape;
          const Tensor loss = nn::cross_entropy(net(x), y);
          adam.step(tape.grad(loss, net.parameters()));
          return loss;
        });
        Tensors losses;
        for (int i = 0; i < 5; ++i) losses.push_back(step(input(), Tensor::from<std::int64_t>({0, 1, 1, 0})));
        return losses;
      },
      2);
}

BOOST_AUTO_TEST_CASE(one_scan_with_its_gradients) {
  const Parameter w("w", draw({3, 5}, 1)), u("u", draw({5, 5}, 2));
  const Tensor h0 = zeros({4, 5});
  const Tensor lengths = Tensor::from<std::int64_t>({6, 1, 3, 5});
  for (const std::int64_t every : {0, 2})
    for (const bool with_lengths : {false, true}) {
      const Scan shared([&](const Tensors& carry, const Tensors& x) { return elman(carry, x, w, u); });
      check([&](std::size_t k) {
        ScanOptions options{.reverse = k % 2 == 1, .checkpoint_every = every};
        if (with_lengths) options.lengths = lengths;
        Tape tape;
        const Tensor xs = tape.watch(draw({length(k), 4, 3}, 3));
        const ScanResult r = shared({h0}, {xs}, options);
        const Tensor loss = sum(r.carry[0]) + sum(square(r.y[0]));
        Tensors g = tape.grad(loss, {w, u});
        g.push_back(r.y[0]);
        return g;
      });
    }
}

BOOST_AUTO_TEST_CASE(equal_bodies_share_their_plans) {
  const Tensor w = draw({3, 5}, 1), u = draw({5, 5}, 2), h0 = zeros({4, 5});
  check([&](std::size_t k) {
    Tape tape;
    const Tensor v = tape.watch(w);
    const ScanResult r = scan([&](const Tensors& carry, const Tensors& x) { return elman(carry, x, v, u); }, {h0},
                              {draw({300 + length(k), 4, 3}, 3)});  // more steps than one chunk has
    return Tensors{r.y[0], tape.grad(sum(r.y[0]), {v})[0]};
  });
}

BOOST_AUTO_TEST_CASE(each_thread_has_its_own_stream_of_one_model) {
  const auto net = dsl::sequence(3).gru(6).recurrent<nn::LayerNormGruCell>(5).lstm(4).linear(2).build(1);
  const Tensor x = draw({1, 9, 3}, 5);
  const Tensor wanted = net(x);
  std::vector<std::vector<float>> got(kThreads), cloned(kThreads);
  at_once([&](std::size_t k) {
    for (int round = 0; round < 5; ++round) {
      nn::Stream stream = net.stream();
      const auto run = [&](nn::Stream& s, std::int64_t from, std::vector<float>& all) {
        for (std::int64_t t = from; t < 9; ++t) {
          const std::vector<float> in = select(x, 1, t).to_vector<float>();
          std::vector<float> out(2);
          s.step(in, out);
          all.insert(all.end(), out.begin(), out.end());
        }
      };
      got[k].clear();
      run(stream, 0, got[k]);
      stream.reset();
      cloned[k].clear();
      nn::Stream copy = stream.clone();
      copy.refresh();
      run(copy, 0, cloned[k]);
    }
  });
  for (std::size_t k = 0; k < kThreads; ++k) {
    BOOST_TEST(identical(Tensor::from(got[k], {1, 9, 2}), wanted), "thread " << k);
    BOOST_TEST(identical(Tensor::from(cloned[k], {1, 9, 2}), wanted), "thread " << k << ", its clone");
  }
}

BOOST_AUTO_TEST_SUITE_END()
