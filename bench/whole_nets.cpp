// Nets of the builder's words, by name.
#include "whole_nets.h"

#include <stdexcept>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "timing.h"

using namespace ferrite;

namespace bench {
namespace {

constexpr std::int64_t kClasses = 10;

dsl::Network net_of(const Cell& c) {
  if (c.kind == "cnn") {
    const nn::ConvOptions same{.padding = {1}};
    return dsl::image(1, 28, 28)
        .conv2d(c.H, {3}, same)
        .relu()
        .max_pool2d({2})
        .conv2d(2 * c.H, {3}, same)
        .relu()
        .max_pool2d({2})
        .flatten()
        .linear(kClasses)
        .build(1);
  }
  const nn::TransformerLayerOptions options{.dim_feedforward = 4 * c.H, .dropout = 0};
  return dsl::sequence(c.H).transformer(4, options).transformer(4, options).last_step().linear(kClasses).build(1);
}

struct Trained {
  explicit Trained(const Cell& c)
      : net(net_of(c)),
        adam(net.parameters()),
        x(uniform(c.kind == "cnn" ? Shape{c.B, 1, 28, 28} : Shape{c.B, c.T, c.H}, {1, 1, 1}, -1, 1)) {
    std::vector<std::int64_t> classes;
    for (std::int64_t b = 0; b < c.B; ++b) classes.push_back(b % kClasses);
    targets = Tensor::from(classes, {c.B});
  }
  Tensor step(const Tensor& in, const Tensor& wanted) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(in), wanted);
    adam.step(tape.grad(loss, net.parameters()));
    return loss;
  }
  dsl::Network net;
  nn::Adam adam;
  Tensor x, targets;
};

}  // namespace

bool is_whole_net(const std::string& kind) { return kind == "cnn" || kind == "transformer"; }

std::function<void()> whole_net_job(const std::string& name, const Cell& c) {
  if (name.starts_with("limit_")) return {};
  const auto n = std::make_shared<Trained>(c);
  if (name == "train") return [n] { keep(n->step(n->x, n->targets)); };
  if (name != "compiled") throw std::runtime_error("no such job of a whole net: " + name);
  const auto step = compile([n](const Tensor& x, const Tensor& y) { return n->step(x, y); });
  return [n, step] { keep(step(n->x, n->targets)); };
}

}  // namespace bench
