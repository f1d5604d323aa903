// Packed copies of weights in programs that are replayed.
#include <thread>

#include "ferrite/compile/compile.h"
#include "ferrite/nn/gru.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {61, stream, 0}, -1, 1); }

}  // namespace

BOOST_AUTO_TEST_SUITE(compiled_packs)

/// Weights that are computed inside stand where the run itself and the next one write other values. Of many lengths, so
/// that the kernel's own memory is at some of them as large as a forgotten pack.
BOOST_AUTO_TEST_CASE(weights_made_inside_are_never_stale) {
  const Tensor w_ih = draw({3, 12}, 2), w_hh = draw({4, 12}, 3), h0 = zeros({2, 4});
  for (std::int64_t T = 4; T < 40; ++T) {
    const Tensor x = draw({2, T, 3}, 1);
    const auto f = [&](const Tensor& scale) {
      return gru_sequence(x, {w_ih * scale, sin(w_hh * scale)}, h0, {.batch_first = true})[0] * 2;
    };
    const auto compiled = compile(f);
    for (int k = 0; k < 3; ++k) {
      const Tensor scale = full({}, 0.5 + k, Dtype::f32);
      BOOST_TEST(identical(compiled(scale), f(scale)), "T " << T << ", run " << k);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_run_keeps_the_packs_of_what_it_reads) {
  const nn::Gru gru(3, 4, {.seed = 1});
  const auto fast = gru.compiled();
  const Tensor x = draw({2, 9, 3}, 1);
  const Tensor y = fast(x);
  const auto* const packs = gru.weights().weight_hh.peek().impl()->storage->packs.load();
  BOOST_TEST(packs != nullptr);
  for (int k = 0; k < 3; ++k) BOOST_TEST(identical(fast(x), y));
  BOOST_TEST(gru.weights().weight_hh.peek().impl()->storage->packs.load() == packs);
  BOOST_TEST(identical(gru(x), y));
}

BOOST_AUTO_TEST_CASE(two_threads_run_one_program_on_one_pack) {
  const nn::Gru gru(3, 33, {.seed = 1});
  const auto fast = gru.compiled();
  const Tensor x = draw({2, 9, 3}, 1);
  const Tensor wanted = gru(x);
  Tensors results(4);
  {
    std::vector<std::jthread> threads;
    for (Tensor& y : results)
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) y = fast(x);
      });
  }
  for (const Tensor& y : results) BOOST_TEST(identical(y, wanted));
}

BOOST_AUTO_TEST_SUITE_END()
