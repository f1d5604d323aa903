// Scans outside layers, compiled functions inside programs, and gradients of gradients.
#include "digests.h"

namespace digests {
namespace {

Case of(const std::string& name, const Tensors& in, std::function<Tensors(const Tensors&)> f) {
  return derivatives(name, [=]() -> Instance { return {in, f, {}}; });
}

/// h' = tanh(x W + h U + b), with a stack of squares.
ScanResult elman(const Tensors& t, const ScanOptions& o) {
  return scan(
      [&](const Tensors& carry, const Tensors& x) -> ScanStep {
        const Tensor h = tanh(matmul(x[0], t[1]) + matmul(carry[0], t[2]) + t[3]);
        return {{h}, {square(h)}};
      },
      {t[4]}, {t[0]}, o);
}

Tensors all_of(const ScanResult& r) {
  Tensors out = r.carry;
  for (const Tensor& y : r.y) out.push_back(y);
  return out;
}

void add_scans(std::vector<Case>& all) {
  const Tensors in{data({7, 3, 4}), data({4, 6}, 2), data({6, 6}, 3), data({6}, 4), data({3, 6}, 5)};
  const auto elmans = [&](const std::string& what, ScanOptions o) {
    for (const std::int64_t every : {0, 1, 3}) {
      o.checkpoint_every = every;
      all.push_back(of("scan/elman/" + what + "/" + std::to_string(every), in,
                       [=](const Tensors& t) { return all_of(elman(t, o)); }));
    }
  };
  elmans("forward", {});
  elmans("reverse", {.reverse = true});
  elmans("lengths", {.lengths = Tensor::from<std::int64_t>({7, 0, 4})});
  elmans("reverse-lengths", {.reverse = true, .lengths = Tensor::from<std::int64_t>({7, 0, 4})});
  elmans("wrong-length", {.lengths = Tensor::from<std::int64_t>({7, 8, 4})});
  const Tensors large{data({150, 2, 33}), data({33, 40}, 2), data({40, 40}, 3) * 0.2, data({40}, 4), data({2, 40}, 5)};
  for (const std::int64_t every : {0, 11})
    all.push_back(of("scan/elman/large/" + std::to_string(every), large,
                     [=](const Tensors& t) { return all_of(elman(t, {.checkpoint_every = every})); }));
  Tensors none = in;
  none[0] = data({0, 3, 4});
  all.push_back(of("scan/elman/no-step", none, [](const Tensors& t) { return all_of(elman(t, {})); }));
  all.push_back(of("scan/without-xs", {data({4})}, [](const Tensors& t) {
    return all_of(scan(
        [](const Tensors& c, const Tensors&) -> ScanStep {
          return {{sin(c[0]), c[1] + 1}, {c[0] * c[1]}};
        },
        {t[0], zeros({})}, {}, {.steps = 6}));
  }));
  all.push_back(of("scan/several", {data({5, 4}), data({5}, 2), data({4}, 3)}, [](const Tensors& t) {
    return all_of(scan(
        [&](const Tensors& c, const Tensors& x) -> ScanStep {
          return {{c[0] * x[1] + x[0] * exp(t[2]), c[1] + sum(c[0])}, {x[0] + c[1], exp(t[2]) * 2, c[0]}};
        },
        {t[2], zeros({})}, {t[0], t[1]}));
  }));
  all.push_back(of("scan/nested", {data({4, 3, 2}), data({2, 2}, 2)}, [](const Tensors& t) {
    return all_of(scan(
        [&](const Tensors& c, const Tensors& x) -> ScanStep {
          const ScanResult inner = scan(
              [&](const Tensors& d, const Tensors& y) -> ScanStep {
                return {{tanh(d[0] + matmul(unsqueeze(y[0], 0), t[1]))}, {d[0] * y[0]}};
              },
              {c[0]}, {x[0]});
          return {{inner.carry[0]}, {inner.y[0]}};
        },
        {zeros({1, 2})}, {t[0]}));
  }));
  all.push_back(of("scan/integers", {data({6, 3})}, [](const Tensors& t) {
    return all_of(scan(
        [](const Tensors& c, const Tensors& x) -> ScanStep {
          return {{c[0] + 1, maximum(c[1], x[0])}, {cast(c[0], Dtype::f32) * x[0], gt(x[0], c[1])}};
        },
        {full({}, 3, Dtype::i64), full({3}, -1.0)}, {t[0]}));
  }));
  all.push_back(of("scan/refused", {data({6, 3})}, [](const Tensors& t) {
    return all_of(scan(
        [](const Tensors& c, const Tensors& x) -> ScanStep {
          return {{concat({c[0], x[0]})}};
        },
        {t[0]}, {t[0]}));
  }));
}

void add_compositions(std::vector<Case>& all) {
  const Tensors in{data({5, 4}), data({4, 4}, 2)};
  const auto f = [](const Tensor& a, const Tensor& b) { return softmax(tanh(matmul(a, b)) * a) + exp(-a); };
  // The gradient of a compiled call is a separate program, whose sums may have another order.
  const auto compiled = [&](const std::string& name, std::function<Tensors(const Tensors&)> function) {
    const auto make = [=]() -> Instance { return {in, function, {}}; };
    all.push_back(derivatives("composed/" + name, make, true, Planned::own));
  };
  compiled("compiled-inside", [f](const Tensors& t) { return Tensors{compile(f)(t[0], t[1])}; });
  compiled("compiled-twice", [f](const Tensors& t) {
    const auto g = compile(f);
    return Tensors{g(g(t[0], t[1]), t[1]), tanh(t[0])};
  });
  all.push_back(of("composed/gradient-inside", in, [f](const Tensors& t) {
    Tape tape;
    const Tensor x = tape.watch(t[0]);
    return Tensors{tape.grad(sum(square(f(x, t[1]))), {x}, {.create_graph = true})[0]};
  }));
  all.push_back(of("composed/grad-of-grad", {full({}, 0.7)}, [](const Tensors& t) {
    return Tensors{grad(grad([](const Tensor& x) { return sin(x) * exp(x); }))(t[0])};
  }));
  for (const auto& [name, options] :
       {std::pair{"unfused", PlanOptions{.fuse = false}}, std::pair{"unguarded", PlanOptions{.guard = false}},
        std::pair{"no-reuse", PlanOptions{.reuse = false}}})
    all.push_back(text(std::string("composed/plan/") + name, "plan", [=, o = options] {
      const Spec specs[] = {in[0].spec(), in[1].spec()};
      const Plan plan(trace([&](const Tensors& t) { return Tensors{f(t[0], t[1]), sum(t[0], {0})}; }, specs), o);
      return plan.report().str() + plan.graph().str();
    }));
}

/// Adds programs in which one thing is worth fusing, hoisting or computing in place.
void add_fusions(std::vector<Case>& all) {
  const auto fused = [&](const std::string& name, const Tensors& in, std::function<Tensors(const Tensors&)> f) {
    all.push_back(of("fusion/" + name, in, f));
  };
  const Tensor x = data({33, 40}), y = data({33, 40}, 2), w = data({40, 40}, 3), row = data({40}, 4);
  fused("chain", {x}, [](const Tensors& t) { return Tensors{sigmoid(tanh(t[0] * 2) + 1) * t[0]}; });
  fused("epilogue", {x, w, row}, [](const Tensors& t) { return Tensors{relu(matmul(t[0], t[1]) + t[2])}; });
  fused("gated", {x, w, row}, [](const Tensors& t) {
    const Tensors g = chunk(matmul(t[0], t[1]) + t[2], 2, 1);
    return Tensors{sigmoid(g[0]) * tanh(g[1])};
  });
  fused("reduction", {x, y}, [](const Tensors& t) {
    return Tensors{sum(square(t[0] - t[1]), {1}), amax(t[0] * t[1], {0})};
  });
  fused("softmax", {x}, [](const Tensors& t) { return Tensors{softmax(t[0] * 2) * 3}; });
  fused("norm", {x, row}, [](const Tensors& t) { return Tensors{layer_norm(t[0]) * t[1] + 1}; });
  fused("views", {x}, [](const Tensors& t) {
    return Tensors{exp(transpose(slice(t[0], 1, 1, 34))) + pad(cos(slice(t[0], 0, 1)), {1, 0}, {0, -7}, 0)};
  });
  fused("concat", {x, y}, [](const Tensors& t) { return Tensors{tanh(concat({t[0] * 2, exp(t[1])}, 1)) + 1}; });
  fused("shared", {x, y}, [](const Tensors& t) {
    const Tensor e = exp(t[0]);
    return Tensors{e * t[1], e + t[1], sum(e)};
  });
  fused("gather", {x, below(33, {50})},
        [](const Tensors& t) { return Tensors{tanh(index_select(exp(t[0]), 0, t[1])) * 2}; });
  fused("constants", {x},
        [](const Tensors& t) { return Tensors{t[0] * (full({40}, 2.0) + arange(0, 40, 1, Dtype::f32))}; });
  fused("dead", {x, y}, [](const Tensors& t) {
    (void)exp(t[1]);
    return Tensors{t[0] * 1 + 0, (t[0] + t[1]) - (t[0] + t[1])};
  });
  fused("products", {x, w}, [](const Tensors& t) {
    return Tensors{matmul(matmul(t[0], t[1]), transpose(t[1])), matmul(transpose(t[0]), t[0] * 2)};
  });
  fused("large", {data({300, 513}), data({513}, 2)}, [](const Tensors& t) {
    return Tensors{sum(tanh(t[0] + t[1]), {0}), sum(tanh(t[0] + t[1]), {1}), softmax(t[0])};
  });
}

}  // namespace

std::vector<Case> scan_cases() {
  std::vector<Case> all;
  add_scans(all);
  add_compositions(all);
  add_fusions(all);
  return all;
}

}  // namespace digests
