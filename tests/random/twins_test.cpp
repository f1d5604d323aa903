// Random sequences of calls on two copies of one net, one eager, the other compiled or streamed, have equal bits or
// equal errors after every call.
#include <functional>
#include <memory>
#include <random>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/nn/stream/stream.h"
#include "random/seeds.h"
#include "support/compare.h"
#include "support/sanitized.h"

using namespace ferrite;
using support::identical;

namespace {

using Random = std::mt19937_64;
int pick(Random& r, int low, int high) {
  return low + static_cast<int>(r() % static_cast<std::uint64_t>(high - low + 1));
}

constexpr std::int64_t kFeatures = 3, kClasses = 4;

/// Returns a causal net for a seed: recurrent layers, dropout, a norm, a head.
std::unique_ptr<nn::Sequential> make_net(std::uint64_t seed, std::uint64_t weights) {
  Random r(seed);
  auto net = std::make_unique<nn::Sequential>();
  const auto init = [&](const char* name) { return nn::Init{.seed = weights, .prefix = name}; };
  const nn::Form forms[] = {nn::Form::fused, nn::Form::unrolled, nn::Form::scan};
  const nn::Form form = forms[pick(r, 0, 2)];
  const std::int64_t layers = pick(r, 1, 2), H = pick(r, 2, 5);
  switch (pick(r, 0, 2)) {
    case 0:
      net->add("a", std::make_unique<nn::Gru>(
                        kFeatures, H, nn::GruOptions{.layers = layers, .dropout = 0.25, .form = form}, init("a")));
      break;
    case 1:
      net->add("a",
               std::make_unique<nn::Lstm>(kFeatures, H, nn::LstmOptions{.layers = layers, .form = form}, init("a")));
      break;
    default:
      net->add("a", std::make_unique<nn::Rnn>(kFeatures, H, nn::RnnOptions{.layers = layers, .form = form}, init("a")));
  }
  if (pick(r, 0, 1)) net->add("norm", std::make_unique<nn::LayerNorm>(H, init("norm")));
  net->add("drop", std::make_unique<nn::Dropout>(0.25, init("drop")));
  net->add("b", std::make_unique<nn::Gru>(H, 3, nn::GruOptions{}, init("b")));
  net->add("head", std::make_unique<nn::Linear>(3, kClasses, init("head")));
  return net;
}

/// A net with its optimiser, whose calls run eagerly or compiled.
class Twin {
 public:
  Twin(std::unique_ptr<nn::Layer> net, bool compiled)
      : compiled_(compiled),
        net_(std::move(net)),
        adam_(net_->parameters(), {.learning_rate = 0.02}),
        carries_{nn::Carry(*net_, 2), nn::Carry(*net_, 2), nn::Carry(*net_, 3)} {
    forward_ = [this](const Tensor& x, const nn::Carry& c) { return (*net_)(x, {.carry = &c}); };
    lengths_ = [this](const Tensor& x, const Tensor& n) { return (*net_)(x, {.lengths = n}); };
    step_ = [this](const Tensor& x, const Tensor& y, const nn::Carry& c) {
      Tape tape;
      const Tensor scores = reshape((*net_)(x, {.carry = &c}), {-1, kClasses});
      const Tensor loss = nn::cross_entropy(scores, y);
      adam_.step(tape.grad(loss, adam_.parameters()));
      return loss;
    };
    if (!compiled) return;
    forward_ = compile(forward_, {.most_plans = 3});
    lengths_ = compile(lengths_);
    step_ = compile(step_);
  }

  Tensor forward(const Tensor& x, std::size_t carry) { return forward_(x, carries_[carry]); }
  Tensor with_lengths(const Tensor& x, const Tensor& n) { return lengths_(x, n); }
  Tensor train(const Tensor& x, const Tensor& y, std::size_t carry) { return step_(x, y, carries_[carry]).unmarked(); }
  void reset(std::size_t carry) { carries_[carry].reset(); }
  void keep(std::size_t carry) { kept_ = carries_[carry].save(); }
  void restore(std::size_t carry) { carries_[carry].restore(kept_); }
  void set_rate(double rate) { adam_.set_learning_rate(rate); }
  void train_mode(bool on) { net_->train(on); }
  void load(const nn::Module& from) { nn::copy_values(from, *net_); }
  std::unique_ptr<Twin> cloned() const { return std::make_unique<Twin>(net_->clone(), compiled_); }

  /// Returns every variable that a call may change.
  std::vector<Variable> variables() const {
    std::vector<Variable> all;
    for (const auto& p : net_->named_parameters()) all.push_back(p.variable);
    for (const auto& s : net_->named_states()) all.push_back(s.variable);
    for (const auto& s : adam_.states()) all.push_back(s.variable);
    for (const nn::Carry& c : carries_) all.insert(all.end(), c.variables().begin(), c.variables().end());
    return all;
  }
  std::vector<Tensor> state() const {
    std::vector<Tensor> all;
    for (const Variable& c : variables()) all.push_back(c.peek() + 0);
    return all;
  }
  void set_state(const std::vector<Tensor>& values) const {
    const std::vector<Variable> all = variables();
    for (std::size_t i = 0; i < all.size(); ++i) all[i].assign(values[i]);
  }

 private:
  bool compiled_;
  std::unique_ptr<nn::Layer> net_;
  nn::Adam adam_;
  std::array<nn::Carry, 3> carries_;
  std::vector<Tensor> kept_;
  std::function<Tensor(const Tensor&, const nn::Carry&)> forward_;
  std::function<Tensor(const Tensor&, const Tensor&)> lengths_;
  std::function<Tensor(const Tensor&, const Tensor&, const nn::Carry&)> step_;
};

/// The result of a call, or the message of its error.
struct Outcome {
  Tensor result;
  std::string error;
};
template <class F>
Outcome outcome_of(F&& f) {
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      return {};
    } else {
      return {f(), {}};
    }
  } catch (const Error& e) {
    return {{}, e.what()};
  }
}

bool same(const Outcome& a, const Outcome& b) {
  if (a.error != b.error || a.result.defined() != b.result.defined()) return false;
  return !a.result.defined() || identical(a.result, b.result);
}

/// A random call, the same on every twin that runs it.
struct Call {
  std::string what;
  std::function<Outcome(Twin&)> run;
};

Call random_call(Random& r, const nn::Module& spare) {
  const auto carry = static_cast<std::size_t>(pick(r, 0, 2));
  const std::int64_t B = carry == 2 ? 3 : 2, T = pick(r, 1, 4);
  const bool misfit = pick(r, 0, 15) == 0;
  const Tensor x = uniform({misfit ? B + 1 : B, T, kFeatures}, {r(), 1, 0}, -1, 1);
  const int kind = pick(r, 0, 11);
  const auto call = [](std::string what, auto f) {
    return Call{std::move(what), [f](Twin& t) { return outcome_of([&] { return f(t); }); }};
  };
  if (kind <= 2) return call("forward", [=](Twin& t) { return t.forward(x, carry); });
  if (kind <= 5) {
    const int beyond = pick(r, 0, 7) == 0 ? 1 : 0;
    const Tensor y =
        cast(uniform({x.shape()[0] * T}, {r(), 2, 0}, 0, static_cast<double>(kClasses + beyond)), Dtype::i64);
    return call("train", [=](Twin& t) { return t.train(x, y, carry); });
  }
  switch (kind) {
    case 6: {
      const Tensor n = cast(uniform({x.shape()[0]}, {r(), 3, 0}, 0.5, static_cast<double>(T) + 1.2), Dtype::i64);
      return call("lengths", [=](Twin& t) { return t.with_lengths(x, n); });
    }
    case 7: return call("reset", [=](Twin& t) { t.reset(carry); });
    case 8: {
      if (pick(r, 0, 1)) return call("keep", [=](Twin& t) { t.keep(carry); });
      return call("restore", [=](Twin& t) { t.restore(carry); });
    }
    case 9: {
      const double rate = 0.01 * pick(r, 0, 5);
      return call("rate", [=](Twin& t) { t.set_rate(rate); });
    }
    case 10: {
      const bool on = pick(r, 0, 1) != 0;
      return call("mode", [=](Twin& t) { t.train_mode(on); });
    }
    default: return call("load", [&spare](Twin& t) { t.load(spare); });
  }
}

void check_compiled(std::uint64_t seed) {
  Random r(seed);
  auto eager = std::make_unique<Twin>(make_net(seed, 1), false),
       planned = std::make_unique<Twin>(make_net(seed, 1), true);
  const auto spare = make_net(seed, 2);
  std::string story;
  for (int k = 0; k < 24; ++k) {
    if (pick(r, 0, 19) == 0) {
      eager = eager->cloned();
      planned = planned->cloned();
      story += " clone";
      continue;
    }
    const Call call = random_call(r, *spare);
    story += " " + call.what;
    const std::vector<Tensor> before = eager->state();
    const Outcome wanted = call.run(*eager), got = call.run(*planned);
    bool equal = same(got, wanted);
    // A compiled function that throws has changed nothing; an eager one stops in the middle.
    if (!wanted.error.empty()) eager->set_state(before);
    const std::vector<Tensor> a = eager->state(), b = planned->state();
    for (std::size_t i = 0; i < a.size() && equal; ++i) equal = bool(identical(b[i], a[i]));
    BOOST_TEST(equal,
               "seed " << seed << ":" << story << " (error '" << got.error << "', wanted '" << wanted.error << "')");
    if (!equal) return;
  }
}

/// A stream compared with the layer called one step at a time with a carry, with the weights of the last refresh.
class Streamed {
 public:
  Streamed(std::unique_ptr<nn::Layer> net, std::int64_t B)
      : net_(std::move(net)), frozen_(net_->clone()), carry_(*frozen_, B), stream_(net_->stream(B)) {
    frozen_->eval();
  }

  bool step(const Tensor& x) {
    const Tensor wanted = (*frozen_)(unsqueeze(x, 1), {.carry = &carry_});
    std::vector<float> y(static_cast<std::size_t>(wanted.numel()));
    stream_.step(x.values<float>(), y);
    return bool(identical(Tensor::from(std::span<const float>(y), wanted.shape()), wanted));
  }
  void reset() { carry_.reset(), stream_.reset(); }
  void keep() { kept_ = carry_.save(), kept_stream_ = stream_.save(); }
  void restore() {
    if (kept_.empty()) return;
    carry_.restore(kept_);
    stream_.restore(kept_stream_);
  }
  void load(const nn::Module& from) { nn::copy_values(from, *net_); }
  void refresh() {
    nn::copy_values(*net_, *frozen_);
    stream_.refresh();
  }
  /// Continues with a clone; the old stream gets other weights and ends.
  void clone(const nn::Module& other) {
    nn::Stream copy = stream_.clone();
    const auto own = net_->clone();
    nn::copy_values(other, *net_);
    stream_.refresh();
    stream_.reset();
    stream_ = std::move(copy);
    nn::copy_values(*own, *net_);
  }

 private:
  std::unique_ptr<nn::Layer> net_, frozen_;
  nn::Carry carry_;
  nn::Stream stream_;
  std::vector<Tensor> kept_, kept_stream_;
};

void check_streamed(std::uint64_t seed) {
  Random r(seed);
  const std::int64_t B = pick(r, 1, 3);
  Streamed twin(make_net(seed, 1), B);
  const auto spare = make_net(seed, 2), third = make_net(seed, 3);
  std::string story;
  for (int k = 0; k < 40; ++k) {
    switch (pick(r, 0, 12)) {
      case 0: story += " reset", twin.reset(); break;
      case 1: story += " keep", twin.keep(); break;
      case 2: story += " restore", twin.restore(); break;
      case 3: story += " load", twin.load(pick(r, 0, 1) ? *spare : *third); break;
      case 4: story += " refresh", twin.refresh(); break;
      case 5: story += " clone", twin.clone(*third); break;
      default: {
        story += " step";
        const bool equal = twin.step(uniform({B, kFeatures}, {r(), 1, 0}, -1, 1));
        BOOST_TEST(equal, "seed " << seed << ":" << story);
        if (!equal) return;
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(twins)

BOOST_AUTO_TEST_CASE(a_compiled_net_follows_an_eager_one_through_any_calls) {
  const seeds::Range range = seeds::asked_for(support::unless_sanitized(600U, 60U), 10);
  for (std::uint64_t k = 0; k < range.count; ++k) check_compiled(range.first + k);
}

BOOST_AUTO_TEST_CASE(a_stream_follows_the_layer_through_any_calls) {
  const seeds::Range range = seeds::asked_for(support::unless_sanitized(2000U, 100U), 10);
  for (std::uint64_t k = 0; k < range.count; ++k) check_streamed(range.first + k);
}

BOOST_AUTO_TEST_SUITE_END()
