// oneDNN's recurrent layers (the GRU with linear-before-reset, as in PyTorch), one thread: prints its version, then
// answers lines "job kind H T B seconds" with microseconds. `forward` is one layer whose weights are brought into the
// library's own order once. `train` is a training step of layer -> last step -> linear(10) -> cross-entropy with Adam:
// the layer is oneDNN's, forward and backward, its weights are brought into both orders in each step, because they have
// changed; the rest, which it lacks, is written by hand (bench/limit/adam.h). `layers` is the layer's two passes alone.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "limit/adam.h"
#include "timing.h"

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Arguments = std::unordered_map<int, memory>;

struct Sizes {
  memory::dim H = 1, T = 1, B = 1, gates = 3, biases = 4;
};

/// Descriptors of one layer: in time-major order where the caller chooses, in any order where the library may.
struct Layout {
  explicit Layout(const Sizes& s)
      : data({s.T, s.B, s.H}, memory::data_type::f32, Tag::tnc),
        weights({1, 1, s.H, s.gates, s.H}, memory::data_type::f32, Tag::any),
        bias({1, 1, s.biases, s.H}, memory::data_type::f32, Tag::ldgo),
        plain({1, 1, s.H, s.gates, s.H}, memory::data_type::f32, Tag::ldigo) {}
  memory::desc data, weights, bias, plain, none;
};

constexpr auto kDirection = dnnl::rnn_direction::unidirectional_left2right;

template <class Forward, class... First>
typename Forward::primitive_desc forward_of(dnnl::prop_kind kind, const Layout& l, const dnnl::engine& e, bool lstm,
                                            First... first) {
  if constexpr (std::is_same_v<Forward, dnnl::lstm_forward>) {
    (void)lstm;
    return {e, kind, kDirection, l.data, l.none, l.none, l.weights, l.weights, l.bias, l.data, l.none, l.none};
  } else {
    return {e, kind, first..., kDirection, l.data, l.none, l.weights, l.weights, l.bias, l.data, l.none};
  }
}

template <class Backward, class Hint, class... First>
typename Backward::primitive_desc backward_of(const Layout& l, const dnnl::engine& e, const Hint& hint,
                                              First... first) {
  const auto kind = dnnl::prop_kind::backward;
  if constexpr (std::is_same_v<Backward, dnnl::lstm_backward>) {
    return {e,      kind,   kDirection, l.data, l.none,    l.none,    l.weights, l.weights, l.bias, l.data, l.none,
            l.none, l.data, l.none,     l.none, l.weights, l.weights, l.bias,    l.data,    l.none, l.none, hint};
  } else {
    return {e,      kind,   first..., kDirection, l.data,    l.none, l.weights, l.weights, l.bias, l.data,
            l.none, l.data, l.none,   l.weights,  l.weights, l.bias, l.data,    l.none,    hint};
  }
}

/// Returns memory of whole vectors, as Adam by hand reads and writes it.
memory in_vectors(const memory::desc& d, const dnnl::engine& e) {
  static std::vector<std::unique_ptr<limit::Buffer>> all;  // they live as long as the program
  all.push_back(std::make_unique<limit::Buffer>(static_cast<limit::Index>(d.get_size() / sizeof(float))));
  return {d, e, static_cast<float*>(*all.back())};
}

memory filled(const memory::desc& d, const dnnl::engine& e, float scale) {
  memory m = in_vectors(d, e);
  auto* p = static_cast<float*>(m.get_data_handle());
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < d.get_size() / sizeof(float); ++i) {
    state = state * 1664525U + 1013904223U;
    p[i] = scale * (static_cast<float>(state >> 8U) * 0x1p-23F - 1.0F);
  }
  return m;
}

/// Returns a parameter of a training step: its memory and Adam's.
limit::Trained trained(memory& m) {
  return limit::Trained(static_cast<float*>(m.get_data_handle()),
                        static_cast<limit::Index>(m.get_desc().get_size() / 4));
}

/// linear(10) -> mean cross-entropy of h [B, H], by hand: the gradients of its parameters, and dh.
class Head {
 public:
  static constexpr std::size_t kClasses = 10;
  Head(std::size_t H, std::size_t B)
      : H_(H),
        B_(B),
        weight_(limit::padded(H * kClasses, 16)),
        bias_(16),
        w_(weight_, H * kClasses),
        b_(bias_, 16),
        p_(B * kClasses) {
    for (std::size_t i = 0; i < H * kClasses; ++i) weight_[i] = 0.01F * static_cast<float>(i % 7);
  }
  void run(const float* h, float* dh) {
    std::fill_n(static_cast<float*>(w_.grad), H_ * kClasses, 0.0F);
    std::fill_n(static_cast<float*>(b_.grad), kClasses, 0.0F);
    for (std::size_t b = 0; b < B_; ++b) {
      float* const p = &p_[b * kClasses];
      std::copy_n(static_cast<float*>(bias_), kClasses, p);
      for (std::size_t k = 0; k < H_; ++k)
        for (std::size_t j = 0; j < kClasses; ++j) p[j] += h[b * H_ + k] * weight_[k * kClasses + j];
      const float most = *std::max_element(p, p + kClasses);
      float sum = 0;
      for (std::size_t j = 0; j < kClasses; ++j) sum += p[j] = std::exp(p[j] - most);
      for (std::size_t j = 0; j < kClasses; ++j)
        p[j] = (p[j] / sum - (j == b % kClasses ? 1.0F : 0.0F)) / static_cast<float>(B_);
      for (std::size_t k = 0; k < H_; ++k) {
        float d = 0;
        for (std::size_t j = 0; j < kClasses; ++j) {
          d += p[j] * weight_[k * kClasses + j];
          w_.grad[k * kClasses + j] += h[b * H_ + k] * p[j];
        }
        dh[b * H_ + k] = d;
      }
      for (std::size_t j = 0; j < kClasses; ++j) b_.grad[j] += p[j];
    }
  }
  void update(int steps) { w_.update(steps), b_.update(steps); }

 private:
  std::size_t H_, B_;
  limit::Buffer weight_, bias_;
  limit::Trained w_, b_;
  std::vector<float> p_;
};

/// A layer ready to run.
template <class Forward, class Backward, class... First>
class Job {
 public:
  Job(const Sizes& s, const std::string& name, First... first) : sizes_(s), layout_(s), trains_(name == "train") {
    const bool back = name != "forward";
    const auto kind = back ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const auto pd = forward_of<Forward>(kind, layout_, engine_, false, first...);
    forward_ = Forward(pd);
    const float scale = 1.0F / std::sqrt(static_cast<float>(s.H));
    plain_layer_ = filled(layout_.plain, engine_, scale);
    plain_iter_ = filled(layout_.plain, engine_, -scale);
    x_ = filled(layout_.data, engine_, 1), y_ = memory(layout_.data, engine_),
    bias_ = filled(layout_.bias, engine_, scale);
    const Arguments given = {{DNNL_ARG_SRC_LAYER, x_}, {DNNL_ARG_DST_LAYER, y_}, {DNNL_ARG_BIAS, bias_}};
    in_order_ = given;
    if (back) in_order_[DNNL_ARG_WORKSPACE] = memory(pd.workspace_desc(), engine_);
    place(in_order_, DNNL_ARG_WEIGHTS_LAYER, plain_layer_, pd.weights_layer_desc());
    place(in_order_, DNNL_ARG_WEIGHTS_ITER, plain_iter_, pd.weights_iter_desc());
    if (!back) return;
    const auto backward = backward_of<Backward>(layout_, engine_, pd, first...);
    backward_ = Backward(backward);
    back_ = in_order_;
    place(back_, DNNL_ARG_WEIGHTS_LAYER, plain_layer_, backward.weights_layer_desc());
    place(back_, DNNL_ARG_WEIGHTS_ITER, plain_iter_, backward.weights_iter_desc());
    dy_ = filled(layout_.data, engine_, trains_ ? 0.0F : 1.0F);
    back_[DNNL_ARG_DIFF_DST_LAYER] = dy_;
    back_[DNNL_ARG_DIFF_SRC_LAYER] = memory(layout_.data, engine_);
    back_[DNNL_ARG_DIFF_WEIGHTS_LAYER] = memory(backward.diff_weights_layer_desc(), engine_);
    back_[DNNL_ARG_DIFF_WEIGHTS_ITER] = memory(backward.diff_weights_iter_desc(), engine_);
    back_[DNNL_ARG_DIFF_BIAS] = in_vectors(layout_.bias, engine_);
    if (!trains_) return;
    gradients_ = {in_vectors(layout_.plain, engine_), in_vectors(layout_.plain, engine_), back_[DNNL_ARG_DIFF_BIAS]};
    for (const int k : {0, 1}) {
      const memory& own = back_[k == 0 ? DNNL_ARG_DIFF_WEIGHTS_LAYER : DNNL_ARG_DIFF_WEIGHTS_ITER];
      back_orders_.push_back(
          {dnnl::reorder(own, gradients_[static_cast<std::size_t>(k)]), own, gradients_[static_cast<std::size_t>(k)]});
    }
    head_.emplace(static_cast<std::size_t>(s.H), static_cast<std::size_t>(s.B));
    for (memory* const m : {&plain_layer_, &plain_iter_, &bias_}) parameters_.push_back(trained(*m));
  }

  void run() {
    if (trains_) again(in_order_);
    forward_.execute(stream_, in_order_);
    if (trains_) {
      stream_.wait();
      const auto last = static_cast<std::size_t>((sizes_.T - 1) * sizes_.B * sizes_.H);
      head_->run(static_cast<float*>(y_.get_data_handle()) + last, static_cast<float*>(dy_.get_data_handle()) + last);
      again(back_);
    }
    if (backward_) backward_.execute(stream_, back_);
    stream_.wait();
    if (trains_) update();
  }

 private:
  void place(Arguments& arguments, int what, memory& from, const memory::desc& order) {
    arguments[what] = memory(order, engine_);
    reorders_[what].push_back({dnnl::reorder(from, arguments[what]), from, arguments[what]});
    auto& r = reorders_[what].back();
    r.run.execute(stream_, r.from, r.to);
    stream_.wait();
  }
  /// Brings the weights into the order of a pass again.
  void again(const Arguments& pass) {
    for (auto& [what, all] : reorders_)
      for (auto& r : all)
        if (r.to.get() == pass.at(what).get()) r.run.execute(stream_, r.from, r.to);
  }
  void update() {
    ++steps_;
    for (auto& r : back_orders_) r.run.execute(stream_, r.from, r.to);
    stream_.wait();
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      limit::Trained& p = parameters_[k];
      const auto* const grad = static_cast<const float*>(gradients_[k].get_data_handle());
      limit::Adam().update(p.p, grad, p.mean, p.square, p.n, steps_);
    }
    head_->update(steps_);
  }

  struct Reorder {
    dnnl::reorder run;
    memory from, to;
  };
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Sizes sizes_;
  Layout layout_;
  bool trains_;
  Forward forward_;
  Backward backward_;
  memory plain_layer_, plain_iter_, x_, y_, bias_, dy_;
  Arguments in_order_, back_;
  std::unordered_map<int, std::vector<Reorder>> reorders_;
  std::vector<Reorder> back_orders_;  ///< from the orders of its gradients to the parameters'
  std::vector<memory> gradients_;
  std::optional<Head> head_;
  std::vector<limit::Trained> parameters_;
  int steps_ = 0;
};

template <class J, class... Rest>
std::function<void()> runner(const Rest&... rest) {
  const auto job = std::make_shared<J>(rest...);
  return [job] { job->run(); };
}

std::function<void()> make(const std::string& name, const std::string& kind, Sizes s) {
  if (kind != "gru" && kind != "lstm" && kind != "rnn") return {};
  if (kind == "gru") return runner<Job<dnnl::lbr_gru_forward, dnnl::lbr_gru_backward>>(s, name);
  s.gates = s.biases = kind == "lstm" ? 4 : 1;
  if (kind == "lstm") return runner<Job<dnnl::lstm_forward, dnnl::lstm_backward>>(s, name);
  using Vanilla = Job<dnnl::vanilla_rnn_forward, dnnl::vanilla_rnn_backward, dnnl::algorithm>;
  return runner<Vanilla>(s, name, dnnl::algorithm::eltwise_tanh);
}

}  // namespace

int main() {
  setenv("OMP_NUM_THREADS", "1", 1);
  _mm_setcsr(_mm_getcsr() | 0x8040U);  // small gradients become zeros, as in our programs
  const dnnl_version_t* v = dnnl_version();
  std::cout << "oneDNN " << v->major << "." << v->minor << "." << v->patch << std::endl;
  std::string name, kind, last;
  Sizes s;
  double seconds = 0;
  std::function<void()> run;
  while (std::cin >> name >> kind >> s.H >> s.T >> s.B >> seconds) {
    const std::string key = name + kind + std::to_string(s.H) + " " + std::to_string(s.T) + " " + std::to_string(s.B);
    try {
      if (key != last) run = make(name, kind, s);
      last = key;
      if (!run) {
        std::cout << "none layers with as many features as units only" << std::endl;
      } else {
        std::cout << 1e6 * bench::interleaved_for({run}, seconds)[0] << std::endl;
      }
    } catch (const dnnl::error& error) {
      last.clear();
      std::cout << "none " << error.message << std::endl;
    }
  }
}
