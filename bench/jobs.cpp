// The work that benchmarks time, by name: by this library and written by hand.
#include "jobs.h"

#include <cmath>
#include <iostream>
#include <span>
#include <stdexcept>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/denormals.h"
#include "limit/limit.h"
#include "machine.h"
#include "own_cells.h"
#include "timing.h"
#include "whole_nets.h"

using namespace ferrite;

namespace bench {
namespace {

std::int64_t gates_of(const std::string& kind) {
  if (is_own(kind)) return own_gates(kind);
  return kind == "gru" ? 3 : kind == "lstm" ? 4 : 1;
}

std::int64_t features_of(const Cell& c) { return c.kind == "mlp" ? 784 : c.kind == "vowels" ? 12 : c.H; }

std::unique_ptr<nn::GatedRecurrent> layer_of(const Cell& c, nn::Form form) {
  const nn::Init init{.seed = 1};
  if (c.kind == "gru" || c.kind == "vowels")
    return std::make_unique<nn::Gru>(features_of(c), c.H, nn::GruOptions{.form = form}, init);
  if (c.kind == "lstm") return std::make_unique<nn::Lstm>(c.H, c.H, nn::LstmOptions{.form = form}, init);
  if (c.kind == "rnn") return std::make_unique<nn::Rnn>(c.H, c.H, nn::RnnOptions{.form = form}, init);
  throw std::runtime_error("no such kind of layer: " + c.kind);
}

Tensor input_of(const Cell& c) {
  const std::int64_t D = features_of(c);
  return uniform(c.kind == "mlp" ? Shape{c.B, D} : Shape{c.B, c.T, D}, {1, 1, 1}, -1, 1);
}

std::vector<std::int64_t> targets_of(const Cell& c) {
  std::vector<std::int64_t> t;
  for (std::int64_t b = 0; b < c.B; ++b) t.push_back(b % limit::kClasses);
  return t;
}

/// A net, its data and its optimiser.
struct Network {
  Network(const Cell& c, nn::Form form) : head(c.H, limit::kClasses, {.seed = 2}), x(input_of(c)), last(c.T - 1) {
    const std::vector<std::int64_t> t = targets_of(c);
    targets = Tensor::from(std::span<const std::int64_t>(t), {c.B});
    if (c.kind == "mlp") {
      first = std::make_unique<nn::Linear>(features_of(c), c.H, nn::Init{.seed = 1});
    } else {
      layer = layer_of(c, form);
    }
    const nn::Module& below = layer ? static_cast<const nn::Module&>(*layer) : *first;
    parameters = below.parameters();
    for (const Parameter& p : head.parameters()) parameters.push_back(p);
    adam = std::make_unique<nn::Adam>(parameters);
  }
  Tensor loss(const Tensor& in, const Tensor& wanted) const {
    const Tensor h = layer ? ferrite::select(layer->forward(in, {}), 1, last) : relu(first->forward(in, {}));
    return nn::cross_entropy(head.forward(h, {}), wanted);
  }
  Tensor step(const Tensor& in, const Tensor& wanted) const {
    Tape tape;
    const Tensor l = loss(in, wanted);
    adam->step(tape.grad(l, parameters));
    return l;
  }
  std::unique_ptr<nn::GatedRecurrent> layer;  ///< null for mlp, which has `first`
  std::unique_ptr<nn::Linear> first;
  nn::Linear head;
  Tensor x, targets;
  std::int64_t last;
  std::vector<Parameter> parameters;
  std::unique_ptr<nn::Adam> adam;
};

limit::Weights weights_of(const Network& n) {
  limit::Weights w{.w_out = n.head.weight.peek().data<float>(), .b_out = n.head.bias.peek().data<float>()};
  if (n.first) {
    w.w_ih = n.first->weight.peek().data<float>();
    w.b_ih = n.first->bias.peek().data<float>();
    return w;
  }
  const nn::RecurrentWeights<Parameter>& layer = n.layer->weights();
  w.w_ih = layer.weight_ih.peek().data<float>();
  w.w_hh = layer.weight_hh.peek().data<float>();
  w.b_ih = layer.bias_ih.peek().data<float>();
  w.b_hh = layer.bias_hh.peek().data<float>();
  return w;
}

limit::Sizes sizes_of(const Cell& c) { return {features_of(c), c.H, c.T, c.B}; }

bool has_limit(const Cell& c) { return limit::available() && c.kind != "lstm" && c.kind != "rnn" && !is_own(c.kind); }
bool trains(const std::string& job) { return job == "train" || job == "compiled"; }

std::shared_ptr<limit::Training> limit_training(const Cell& c, const Network& n) {
  const auto make = c.kind == "mlp" ? limit::perceptron : limit::training;
  return make(sizes_of(c), weights_of(n), n.x.data<float>(), targets_of(c));
}

std::function<void()> limit_job(const std::string& name, const Cell& c) {
  if (!has_limit(c)) return {};
  const Network n(c, nn::Form::fused);
  if (trains(name)) {
    const std::shared_ptr<limit::Training> t = limit_training(c, n);
    return [t] { t->run(); };
  }
  const std::shared_ptr<limit::Forward> f = limit::forward(sizes_of(c), weights_of(n), n.x.data<float>());
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

/// The error max |a - b| / max(1e-3, max |b|) of elements read through functions.
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
  const std::shared_ptr<limit::Training> theirs = limit_training(c, n);
  theirs->run();
  Tape tape;
  const Tensor loss = n.loss(n.x, n.targets);
  const Tensors g = tape.grad(loss, n.parameters);
  if (std::fabs(loss.item<float>() - theirs->loss()) > 1e-5F) differ("the loss", c);
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (g[i].rank() != 2) continue;
    const Parameter& p = n.parameters[i];
    const auto compare = [&](auto element) {
      compare_matrix(contiguous(g[i]), element, "the gradient of " + p.name(), c);
    };
    if (p == n.head.weight) {
      compare([&](auto k, auto j) { return theirs->grad_out(k, j); });
    } else if (n.layer && p == n.layer->weights().weight_hh) {
      compare([&](auto k, auto j) { return theirs->grad_hh(k, j); });
    } else {
      compare([&](auto k, auto j) { return theirs->grad_ih(k, j); });
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
  if (is_own(c.kind)) return own_job(name, c);
  if (is_whole_net(c.kind)) return whole_net_job(name, c);
  if (name.starts_with("limit_")) return limit_job(name.substr(6), c);
  const bool unrolled = name.starts_with("unrolled_");
  const std::string what = unrolled ? name.substr(9) : name;
  if (what == "stream") return stream_job(c);
  if (what != "forward" && !trains(what)) throw std::runtime_error("no such job: " + name);
  const auto n = std::make_shared<Network>(c, unrolled ? nn::Form::unrolled : nn::Form::fused);
  if (what == "train") return [n] { keep(n->step(n->x, n->targets)); };
  if (what == "compiled") {
    const auto step = compile([n](const Tensor& x, const Tensor& y) { return n->step(x, y); });
    return [n, step] { keep(step(n->x, n->targets)); };
  }
  return [n] { keep(n->layer->forward(n->x, {})); };
}

void check_limit(const std::string& name, const Cell& cell) {
  if (!has_limit(cell)) return;
  if (trains(name)) return check_training(cell);
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
  const FlushDenormals guard;  // as XLA does, and torch on request
  std::cout.precision(9);
  std::string name, last;
  Cell c;
  double seconds = 0;
  std::function<void()> run;
  while (std::cin >> name >> c.kind >> c.H >> c.T >> c.B >> seconds) {
    const std::string key =
        name + " " + c.kind + " " + std::to_string(c.H) + " " + std::to_string(c.T) + " " + std::to_string(c.B);
    if (key != last) run = nullptr;  // frees its memory before the next job is made
    if (key != last && !name.starts_with("check_")) run = job(name, c);
    last = key;
    if (name.starts_with("check_")) {
      for (const float v : own_values(name.substr(6), c)) std::cout << v << ' ';
      std::cout << std::endl;
    } else if (run) {
      std::cout << 1e6 * interleaved_for({run}, seconds)[0] << std::endl;
    } else {
      std::cout << "none" << std::endl;
    }
  }
}

}  // namespace bench
