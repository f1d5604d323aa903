#include "recurrent_jobs.h"

#include <cmath>
#include <iostream>
#include <span>
#include <stdexcept>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/gru.h"
#include "ferrite/nn/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/lstm.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/rnn.h"
#include "ferrite/nn/stream.h"
#include "limit/limit.h"
#include "machine.h"
#include "timing.h"

using namespace ferrite;

namespace bench {
namespace {

std::int64_t gates_of(const std::string& kind) { return kind == "gru" ? 3 : kind == "lstm" ? 4 : 1; }

std::unique_ptr<nn::Recurrent> layer_of(const Cell& c, nn::Form form) {
  const nn::Init init{.seed = 1};
  if (c.kind == "gru") return std::make_unique<nn::Gru>(c.H, c.H, nn::GruOptions{.form = form}, init);
  if (c.kind == "lstm") return std::make_unique<nn::Lstm>(c.H, c.H, nn::LstmOptions{.form = form}, init);
  if (c.kind == "rnn") return std::make_unique<nn::Rnn>(c.H, c.H, nn::RnnOptions{.form = form}, init);
  throw std::runtime_error("no such kind of layer: " + c.kind);
}

Tensor input_of(const Cell& c) { return uniform({c.B, c.T, c.H}, {1, 1, 1}, -1, 1); }

std::vector<std::int64_t> targets_of(const Cell& c) {
  std::vector<std::int64_t> t;
  for (std::int64_t b = 0; b < c.B; ++b) t.push_back(b % limit::kClasses);
  return t;
}

/// A model, its data and its optimiser.
struct Network {
  Network(const Cell& c, nn::Form form)
      : layer(layer_of(c, form)), head(c.H, limit::kClasses, {.seed = 2}), x(input_of(c)), last(c.T - 1) {
    const std::vector<std::int64_t> t = targets_of(c);
    targets = Tensor::from(std::span<const std::int64_t>(t), {c.B});
    parameters = layer->parameters();
    for (const Parameter& p : head.parameters()) parameters.push_back(p);
    adam = std::make_unique<nn::Adam>(parameters);
  }
  Tensor loss() const {
    const Tensor y = layer->forward(x, {});
    return nn::cross_entropy(head.forward(ferrite::select(y, 1, last), {}), targets);
  }
  void step() const {
    Tape tape;
    adam->step(tape.grad(loss(), parameters));
  }
  std::unique_ptr<nn::Recurrent> layer;
  nn::Linear head;
  Tensor x, targets;
  std::int64_t last;
  std::vector<Parameter> parameters;
  std::unique_ptr<nn::Adam> adam;
};

limit::Weights weights_of(const Network& n) {
  const nn::RecurrentWeights& w = n.layer->weights();
  return {.w_ih = w.weight_ih.peek().data<float>(),
          .w_hh = w.weight_hh.peek().data<float>(),
          .b_ih = w.bias_ih.peek().data<float>(),
          .b_hh = w.bias_hh.peek().data<float>(),
          .w_out = n.head.weight.peek().data<float>(),
          .b_out = n.head.bias.peek().data<float>()};
}

limit::Sizes sizes_of(const Cell& c) { return {c.H, c.H, c.T, c.B}; }

std::function<void()> limit_job(const std::string& name, const Cell& c) {
  if (!limit::available() || c.kind != "gru") return {};
  const Network n(c, nn::Form::fused);
  const float* x = n.x.data<float>();
  if (name == "train") {
    const std::shared_ptr<limit::Training> t = limit::training(sizes_of(c), weights_of(n), x, targets_of(c));
    return [t] { t->run(); };
  }
  const std::shared_ptr<limit::Forward> f = limit::forward(sizes_of(c), weights_of(n), x);
  return [f] { f->run(); };
}

std::function<void()> stream_job(const Cell& c) {
  const auto layer = layer_of(c, nn::Form::fused);
  const auto stream = std::make_shared<nn::Stream>(*layer, c.B);
  const auto x = std::make_shared<std::vector<float>>(static_cast<std::size_t>(c.B * c.H), 0.25F);
  const auto y = std::make_shared<std::vector<float>>(x->size());
  return [=] { stream->step(*x, *y); };
}

void differ(const std::string& what, const Cell& c) {
  throw std::runtime_error("the yardstick differs from the library in " + what + " at H = " + std::to_string(c.H) +
                           ", T = " + std::to_string(c.T) + ", B = " + std::to_string(c.B));
}

/// err = max |a - b| / max(1e-3, max |b|), of elements read through functions.
class Gap {
 public:
  void add(double a, double b) {
    worst_ = std::max(worst_, std::fabs(a - b));
    scale_ = std::max(scale_, std::fabs(b));
    if (std::isnan(a - b)) worst_ = INFINITY;
  }
  bool small() const { return worst_ <= 2e-4 * scale_; }

 private:
  double worst_ = 0;
  double scale_ = 1e-3;
};

template <class F>
void compare_matrix(const Tensor& wanted, F&& element, const std::string& what, const Cell& c) {
  Gap gap;
  const std::span<const float> v = wanted.values<float>();
  const std::int64_t columns = wanted.shape()[1];
  for (std::int64_t i = 0; i < wanted.numel(); ++i)
    gap.add(element(i / columns, i % columns), static_cast<double>(v[static_cast<std::size_t>(i)]));
  if (!gap.small()) differ(what, c);
}

void check_training(const Cell& c) {
  const Network n(c, nn::Form::fused);
  const auto theirs = limit::training(sizes_of(c), weights_of(n), n.x.data<float>(), targets_of(c));
  theirs->run();
  Tape tape;
  const Tensor loss = n.loss();
  const Tensors g = tape.grad(loss, n.parameters);
  if (std::fabs(loss.item<float>() - theirs->loss()) > 1e-5F) differ("the loss", c);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const std::string& name = n.parameters[i].name();
    const auto compare = [&](auto element) { compare_matrix(contiguous(g[i]), element, "the gradient of " + name, c); };
    if (name.find("weight_ih") != std::string::npos) {
      compare([&](auto k, auto j) { return theirs->grad_ih(k, j); });
    } else if (name.find("weight_hh") != std::string::npos) {
      compare([&](auto k, auto j) { return theirs->grad_hh(k, j); });
    } else if (name.find("weight") != std::string::npos) {
      compare([&](auto k, auto j) { return theirs->grad_out(k, j); });
    }
  }
}

void check_forward(const Cell& c) {
  const Network n(c, nn::Form::fused);
  const auto theirs = limit::forward(sizes_of(c), weights_of(n), n.x.data<float>());
  theirs->run();
  const Tensor y = contiguous(ferrite::select(n.layer->forward(n.x, {}), 1, c.T - 1));
  compare_matrix(
      y, [&](auto b, auto j) { return theirs->output(c.T - 1, b, j); }, "the outputs", c);
}

}  // namespace

std::function<void()> job(const std::string& name, const Cell& c) {
  if (name.starts_with("limit_")) return limit_job(name.substr(6), c);
  const bool unrolled = name.starts_with("unrolled_");
  const std::string what = unrolled ? name.substr(9) : name;
  if (what == "stream") return stream_job(c);
  if (what != "forward" && what != "train") throw std::runtime_error("no such job: " + name);
  const auto n = std::make_shared<Network>(c, unrolled ? nn::Form::unrolled : nn::Form::fused);
  if (what == "train") return [n] { n->step(); };
  return [n] { keep(n->layer->forward(n->x, {})); };
}

void check_limit(const std::string& name, const Cell& cell) {
  if (!limit::available() || cell.kind != "gru") return;
  if (name == "train") return check_training(cell);
  check_forward(cell);
}

Bounds::Bounds() : peak_(peak_flops()) {}

double Bounds::bandwidth(double bytes) {
  for (const auto& [size, rate] : bandwidths_)
    if (size == bytes) return rate;
  return bandwidths_.emplace_back(bytes, read_bandwidth(static_cast<std::size_t>(bytes))).second;
}

double Bounds::seconds(const std::string& name, const Cell& c) {
  const auto H = static_cast<double>(c.H), T = static_cast<double>(c.T), B = static_cast<double>(c.B);
  const double matrix = static_cast<double>(gates_of(c.kind)) * H * H;  // W_hh; W_ih is as large
  const double forward = 2 * 2 * matrix * T * B;
  if (name != "train") return std::max(forward / peak_, 4 * (T + 1) * matrix / bandwidth(4 * matrix));
  const double backward = forward + 2 * matrix * (T - 1) * B;  // dW_ih, dW_hh, and dh of all steps but the first
  const double parameters = 2 * matrix;
  const double adam = 7 * 4 * parameters / bandwidth(4 * 4 * parameters);
  const double weights = 4 * (2 * T + 1) * matrix / bandwidth(4 * matrix);
  return std::max((forward + backward) / peak_, weights) + adam;
}

void serve() {
  std::string name, last;
  Cell c;
  double seconds = 0;
  std::function<void()> run;
  while (std::cin >> name >> c.kind >> c.H >> c.T >> c.B >> seconds) {
    const std::string key =
        name + " " + c.kind + " " + std::to_string(c.H) + " " + std::to_string(c.T) + " " + std::to_string(c.B);
    if (key != last) run = nullptr;  // frees the memory before the next is made
    if (key != last) run = job(name, c);
    last = key;
    if (run) {
      std::cout << 1e6 * interleaved_for({run}, seconds)[0] << std::endl;
    } else {
      std::cout << "none" << std::endl;
    }
  }
}

}  // namespace bench
