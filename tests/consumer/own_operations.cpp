// A program with its own operations, which are differentiated twice, compiled, fused and scanned.
#include "own_operations.h"

#include <iostream>

using namespace ferrite;

namespace {

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::cout << "wrong: " << what << '\n';
  ++failures;
}

bool identical(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.to_vector<double>() == b.to_vector<double>();
}

Tensor f(const Tensor& x) { return sum(own::softsign(own::cumsum(x) * 2 + 1) * own::log_cosh(x)); }

}  // namespace

int main() {
  const Tensor x = uniform({3, 5}, {.seed = 1}, -2, 2, Dtype::f64);
  const GradcheckReport report = gradcheck([](const Tensors& in) { return f(in[0]); }, {x}, {.order = 2});
  check(report.ok, "its gradients of first and second order");
  check(identical(compile(f)(x), f(x)), "compiled");

  const auto chain = compile([](const Tensor& t) { return own::softsign(t * 3 + 1) * t; });
  check(identical(chain(x), own::softsign(x * 3 + 1) * x), "fused");
  check(chain.report().kernels == 1 && chain.report().others == 0, "in one kernel");

  const Tensor square_matrix = reshape(arange(0.0, 9.0, 1, Dtype::f64), {3, 3});
  const auto of_diagonal = [](const Tensor& t) { return own::diagonal(t) * 1.5; };
  const Tensor wanted = Tensor::from({0.0, 6.0, 12.0}, {3});
  check(identical(of_diagonal(square_matrix), wanted), "a view");
  check(identical(compile(of_diagonal)(square_matrix), wanted), "a view, compiled");

  const auto step = [](const Tensors& carry, const Tensors& in) -> ScanStep {
    const Tensor h = own::softsign(own::cumsum(in[0]) + carry[0]);
    return {{h}, {own::log_cosh(h)}};
  };
  const auto gradient = [&](bool as_scan) {
    Tape tape;
    const Tensor xs = tape.watch(x);
    Tensor h = zeros({5}, Dtype::f64), total = zeros({}, Dtype::f64);
    if (as_scan) return tape.grad(sum(scan(step, {h}, {xs}).y[0]), {xs})[0];
    for (const Tensor& row : unbind(xs)) {
      const ScanStep next = step({h}, {row});
      h = next.carry[0];
      total = total + sum(next.y[0]);
    }
    return tape.grad(total, {xs})[0];
  };
  const Tensor difference = amax(abs(gradient(true) - gradient(false)));
  check(difference.item<double>() < 1e-14, "scanned");

  const Spec type = x.spec();
  const Graph g = trace([](const Tensors& in) { return Tensors{own::cumsum(in[0], true)}; }, {&type, 1});
  const Primitive* const known[] = {&define::structured<own::Cumsum>};
  const Graph parsed = parse_graph(g.str(), {.operations = known});
  check(parsed.str() == g.str() && identical(replay(parsed, {&x, 1})[0], own::cumsum(x, true)), "read from its text");

  if (failures == 0) std::cout << "the operations of this program are right\n";
  return failures;
}
