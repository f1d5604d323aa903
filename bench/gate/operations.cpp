// Cells of scripts/bench-gate: single operations on few and on many elements, with and without a tape, products,
// optimisers and random draws.
#include <memory>

#include "cells.h"
#include "ferrite/ferrite.h"

using namespace ferrite;

namespace gate {
namespace {

constexpr int kChain = 100;

using Op = std::function<Tensor(const Tensor&)>;

Tensor data(const Shape& shape, std::uint64_t stream = 1) { return uniform(shape, {1, stream, 1}, 0.5, 1.5); }

/// Returns a cell that computes one operation.
Cell eager(const std::string& name, const Shape& shape, const Op& op, int calls = 1) {
  return {"eager/" + name, [=]() -> Run {
            const Tensor x = data(shape);
            return [=] {
              for (int i = 0; i < calls; ++i) bench::keep(op(x));
            };
          }};
}

/// Returns a cell that records a chain of an operation on few elements and differentiates it.
Cell recorded(const std::string& name, const Op& op) {
  return {"tape/" + name, [=]() -> Run {
            const Tensor start = data({4, 4});
            return [=] {
              Tape tape;
              const Tensor x = tape.watch(start);
              Tensor y = x;
              for (int i = 0; i < kChain; ++i) y = op(y);
              bench::keep(tape.grad(sum(y), {x}));
            };
          }};
}

/// Returns a cell of one operation on many elements and its gradient.
Cell gradient(const std::string& name, const Shape& shape, const Op& op) {
  return {"gradient/" + name, [=]() -> Run {
            const Tensor start = data(shape);
            const Tensor cotangent = ones(op(start).shape());
            return [=] {
              Tape tape;
              const Tensor x = tape.watch(start);
              const Tensor y = op(x);
              bench::keep(tape.grad(y, {x}, {}, cotangent));
            };
          }};
}

Cell product(const std::string& name, const Shape& a, const Shape& b, bool transposed = false) {
  return {"product/" + name, [=]() -> Run {
            const Tensor x = data(a), w = transposed ? transpose(data(b, 2)) : data(b, 2);
            return [=] { bench::keep(matmul(x, w)); };
          }};
}

template <class Optimizer>
Cell optimizer(const std::string& name, std::int64_t parameters, std::int64_t elements) {
  return {"optimizer/" + name, [=]() -> Run {
            std::vector<Parameter> list;
            Tensors grads;
            for (std::int64_t i = 0; i < parameters; ++i) {
              list.emplace_back("w" + std::to_string(i), data({elements}));
              grads.push_back(data({elements}, 3));
            }
            const auto own = std::make_shared<Optimizer>(list);
            return [=] { own->step(grads); };
          }};
}

Cell dropout() {
  return {"eager/dropout", []() -> Run {
            const auto layer = std::make_shared<nn::Dropout>(0.3, nn::Init{.seed = 1, .prefix = "dropout"});
            const Tensor x = data({256, 256});
            return [=] { bench::keep(layer->forward(x, {})); };
          }};
}

Cell lookup() {
  return {"eager/embedding", []() -> Run {
            const auto table = std::make_shared<nn::Embedding>(1000, 64, nn::Init{.seed = 1, .prefix = "table"});
            std::vector<std::int64_t> t(4096);
            for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<std::int64_t>(i * 7 % 1000);
            const Tensor tokens = Tensor::from(std::span<const std::int64_t>(t), {4096});
            return [=] { bench::keep(table->forward(tokens, {})); };
          }};
}

/// Convolves x [B, C, T] in `groups` of channels, without padding.
Tensor convolved(const Tensor& x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                 std::int64_t groups) {
  return conv1d(x, data({channels, x.shape()[1] / groups, kernel}, 4), {}, {.stride = {stride}, .groups = groups});
}

/// Returns a cell of attention, with equal queries, keys and values [heads, steps, features].
Cell attention(const std::string& name, const Shape& shape, bool causal) {
  return {"attention/" + name, [=]() -> Run {
            const Tensor x = data(shape);
            return [=] { bench::keep(scaled_dot_product_attention(x, x, x, {.causal = causal})); };
          }};
}

Tensor mixed(const Tensor& x) { return relu(exp2(x) - sin(x)) + 1.5 / x; }

/// Returns a cell of a compiled chain of elementwise functions.
Cell chain(const std::string& name, std::int64_t n, const Op& op) {
  return {"chain/" + name, [=]() -> Run {
            const Tensor x = data({n});
            const auto f = compile(op);
            return [=] { bench::keep(f(x)); };
          }};
}

}  // namespace

std::vector<Cell> operation_cells() {
  const Tensor small = data({4, 4}, 2), row = data({512}, 2);
  return {
      eager(
          "add-small", {4}, [b = data({4}, 2)](const Tensor& x) { return x + b; }, kChain),
      eager(
          "literal-small", {4}, [](const Tensor& x) { return x * 0.5; }, kChain),
      eager(
          "sigmoid-small", {4}, [](const Tensor& x) { return sigmoid(x); }, kChain),
      eager(
          "slice-small", {4}, [](const Tensor& x) { return slice(x, 0, 1, 3); }, kChain),
      eager(
          "matmul-small", {4, 4}, [small](const Tensor& x) { return matmul(x, small); }, kChain),
      eager("add-row", {256, 512}, [row](const Tensor& x) { return x + row; }),
      eager("tanh", {256, 512}, [](const Tensor& x) { return tanh(x); }),
      eager("sum-last", {256, 512}, [](const Tensor& x) { return sum(x, {1}); }),
      eager("sum-first", {256, 512}, [](const Tensor& x) { return sum(x, {0}); }),
      eager("transposed-copy", {256, 512}, [](const Tensor& x) { return contiguous(transpose(x)); }),
      eager("softmax", {64, 1000}, [](const Tensor& x) { return softmax(x); }),
      eager("layer-norm", {64, 512}, [](const Tensor& x) { return layer_norm(x); }),
      eager("normal", {1},
            [](const Tensor&) {
              return normal({10000}, {1, 2, 3});
            }),
      dropout(),
      lookup(),
      recorded("mul", [small](const Tensor& x) { return x * small; }),
      recorded("tanh", [](const Tensor& x) { return tanh(x); }),
      recorded("matmul", [small](const Tensor& x) { return 0.2 * matmul(x, small); }),
      gradient("softmax", {64, 1000}, [](const Tensor& x) { return softmax(x); }),
      gradient("layer-norm", {64, 512}, [](const Tensor& x) { return layer_norm(x); }),
      eager("conv-strided", {4, 16, 1024}, [](const Tensor& x) { return convolved(x, 16, 16, 4, 1); }),
      eager("conv-depthwise", {4, 128, 256}, [](const Tensor& x) { return convolved(x, 128, 3, 1, 128); }),
      gradient("conv-16", {4, 16, 1024}, [](const Tensor& x) { return convolved(x, 16, 3, 1, 1); }),
      attention("4-512-32", {4, 512, 32}, false),
      attention("8-128-64-causal", {8, 128, 64}, true),
      chain("mixed-1000", 1000, mixed),
      chain("mixed-1000000", 1000000, mixed),
      chain("gelu-1000000", 1000000, [](const Tensor& x) { return gelu(x, GeluForm::tanh); }),
      product("1-16-16", {1, 16}, {16, 16}),
      product("2-128-128", {2, 128}, {128, 128}),
      product("2-512-512-transposed", {2, 512}, {512, 512}, true),
      product("1-256-256", {1, 256}, {256, 256}),
      product("32-256-256", {32, 256}, {256, 256}),
      product("256-256-256", {256, 256}, {256, 256}),
      product("64-512-64-transposed", {64, 512}, {64, 512}, true),
      product("16-by-32-32-32", {16, 32, 32}, {16, 32, 32}),
      optimizer<nn::Adam>("adam-1-100000", 1, 100000),
      optimizer<nn::Adam>("adam-40-16", 40, 16),
      optimizer<nn::Sgd>("sgd-4-10000", 4, 10000),
  };
}

}  // namespace gate
