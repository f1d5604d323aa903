// Every public function of tensors, with gradients, on ordinary data, at special values and on empty operands.
#include <limits>

#include "digests.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/nn/recurrent/steps.h"

namespace digests {
namespace {

using Function = std::function<Tensors(const Tensors&)>;

Case on(const std::string& name, const Tensors& in, Function f) {
  return derivatives(
      "operation/" + name,
      [=]() -> Instance {
        return {in, f, {}};
      },
      false);
}

Tensor special() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  return Tensor::from({0.F, -0.F, 1.F, -1.F, kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 1e-40F, 3e38F, 0.5F,
                       2.F, -88.F, 89.F, 1e-7F, 700.F, -3.5F, 11.F});
}

void add_unary(std::vector<Case>& all) {
  using Unary = Tensor (*)(const Tensor&);
  const std::vector<std::pair<const char*, Unary>> list = {
      {"neg", neg},
      {"abs", ferrite::abs},
      {"sign", sign},
      {"square", square},
      {"sqrt", sqrt},
      {"rsqrt", rsqrt},
      {"exp", exp},
      {"reciprocal", reciprocal},
      {"exp2", exp2},
      {"expm1", expm1},
      {"log", log},
      {"log1p", log1p},
      {"log2", log2},
      {"sin", sin},
      {"cos", cos},
      {"tanh", tanh},
      {"sigmoid", sigmoid},
      {"erf", erf},
      {"relu", relu},
      {"softplus", softplus},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"gelu_tanh", [](const Tensor& x) { return gelu(x, GeluForm::tanh); }},
      {"silu", silu},
      {"log_sigmoid", log_sigmoid},
      {"contiguous", contiguous},
      {"zeros_like", zeros_like},
      {"ones_like", ones_like},
      {"detach", detach}};
  for (const auto& [name, f] : list) {
    const auto one = [f = f](const Tensors& x) { return Tensors{f(x[0])}; };
    const std::string n = name;
    all.push_back(on(n, {data({5, 37}, 1, Dtype::f32, -3, 3)}, one));
    all.push_back(on(n + "/positive", {data({2, 19}, 2, Dtype::f32, 0.1, 4)}, one));
    all.push_back(on(n + "/f64", {data({3, 11}, 3, Dtype::f64, -3, 3)}, one));
    all.push_back(on(n + "/special", {special()}, one));
    all.push_back(on(n + "/strided", {slice(transpose(data({9, 8})), 0, 1, 8, 3)}, one));
    all.push_back(on(n + "/empty", {data({3, 0, 2})}, one));
    all.push_back(on(n + "/i64", {below(9, {7}) - 4}, one));
  }
}

void add_binary(std::vector<Case>& all) {
  using Binary = Tensor (*)(const Operand&, const Operand&);
  const std::vector<std::pair<const char*, Binary>> list = {
      {"add", add},         {"sub", sub},         {"mul", mul}, {"div", div}, {"pow", pow},
      {"maximum", maximum}, {"minimum", minimum}, {"eq", eq},   {"ne", ne},   {"lt", lt},
      {"le", le},           {"gt", gt},           {"ge", ge}};
  for (const auto& [name, f] : list) {
    const auto two = [f = f](const Tensors& x) { return Tensors{f(x[0], x[1])}; };
    const std::string n = name;
    all.push_back(on(n, {data({5, 37}, 1, Dtype::f32, 0.1, 2), data({5, 37}, 2)}, two));
    all.push_back(on(n + "/broadcast", {data({5, 1, 7}, 1, Dtype::f32, 0.1, 2), data({3, 1}, 2)}, two));
    all.push_back(on(n + "/special", {special(), flip(special(), {0})}, two));
    all.push_back(on(n + "/equal", {special(), special()}, two));
    all.push_back(on(n + "/f64", {data({4, 5}, 1, Dtype::f64, 0.1, 2), data({4, 5}, 2, Dtype::f64)}, two));
    all.push_back(on(n + "/i64", {below(9, {7}, 1), below(9, {7}, 2)}, two));
    all.push_back(on(n + "/mixed", {data({7}), below(9, {7}, 2)}, two));
    all.push_back(on(n + "/shapes", {data({7}), data({6})}, two));
    all.push_back(on(n + "/literal", {data({3, 19}, 1, Dtype::f32, 0.1, 2)}, [f = f](const Tensors& x) {
      return Tensors{f(x[0], 1.5), f(2, x[0])};
    }));
  }
}

void add_reductions(std::vector<Case>& all) {
  using Reduction = Tensor (*)(const Tensor&, const Shape&, bool);
  const std::vector<std::pair<const char*, Reduction>> list = {
      {"sum", sum}, {"mean", mean}, {"amax", amax}, {"amin", amin}, {"prod", prod}, {"logsumexp", logsumexp}};
  for (const auto& [name, f] : list) {
    const std::string n = name;
    const auto over = [f = f](const Shape& axes, bool keep) {
      return [=](const Tensors& x) { return Tensors{f(x[0], axes, keep)}; };
    };
    const Tensor x = data({5, 3, 41});
    all.push_back(on(n, {x}, over({}, false)));
    all.push_back(on(n + "/last", {x}, over({2}, true)));
    all.push_back(on(n + "/first", {x}, over({0}, false)));
    all.push_back(on(n + "/outer", {x}, over({0, 2}, false)));
    all.push_back(on(n + "/long", {data({3000})}, over({}, false)));
    all.push_back(on(n + "/special", {special()}, over({0}, false)));
    all.push_back(on(n + "/ties", {ones({4, 3})}, over({0}, false)));
    all.push_back(on(n + "/zeros", {data({4, 3}) * Tensor::from({0.F, 1.F, 0.F})}, over({1}, false)));
    all.push_back(on(n + "/empty", {data({3, 0})}, over({1}, false)));
    all.push_back(on(n + "/i64", {below(9, {7, 2})}, over({0}, false)));
    all.push_back(on(n + "/axis", {data({7})}, over({3}, false)));
  }
  const Tensor x = data({4, 3, 17});
  all.push_back(on("var", {x}, [](const Tensors& t) { return Tensors{var(t[0], {1}), var(t[0], {}, true, 0)}; }));
  all.push_back(on("argmax", {x}, [](const Tensors& t) { return Tensors{argmax(t[0]), argmin(t[0], 0, true)}; }));
  all.push_back(on("argmax/special", {special()}, [](const Tensors& t) {
    return Tensors{argmax(t[0]), argmin(t[0])};
  }));
  for (const std::int64_t axis : {-1, 0, 1}) {
    const std::string n = "/" + std::to_string(axis);
    all.push_back(on("softmax" + n, {x}, [=](const Tensors& t) { return Tensors{softmax(t[0], axis)}; }));
    all.push_back(on("log_softmax" + n, {x}, [=](const Tensors& t) { return Tensors{log_softmax(t[0], axis)}; }));
  }
  all.push_back(on("softmax/special", {special()}, [](const Tensors& t) {
    return Tensors{softmax(t[0]), log_softmax(t[0])};
  }));
  all.push_back(on("sum_to", {x}, [](const Tensors& t) { return Tensors{sum_to(t[0], {3, 1}), sum_to(t[0], {17})}; }));
  all.push_back(on("layer_norm", {x}, [](const Tensors& t) { return Tensors{layer_norm(t[0])}; }));
  all.push_back(on("layer_norm/axes", {x}, [](const Tensors& t) { return Tensors{layer_norm(t[0], 2, 1e-3)}; }));
}

void add_views(std::vector<Case>& all) {
  const Tensor x = data({4, 3, 8});
  const auto view = [&](const std::string& name, Function f) {
    all.push_back(on(name, {x}, f));
    all.push_back(on(name + "/f64", {data({4, 3, 8}, 5, Dtype::f64)}, f));
    all.push_back(on(name + "/i64", {below(90, {4, 3, 8})}, f));
    all.push_back(on(name + "/strided", {transpose(data({4, 8, 3}))}, f));
    all.push_back(on(name + "/rank", {data({4})}, f));
    all.push_back(on(name + "/chain", {x}, [f](const Tensors& t) { return f({exp(t[0])}); }));
  };
  view("reshape", [](const Tensors& t) { return Tensors{reshape(t[0], {-1, 6})}; });
  view("permute", [](const Tensors& t) { return Tensors{permute(t[0], {2, 0, 1})}; });
  view("transpose", [](const Tensors& t) { return Tensors{transpose(t[0]), transpose(t[0], 0, 1)}; });
  view("slice", [](const Tensors& t) { return Tensors{slice(t[0], 2, 1, 7, 2), slice(t[0], 0, kEnd, kEnd, -1)}; });
  view("select", [](const Tensors& t) { return Tensors{select(t[0], 1, -1)}; });
  view("expand", [](const Tensors& t) { return Tensors{expand(unsqueeze(t[0], 1), {-1, 5, -1, -1})}; });
  view("squeeze", [](const Tensors& t) { return Tensors{squeeze(unsqueeze(t[0], 2), 2), squeeze(t[0])}; });
  view("flip", [](const Tensors& t) { return Tensors{flip(t[0], {0, 2})}; });
  view("flatten", [](const Tensors& t) { return Tensors{flatten(t[0], 1), flatten(t[0])}; });
  view("unbind", [](const Tensors& t) { return unbind(t[0], 1); });
  view("split", [](const Tensors& t) { return split(t[0], 3, 2); });
  view("split/sizes", [](const Tensors& t) { return split(t[0], std::vector<std::int64_t>{1, 5, 2}, 2); });
  view("chunk", [](const Tensors& t) { return chunk(t[0], 3, 2); });
  view("concat", [](const Tensors& t) { return Tensors{concat({t[0], flip(t[0], {1})}, 1)}; });
  view("stack", [](const Tensors& t) { return Tensors{stack({t[0], t[0] + t[0]}, -1)}; });
  view("pad", [](const Tensors& t) { return Tensors{pad(t[0], {1, 0, -2}, {0, 2, 3}, 2)}; });
  view("cast", [](const Tensors& t) {
    return Tensors{cast(t[0], Dtype::f64), cast(t[0], Dtype::i32), cast(t[0], Dtype::boolean), cast(t[0], Dtype::f32)};
  });
  view("where", [](const Tensors& t) {
    return Tensors{where(gt(t[0], 0), t[0], t[0] + t[0]), where(gt(t[0], 0), 1, t[0])};
  });
  view("clamp", [](const Tensors& t) { return Tensors{clamp(t[0], -1, 1)}; });
  view("checked", [](const Tensors& t) { return Tensors{checked(t[0], -100, 100, "digest: value")}; });
  view("checked/refused", [](const Tensors& t) { return Tensors{checked(t[0], -0.5, 0.5, "digest: value")}; });
  view("index_select", [](const Tensors& t) {
    return Tensors{index_select(t[0], 1, Tensor::from<std::int64_t>({2, 0, -1, 2}))};
  });
  view("index_select/refused", [](const Tensors& t) {
    return Tensors{index_select(t[0], 1, Tensor::from<std::int64_t>({2, 3}))};
  });
  view("gather", [](const Tensors& t) { return Tensors{gather(t[0], 2, below(8, {4, 2, 5}))}; });
  view("scatter_add", [](const Tensors& t) { return Tensors{scatter_add(t[0], 2, below(8, {4, 3, 8}), t[0])}; });
  view("logic", [](const Tensors& t) {
    const Tensor a = gt(t[0], 0), b = lt(t[0], 1);
    return Tensors{a && b, a || b, !a};
  });
}

void add_products(std::vector<Case>& all) {
  const auto product = [&](const std::string& name, const Shape& a, const Shape& b, Dtype dtype = Dtype::f32) {
    all.push_back(on("matmul/" + name, {data(a, 1, dtype), data(b, 2, dtype)},
                     [](const Tensors& t) { return Tensors{matmul(t[0], t[1])}; }));
  };
  product("dot", {5}, {5});
  product("matrix-vector", {4, 5}, {5});
  product("vector-matrix", {5}, {5, 4});
  product("row", {1, 37}, {37, 65});
  product("column", {37, 19}, {19, 1});
  product("tall", {130, 7}, {7, 33});
  product("deep", {3, 700}, {700, 20});
  product("square", {64, 64}, {64, 64});
  product("batch", {3, 5, 7}, {3, 7, 6});
  product("broadcast", {2, 1, 5, 7}, {3, 7, 6});
  product("f64", {9, 17}, {17, 35}, Dtype::f64);
  product("empty", {3, 0}, {0, 4});
  product("shapes", {3, 4}, {5, 4});
  product("i64", {3, 4}, {4, 4}, Dtype::f32);
  all.push_back(on("matmul/transposed", {data({33, 20}), data({17, 33}, 2)},
                   [](const Tensors& t) { return Tensors{matmul(transpose(t[0]), transpose(t[1]))}; }));
  all.push_back(on("affine", {data({6, 20}), data({20, 35}, 2), data({35}, 3)}, [](const Tensors& t) {
    return Tensors{affine(t[0], t[1], t[2]), affine(t[0], t[1], {})};
  }));
}

void add_rest(std::vector<Case>& all) {
  all.push_back(values("operation/create", [] {
    return Tensors{full({2, 3}, 1.5), zeros({2}, Dtype::i32), ones({3}, Dtype::boolean),
                   arange(5),         arange(1, 2, 0.3),      linspace(0, 1, 7),
                   eye(3, 4)};
  }));
  all.push_back(values("operation/random", [] {
    const RandomKey key{3, 5, 7};
    return Tensors{uniform({33}, key, -1, 2),          uniform({7}, key, 0, 1, Dtype::f64), normal({33}, key),
                   normal({7}, key, 1, 2, Dtype::f64), bernoulli({99}, key, 0.3),           permutation(50, key)};
  }));
  all.push_back(on("one_hot", {below(6, {4, 3})}, [](const Tensors& t) {
    return Tensors{one_hot(t[0], 6), one_hot(t[0], 6, Dtype::f64)};
  }));
  all.push_back(on("one_hot/refused", {below(6, {40})}, [](const Tensors& t) { return Tensors{one_hot(t[0], 3)}; }));
  const Tensor i3 = data({3, 15}), i4 = data({3, 20}, 2), i1 = data({3, 5}, 3), h = data({3, 5}, 4),
               c = data({3, 5}, 5);
  all.push_back(on("gru_step", {i3, h, data({5, 15}, 6), data({15}, 7)},
                   [](const Tensors& t) { return Tensors{gru_step(t[0], t[1], t[2], t[3])}; }));
  all.push_back(on("gru_step_reset_before", {i3, h, data({5, 15}, 6), data({15}, 7)},
                   [](const Tensors& t) { return Tensors{gru_step_reset_before(t[0], t[1], t[2], t[3])}; }));
  all.push_back(on("lstm_step", {i4, h, c, data({5, 20}, 6), data({20}, 7)}, [](const Tensors& t) {
    const RecurrentState s = lstm_step(t[0], {t[1], t[2]}, t[3], t[4]);
    return Tensors{s.h, s.c};
  }));
  all.push_back(on("rnn_step", {i1, h, data({5, 5}, 6), data({5}, 7)}, [](const Tensors& t) {
    return Tensors{rnn_step(t[0], t[1], t[2], t[3]), rnn_step(t[0], t[1], t[2], t[3], true)};
  }));
  const Tensor one = full({}, 0.1);
  for (const bool decoupled : {false, true})
    all.push_back(on(std::string("adam_update/") + (decoupled ? "decoupled" : "added"),
                     {data({37}), data({37}, 2), data({37}, 3), square(data({37}, 4))}, [=](const Tensors& t) {
                       return nn::adam_update(t[0], t[1], t[2], t[3], one, one * 2, one * 3,
                                              {.weight_decay = 0.1, .decoupled = decoupled});
                     }));
}

}  // namespace

std::vector<Case> operation_cases() {
  std::vector<Case> all;
  add_unary(all);
  add_binary(all);
  add_reductions(all);
  add_views(all);
  add_products(all);
  add_rest(all);
  return all;
}

}  // namespace digests
