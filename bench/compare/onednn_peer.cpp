// oneDNN's recurrent layers (the GRU with linear-before-reset, as PyTorch's), one thread: tells its version, then
// answers lines "job kind H T B seconds" with microseconds. Weights are brought into the library's own order once;
// `train` is the forward pass for training and the backward pass of the layer, without loss and Adam, which it lacks.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

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

memory filled(const memory::desc& d, const dnnl::engine& e, float scale) {
  memory m(d, e);
  auto* p = static_cast<float*>(m.get_data_handle());
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < d.get_size() / sizeof(float); ++i) {
    state = state * 1664525U + 1013904223U;
    p[i] = scale * (static_cast<float>(state >> 8U) * 0x1p-23F - 1.0F);
  }
  return m;
}

/// A layer ready to run.
template <class Forward, class Backward, class... First>
class Job {
 public:
  Job(const Sizes& s, bool train, First... first) : layout_(s) {
    const auto kind = train ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const auto pd = forward_of<Forward>(kind, layout_, engine_, false, first...);
    forward_ = Forward(pd);
    const float scale = 1.0F / std::sqrt(static_cast<float>(s.H));
    const memory plain_layer = filled(layout_.plain, engine_, scale);
    const memory plain_iter = filled(layout_.plain, engine_, -scale);
    const memory x = filled(layout_.data, engine_, 1), y(layout_.data, engine_),
                 b = filled(layout_.bias, engine_, scale);
    given_ = {{DNNL_ARG_SRC_LAYER, x}, {DNNL_ARG_DST_LAYER, y}, {DNNL_ARG_BIAS, b}};
    if (train) given_[DNNL_ARG_WORKSPACE] = memory(pd.workspace_desc(), engine_);
    in_order_ = given_;
    place(in_order_, DNNL_ARG_WEIGHTS_LAYER, plain_layer, pd.weights_layer_desc());
    place(in_order_, DNNL_ARG_WEIGHTS_ITER, plain_iter, pd.weights_iter_desc());
    if (!train) return;
    const auto back = backward_of<Backward>(layout_, engine_, pd, first...);
    backward_ = Backward(back);
    back_ = given_;
    place(back_, DNNL_ARG_WEIGHTS_LAYER, plain_layer, back.weights_layer_desc());
    place(back_, DNNL_ARG_WEIGHTS_ITER, plain_iter, back.weights_iter_desc());
    back_[DNNL_ARG_DIFF_DST_LAYER] = filled(layout_.data, engine_, 1);
    back_[DNNL_ARG_DIFF_SRC_LAYER] = memory(layout_.data, engine_);
    back_[DNNL_ARG_DIFF_WEIGHTS_LAYER] = memory(back.diff_weights_layer_desc(), engine_);
    back_[DNNL_ARG_DIFF_WEIGHTS_ITER] = memory(back.diff_weights_iter_desc(), engine_);
    back_[DNNL_ARG_DIFF_BIAS] = memory(layout_.bias, engine_);
  }

  void run() {
    forward_.execute(stream_, in_order_);
    if (backward_) backward_.execute(stream_, back_);
    stream_.wait();
  }

 private:
  void place(Arguments& arguments, int what, memory from, const memory::desc& order) {
    memory to(order, engine_);
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
    arguments[what] = to;
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Layout layout_;
  Forward forward_;
  Backward backward_;
  Arguments given_, in_order_, back_;
};

template <class J, class... Rest>
std::function<void()> runner(const Rest&... rest) {
  const auto job = std::make_shared<J>(rest...);
  return [job] { job->run(); };
}

std::function<void()> make(const std::string& name, const std::string& kind, Sizes s) {
  const bool train = name != "forward";
  if (kind != "gru" && kind != "lstm" && kind != "rnn") return {};
  if (kind == "gru") return runner<Job<dnnl::lbr_gru_forward, dnnl::lbr_gru_backward>>(s, train);
  s.gates = s.biases = kind == "lstm" ? 4 : 1;
  if (kind == "lstm") return runner<Job<dnnl::lstm_forward, dnnl::lstm_backward>>(s, train);
  using Vanilla = Job<dnnl::vanilla_rnn_forward, dnnl::vanilla_rnn_backward, dnnl::algorithm>;
  return runner<Vanilla>(s, train, dnnl::algorithm::eltwise_tanh);
}

}  // namespace

int main() {
  setenv("OMP_NUM_THREADS", "1", 1);
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
