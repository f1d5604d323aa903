// Kernels whose tiles are distributed to threads, and results that bypass the caches: their bits are those of one
// thread, and of eager execution.
#include "ferrite/tensor/threads.h"
#include "ferrite/compile/compile.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

/// Sets two threads while it lives.
struct TwoThreads {
  TwoThreads() { set_threads(2); }
  ~TwoThreads() { set_threads(1); }
};

template <class F>
void check(F f, const Tensors& in) {
  const auto list = [&](const Tensors& x) { return f(x); };
  const auto g = compile(list);
  const Tensors wanted = f(in);
  const Tensors alone = g(in);
  const TwoThreads threads;
  const Tensors together = g(in);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    BOOST_TEST(identical(alone[k], wanted[k]));
    BOOST_TEST(identical(together[k], wanted[k]));
  }
}

Tensor sample(const Shape& shape, std::uint64_t stream) { return uniform(shape, {11, stream, 0}, -2, 2); }

}  // namespace

BOOST_AUTO_TEST_SUITE(threaded_kernels)

BOOST_AUTO_TEST_CASE(chunks_end_anywhere) {
  for (const Shape& shape : {Shape{200003}, Shape{3001, 67}, Shape{20, 10007}, Shape{65, 33, 101}}) {
    const Tensors in{sample(shape, 1), sample(shape, 2), sample({shape[-1]}, 3)};
    check(
        [](const Tensors& x) {
          const Tensor y = tanh(x[0]) * x[1] + x[2];
          return Tensors{y, lt(y, 0.5), cast(y, Dtype::f64) * 2, concat({y, -y}, -1), flip(y, {-1}) + 1};
        },
        in);
  }
}

BOOST_AUTO_TEST_CASE(rows_are_reduced_by_any_thread) {
  for (const Shape& shape : {Shape{3001, 67}, Shape{60, 2000}, Shape{100000, 3}})
    check(
        [](const Tensors& x) {
          return Tensors{softmax(x[0]), layer_norm(x[0] * 2), sum(square(x[0]), {1})};
        },
        {sample(shape, 1)});
}

BOOST_AUTO_TEST_CASE(large_results_are_streamed) {
  const Shape shape{2100, 2111};
  check(
      [](const Tensors& x) {
        return Tensors{x[0] * x[1] + 1, transpose(x[0]) * 2, softmax(x[0] + x[1])};
      },
      {sample(shape, 1), sample(shape, 2)});
}

BOOST_AUTO_TEST_SUITE_END()
