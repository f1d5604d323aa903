/// Scans for other implementations of StableHLO: as loops and step by step, forward and their gradients.
#include "exchange/program_cases.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/tensor/ops.h"

namespace exchange_test {
namespace {

using ferrite::Dtype;
using ferrite::ScanOptions;
using ferrite::ScanResult;
using ferrite::ScanStep;
using ferrite::Shape;
using ferrite::Tape;
using ferrite::Tensor;
using ferrite::Tensors;
namespace exchange = ferrite::exchange;

constexpr double kTolerance = 1e-10;

using Function = std::function<Tensors(const Tensors&)>;

Tensor draw(const Shape& shape, std::uint64_t stream) {
  return ferrite::uniform(shape, {29, stream}, -1, 1, Dtype::f64);
}

/// Returns a function of f's results and, for each input, the gradient of their weighted sum.
Function with_gradients(const Function& f) {
  return [f](const Tensors& in) {
    Tape tape;
    Tensors watched;
    for (const Tensor& x : in) watched.push_back(tape.watch(x));
    Tensors out = f(watched);
    Tensor loss = ferrite::zeros({}, Dtype::f64);
    for (const Tensor& y : out)
      if (is_float(y.dtype())) loss = loss + ferrite::sum(y * ferrite::cos(y));
    for (const Tensor& g : tape.grad(loss, std::span<const Tensor>(watched.data(), watched.size()))) out.push_back(g);
    return out;
  };
}

/// h, c, x [T, B, 2], w_x [2, H], w_h [H, H] -> last h and c, stacks of two ys.
Function two_carries(const ScanOptions& options) {
  return [options](const Tensors& in) {
    const auto cell = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
      const Tensor h = ferrite::tanh(ferrite::matmul(x[0], in[3]) + ferrite::matmul(carry[0], in[4]) + carry[1]);
      const Tensor c = carry[1] * 0.5 + ferrite::sigmoid(h);
      return {{h, c}, {c - h, ferrite::sum(h, {1})}};
    };
    const ScanResult r = ferrite::scan(cell, {in[0], in[1]}, {in[2]}, options);
    return Tensors{r.carry[0], r.carry[1], r.y[0], r.y[1]};
  };
}
Tensors two_carries_inputs(std::int64_t T) {
  return {draw({2, 3}, 1), draw({2, 3}, 2), draw({T, 2, 2}, 3), draw({2, 3}, 4), draw({3, 3}, 5)};
}

/// A scan in the body of a scan; both read values from outside of both.
Tensors nested(const Tensors& in) {
  const auto inner = [&](const Tensors& c, const Tensors& x) -> ScanStep {
    return {{ferrite::tanh(c[0] * in[0] + x[0])}, {c[0] * x[0]}};
  };
  const auto outer = [&](const Tensors& c, const Tensors& x) -> ScanStep {
    const ScanResult r = ferrite::scan(inner, {c[0]}, {x[0]}, {.reverse = true});
    return {{r.carry[0] * in[1]}, {ferrite::sum(r.y[0], {0})}};
  };
  const ScanResult r = ferrite::scan(outer, {in[2]}, {in[3]});
  return {r.carry[0], r.y[0]};
}

/// A fused sequence as one step of a scan: what it keeps for its gradient is a y of the scan.
Tensors fused_in_the_body(const Tensors& in) {
  const auto step = [&](const Tensors& c, const Tensors& x) -> ScanStep {
    const Tensors r =
        ferrite::gru_sequence(x[0], {.weight_ih = in[2], .weight_hh = in[3], .bias_ih = in[4], .bias_hh = in[5]}, c[0]);
    return {{r[1]}, {r[0]}};
  };
  const ScanResult r = ferrite::scan(step, {in[0]}, {in[1]});
  return {r.carry[0], r.y[0]};
}

/// Carries and ys that are not floats, steps without xs, a stack without elements, and a constant in the body.
Tensors counting(const Tensors& in) {
  const auto step = [&](const Tensors& c, const Tensors& x) -> ScanStep {
    const Tensor steps = Tensor::from({1.0, 2.0, 4.0});
    return {{c[0] + 1, c[1] * in[1] + steps, c[2]}, {c[1] > 0.5, c[0], ferrite::concat({x[0], x[0]}, 0)}};
  };
  const Tensor empty = ferrite::zeros({0}, Dtype::f64);
  const ScanResult r = ferrite::scan(step, {ferrite::full({}, 0, Dtype::i64), in[0], empty},
                                     {ferrite::zeros({4, 0}, Dtype::f64)}, {.reverse = true});
  const ScanResult without = ferrite::scan(
      [&](const Tensors& c, const Tensors&) -> ScanStep {
        return {{c[0] * in[1]}, {c[0]}};
      },
      {in[0]}, {}, {.steps = 3});
  return {r.carry[0], r.carry[1], r.carry[2], r.y[0], r.y[1], r.y[2], without.carry[0], without.y[0]};
}

void add(const std::string& name, const Function& f, const Tensors& in, std::vector<ProgramCase>& list) {
  for (const exchange::ScanExport form : {exchange::ScanExport::as_while, exchange::ScanExport::unrolled}) {
    list.push_back(case_of(name + (form == exchange::ScanExport::unrolled ? ", unrolled" : ""), f, in, kTolerance));
    list.back().options.scan = form;
  }
}

}  // namespace

std::vector<ProgramCase> scan_cases() {
  std::vector<ProgramCase> list;
  for (const bool reverse : {false, true})
    for (const std::int64_t T : {0, 1, 5}) {
      const Function f = two_carries({.reverse = reverse});
      const std::string name = "scan of " + std::to_string(T) + " steps" + (reverse ? ", reverse" : "");
      add(name, f, two_carries_inputs(T), list);
      add(name + ", gradient", with_gradients(f), two_carries_inputs(T), list);
    }
  for (const bool reverse : {false, true})
    for (const std::int64_t every : {1, 3, 7, 9}) {
      const Function f = with_gradients(two_carries({.reverse = reverse, .checkpoint_every = every}));
      const std::string name = "scan keeping every " + std::to_string(every) + (reverse ? ", reverse" : "");
      add(name, f, two_carries_inputs(7), list);
      if (every == 9) add(name + ", no steps", f, two_carries_inputs(0), list);
    }
  const Function f = two_carries({});
  const Function last = [f](const Tensors& in) -> Tensors { return {f(in)[1], f(in)[3]}; };
  add("scan of which some is read", last, two_carries_inputs(4), list);
  add("scan of which some is read, gradient", with_gradients(last), two_carries_inputs(4), list);
  add("scan gradient of gradient", with_gradients(with_gradients(f)), two_carries_inputs(3), list);
  add("scan lengths", with_gradients(two_carries({.lengths = Tensor::from<std::int64_t>({2, 4})})),
      two_carries_inputs(4), list);
  add("scan counting", counting, {draw({3}, 6), draw({3}, 7)}, list);
  const Tensors in = {draw({3}, 8), draw({3}, 9), draw({3}, 10), draw({4, 5, 3}, 11)};
  add("scan nested", nested, in, list);
  add("scan nested gradient", with_gradients(nested), in, list);
  const Tensors weights = {draw({2, 3}, 12), draw({3, 4, 2, 2}, 13), draw({2, 9}, 14),
                           draw({3, 9}, 15), draw({9}, 16),          draw({9}, 17)};
  add("scan of fused sequences", fused_in_the_body, weights, list);
  add("scan of fused sequences, gradient", with_gradients(fused_in_the_body), weights, list);
  return list;
}

}  // namespace exchange_test
