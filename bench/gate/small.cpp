// Cells of scripts/bench-gate so small that only the overhead around the arithmetic can be measured: one call each, to
// be judged by instructions, because time is noise here.
#include <memory>

#include "cells.h"
#include "ferrite/ferrite.h"

using namespace ferrite;

namespace gate {
namespace {

constexpr std::int64_t kUnits = 8;

using Op = std::function<Tensor(const Tensor&)>;

Tensor data(const Shape& shape, std::uint64_t stream = 1) { return uniform(shape, {1, stream, 1}, 0.5, 1.5); }
nn::Init init() { return {.seed = 1, .prefix = "layer"}; }

Cell operation(const std::string& name, const Shape& shape, const Op& op) {
  return {"small/" + name, [=]() -> Run {
            const Tensor x = data(shape);
            return [=] { bench::keep(op(x)); };
          }};
}

/// Returns a cell of an operation as a compiled function.
Cell compiled(const std::string& name, const Shape& shape, const Op& op) {
  return {"small/compiled-" + name, [=]() -> Run {
            const Tensor x = data(shape);
            const auto f = compile(op);
            return [=] { bench::keep(f(x)); };
          }};
}

Cell forward(const std::string& name, const Shape& shape, const std::function<std::shared_ptr<nn::Layer>()>& make) {
  return {"small/" + name, [=]() -> Run {
            const auto layer = make();
            const Tensor x = data(shape);
            return [=] { bench::keep((*layer)(x)); };
          }};
}

/// Returns a cell of a training step, eager or compiled: loss, gradients and Adam.
Cell training(const std::string& name, bool compiles, const Shape& shape,
              const std::function<std::shared_ptr<nn::Layer>()>& make) {
  return {"small/" + name, [=]() -> Run {
            const auto layer = make();
            const auto adam = std::make_shared<nn::Adam>(layer->parameters());
            const Tensor x = data(shape);
            const auto step = [=](const Tensor& in) {
              Tape tape;
              const Tensor loss = mean(square((*layer)(in)));
              adam->step(tape.grad(loss, adam->parameters()));
              return loss;
            };
            if (!compiles) return [=] { bench::keep(step(x)); };
            const auto fast = compile(step);
            return [=] { bench::keep(fast(x)); };
          }};
}

Cell stream(const std::string& name, const std::function<std::shared_ptr<nn::Layer>()>& make) {
  return {"small/stream-" + name, [=]() -> Run {
            const auto own = std::make_shared<nn::Stream>(make()->stream(1));
            const auto x = std::make_shared<std::vector<float>>(kUnits, 0.25F);
            const auto y = std::make_shared<std::vector<float>>(kUnits);
            return [=] { own->step(std::span<const float>(*x), std::span<float>(*y)); };
          }};
}

template <class L>
std::function<std::shared_ptr<nn::Layer>()> layer() {
  return [] { return std::make_shared<L>(kUnits, kUnits, init()); };
}

Cell gradient() {
  return {"small/gradient", []() -> Run {
            const Tensor start = data({4});
            return [=] {
              Tape tape;
              const Tensor x = tape.watch(start);
              bench::keep(tape.grad(sum(tanh(x * x)), {x}));
            };
          }};
}

}  // namespace

std::vector<Cell> small_cells() {
  const Tensor w = data({4, 4}, 2), row = data({4}, 3);
  const Tensor index = Tensor::from<std::int64_t>({2, 0});
  return {
      operation("add", {4, 4}, [row](const Tensor& x) { return x + row; }),
      operation("literal", {4}, [](const Tensor& x) { return 2 * x; }),
      operation("tanh", {4}, [](const Tensor& x) { return tanh(x); }),
      operation("where", {4}, [](const Tensor& x) { return where(x < 1, x, 0); }),
      operation("cast", {4}, [](const Tensor& x) { return cast(x, Dtype::f64); }),
      operation("sum", {4, 4}, [](const Tensor& x) { return sum(x, {1}); }),
      operation("softmax", {4, 4}, [](const Tensor& x) { return softmax(x); }),
      operation("layer-norm", {4, 4}, [](const Tensor& x) { return layer_norm(x); }),
      operation("slice", {4, 4}, [](const Tensor& x) { return slice(x, 1, 1, 3); }),
      operation("reshape", {4, 4},
                [](const Tensor& x) {
                  return reshape(x, {2, -1});
                }),
      operation("transposed-copy", {4, 4}, [](const Tensor& x) { return contiguous(transpose(x)); }),
      operation("concat", {4, 4},
                [](const Tensor& x) {
                  return concat({x, x}, 1);
                }),
      operation("rows", {4, 4}, [index](const Tensor& x) { return index_select(x, 0, index); }),
      operation("product", {4, 4}, [w](const Tensor& x) { return matmul(x, w); }),
      gradient(),
      compiled("chain", {4}, [](const Tensor& x) { return sigmoid(tanh(x * 2) + 1); }),
      compiled("product", {4, 4}, [w, row](const Tensor& x) { return relu(matmul(x, w) + row); }),
      forward("linear", {1, kUnits}, layer<nn::Linear>()),
      forward("gru", {1, 1, kUnits}, layer<nn::Gru>()),
      forward("lstm", {1, 1, kUnits}, layer<nn::Lstm>()),
      forward("rnn", {1, 1, kUnits}, layer<nn::Rnn>()),
      forward("gru-scan", {1, 4, kUnits},
              [] { return std::make_shared<nn::Gru>(kUnits, kUnits, nn::GruOptions{.form = nn::Form::scan}, init()); }),
      training("train-linear", false, {1, kUnits}, layer<nn::Linear>()),
      training("train-gru", false, {1, 4, kUnits}, layer<nn::Gru>()),
      training("compiled-train-linear", true, {1, kUnits}, layer<nn::Linear>()),
      training("compiled-train-gru", true, {1, 4, kUnits}, layer<nn::Gru>()),
      stream("linear", layer<nn::Linear>()),
      stream("gru", layer<nn::Gru>()),
      stream("lstm", layer<nn::Lstm>()),
  };
}

}  // namespace gate
