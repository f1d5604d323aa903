// Nothing is allocated in a plan's run, nor in a compiled training step, from the third call on: calls of operator new
// are counted, and blocks that the pool of tensors had to ask the system for.
#include <atomic>
#include <cstdlib>
#include <new>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/gru.h"
#include "ferrite/nn/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "support/compare.h"

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(bytes)
                : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!p) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

using namespace ferrite;

namespace {

/// Allocations of one call of f after two others.
template <class F>
std::size_t in_third_call(F&& f) {
  f();
  f();
  const std::size_t before = allocations + pool_counts().misses;
  f();
  f();
  return allocations + pool_counts().misses - before;
}

Tensor sample(const Shape& shape, std::uint64_t stream) { return uniform(shape, {7, stream, 0}, -1, 1); }

struct Classifier : nn::Module {
  Classifier(std::int64_t inputs, std::int64_t hidden)
      : first(inputs, hidden, {.seed = 1, .prefix = "first"}), second(hidden, 10, {.seed = 2, .prefix = "second"}) {
    adopt("first", first);
    adopt("second", second);
  }
  Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
  nn::Linear first, second;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(alloc)

BOOST_AUTO_TEST_CASE(allocations_are_counted) {
  BOOST_TEST(in_third_call([] { delete new std::string(100, 'x'); }) > 0U);
}

BOOST_AUTO_TEST_CASE(a_plan_runs_without_the_heap) {
  const std::vector<Spec> specs = {{{64, 48}, Dtype::f32}, {{48, 32}, Dtype::f32}};
  const Plan plan(trace(
      [](const Tensors& x) {
        const Tensor y = softmax(matmul(x[0], x[1]));
        return Tensors{sum(tanh(y) * 2, {0}), layer_norm(y), concat({y, exp(y)}, 0)};
      },
      specs));
  const Tensor in[] = {sample({64, 48}, 1), sample({48, 32}, 2)};
  BOOST_TEST(in_third_call([&] { (void)plan.run(in); }) == 0U);
}

BOOST_AUTO_TEST_CASE(a_compiled_training_step_runs_without_the_heap) {
  for (const std::int64_t hidden : {16, 128, 512}) {
    const Classifier net(40, hidden);
    nn::Adam adam(net.parameters());
    const auto step = compile([&](const Tensor& x, const Tensor& y) {
      Tape tape;
      const Tensor loss = nn::cross_entropy(net(x), y);
      adam.step(tape.grad(loss, net.parameters()));
      return loss;
    });
    const Tensor x = sample({32, 40}, 1);
    const Tensor y = cast(uniform({32}, {3, 3, 3}, 0, 10), Dtype::i64);
    BOOST_TEST(in_third_call([&] { (void)step(x, y); }) == 0U, "hidden size " << hidden);
  }
}

BOOST_AUTO_TEST_CASE(a_compiled_step_of_an_unrolled_gru_runs_without_the_heap) {
  for (const std::int64_t hidden : {8, 64}) {
    nn::GruOptions options;
    options.form = nn::Form::unrolled;
    const nn::Gru gru(12, hidden, options, {.seed = 1, .prefix = "gru"});
    nn::Adam adam(gru.parameters());
    const auto step = compile([&](const Tensor& x) {
      Tape tape;
      const Tensor loss = mean(square(gru(x)));
      adam.step(tape.grad(loss, gru.parameters()));
      return loss;
    });
    const Tensor x = sample({4, 9, 12}, 1);
    BOOST_TEST(in_third_call([&] { (void)step(x); }) == 0U, "hidden size " << hidden);
  }
}

BOOST_AUTO_TEST_SUITE_END()
