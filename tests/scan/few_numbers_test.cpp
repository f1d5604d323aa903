// Scans over a few numbers, whose steps are kernels of one tile, compared bit for bit with the same steps as a loop.
// Each step uses the captured number once: a scan adds the gradients of several uses step by step, a loop one by one.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

constexpr std::int64_t kFewSteps = 9;

Tensor numbers(const Shape& shape, std::uint64_t stream, Dtype dtype) {
  return uniform(shape, {23, stream, 0}, -1, 1, dtype);
}

using StepFunction = Tensors (*)(const Tensors& carry, const Tensor& x, const Tensor& w);

/// Replaces each carry by another one that is still read.
Tensors rotated(const Tensors& c, const Tensor& x, const Tensor& w) {
  return {c[1] + x, c[2] * w, c[0] - c[1], c[3] * 0.5 + c[0]};
}
/// Applies operations of two and three operands, of the operand itself, with literals on either side.
Tensors mixed(const Tensors& c, const Tensor& x, const Tensor& w) {
  const Tensor a = sin(c[0] * w + x) * c[1];
  return {a * a, where(c[1] > 0.1, tanh(a - 2.0), 1.5 - c[2]), maximum(c[2], -a) * x, cos(c[3]) + exp(-square(a))};
}
/// Puts results next to each other in one tensor, which the next step takes apart again.
Tensors in_windows(const Tensors& c, const Tensor& x, const Tensor& w) {
  const Shape one = c[0].shape().rank() == 0 ? Shape{1} : c[0].shape();
  const Tensor all = concat({reshape(c[0] * w, one), reshape(c[1] + x, one), reshape(c[2] - c[3], one)}, 0);
  const auto part = [&](std::int64_t k) { return reshape(slice(all, 0, k * one[0], (k + 1) * one[0]), c[0].shape()); };
  return {part(2), part(0) * 0.9, part(1), part(0) - part(2)};
}

struct Job {
  StepFunction step;
  Shape shape;
  Dtype dtype;
};

/// Returns states, outputs of all steps, and gradients by captures, inputs and initial carries.
template <class Run>
Tensors everything(const Job& job, const Tensors& in, const Run& run) {
  Tape tape;
  Tensors watched;
  for (const Tensor& t : in) watched.push_back(tape.watch(t));
  const Tensor &w = watched[0], &xs = watched[1];
  const Tensors begin(watched.begin() + 2, watched.end());
  const auto body = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
    const Tensors next = job.step(carry, x[0], w);
    return {next, {next[0] - next[3]}};
  };
  Tensors out = run(body, begin, xs);
  Tensor loss = sum(out[0]);
  for (std::size_t k = 1; k < out.size(); ++k) loss = loss + sum(out[k] * (0.5 + static_cast<double>(k)));
  for (const Tensor& g : tape.grad(loss, watched)) out.push_back(g);
  return out;
}

Tensors by_scan(const Job& job, const Tensors& in) {
  return everything(job, in, [](const auto& body, const Tensors& begin, const Tensor& xs) {
    ScanResult r = scan(body, begin, {xs});
    r.carry.push_back(r.y[0]);
    return r.carry;
  });
}

Tensors by_loop(const Job& job, const Tensors& in) {
  return everything(job, in, [](const auto& body, Tensors carry, const Tensor& xs) {
    Tensors ys;
    for (std::int64_t t = 0; t < kFewSteps; ++t) {
      ScanStep step = body(carry, {squeeze(slice(xs, 0, t, t + 1), 0)});
      carry = step.carry;
      ys.push_back(step.y[0]);
    }
    carry.push_back(stack(ys, 0));
    return carry;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(few_numbers)

BOOST_AUTO_TEST_CASE(have_the_bits_of_a_loop) {
  for (const StepFunction step : {rotated, mixed, in_windows})
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{16}, Shape{17}, Shape{40}})
      for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
        const Job job{step, shape, dtype};
        Shape all = shape;
        all.insert(0, kFewSteps);
        Tensors in{numbers({}, 1, dtype), numbers(all, 2, dtype)};
        for (std::uint64_t k = 0; k < 4; ++k) in.push_back(numbers(shape, 3 + k, dtype));
        const Tensors wanted = by_loop(job, in), eager = by_scan(job, in);
        const auto compiled = compile([job](const Tensors& x) { return by_scan(job, x); });
        for (int call = 0; call < 2; ++call) {
          const Tensors got = compiled(in);
          for (std::size_t k = 0; k < wanted.size(); ++k) {
            BOOST_TEST(identical(eager[k], wanted[k]), "scan, shape " << shape.str() << ", result " << k);
            BOOST_TEST(identical(got[k], wanted[k]), "compiled, shape " << shape.str() << ", result " << k);
          }
        }
      }
}

BOOST_AUTO_TEST_SUITE_END()
