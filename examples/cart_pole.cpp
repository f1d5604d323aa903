// A recurrent policy learns to balance a pole whose speed it cannot see, by proximal policy optimisation.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <random>

using namespace ferrite;

/// CartPole-v1 of Gymnasium (Barto, Sutton and Anderson 1983); a policy sees only the positions.
class CartPole {
 public:
  static constexpr int kLongest = 500;

  explicit CartPole(std::uint64_t seed) : random_(seed) { reset(); }

  void reset() {
    for (double* part : {&x_, &speed_, &angle_, &turning_})
      *part = static_cast<double>(random_() >> 11) * 0x1p-53 * 0.1 - 0.05;
    steps_ = 0;
  }
  void see(std::span<float> places) const {
    places[0] = static_cast<float>(x_ / 2.4);
    places[1] = static_cast<float>(angle_ / 0.2095);
  }
  int steps() const { return steps_; }
  bool fallen() const { return std::abs(x_) > 2.4 || std::abs(angle_) > 12 * 3.14159265358979 / 180; }
  bool done() const { return fallen() || steps_ >= kLongest; }

  /// Advances one fiftieth of a second with a push to the right or to the left.
  void push(bool right) {
    constexpr double kGravity = 9.8, kPole = 0.1, kTotal = 1.1, kHalf = 0.5, kStep = 0.02;
    const double force = right ? 10 : -10, cosine = std::cos(angle_), sine = std::sin(angle_);
    const double part = (force + kPole * kHalf * turning_ * turning_ * sine) / kTotal;
    const double turn = (kGravity * sine - cosine * part) / (kHalf * (4.0 / 3 - kPole * cosine * cosine / kTotal));
    const double push = part - kPole * kHalf * turn * cosine / kTotal;
    x_ += kStep * speed_, speed_ += kStep * push;
    angle_ += kStep * turning_, turning_ += kStep * turn;
    ++steps_;
  }

 private:
  std::mt19937_64 random_;
  double x_ = 0, speed_ = 0, angle_ = 0, turning_ = 0;
  int steps_ = 0;
};

constexpr std::int64_t kCarts = 32, kSteps = 128, kOutputs = 3;  // two scores of actions and a value
constexpr double kDiscount = 0.99, kTrace = 0.95, kRewardScale = 0.05;

/// The record of kSteps steps of all carts, row by row.
struct Rollout {
  std::vector<float> places = std::vector<float>(kCarts * kSteps * 2), log_probs = std::vector<float>(kCarts * kSteps),
                     values = std::vector<float>(kCarts * (kSteps + 1)), rewards = std::vector<float>(kCarts * kSteps);
  std::vector<std::int64_t> actions = std::vector<std::int64_t>(kCarts * kSteps);
  std::vector<std::uint8_t> fresh = std::vector<std::uint8_t>(kCarts * kSteps);  ///< first step of an episode
  std::vector<Tensor> states{};                                                  ///< of the net before the first step
};

class Training {
 public:
  explicit Training(std::uint64_t seed)
      : random_(seed),
        net_(dsl::sequence(2).gru(64).linear(kOutputs).build(seed)),
        stream_(net_.stream(kCarts)),
        carry_(net_, kCarts),
        adam_(net_.parameters(), {.learning_rate = 2e-3}) {
    for (std::int64_t c = 0; c < kCarts; ++c) carts_.emplace_back(random_());
  }

  /// Trains until the last hundred episodes are nearly as long as possible, or at least `most` steps were made.
  void run(std::int64_t most) {
    while (steps_ < most && !(lengths_.size() >= 100 && recent() >= 485)) {
      const Rollout r = roll();
      learn(r);
    }
  }
  std::int64_t steps() const { return steps_; }

  /// Returns the mean steps of a hundred fresh episodes, with the action of the larger score.
  double evaluate(std::uint64_t seed) const {
    constexpr std::int64_t kEpisodes = 100;
    std::vector<CartPole> carts;
    for (std::uint64_t c = 0; c < kEpisodes; ++c) carts.emplace_back(seed * 1000 + c);
    nn::Stream stream = net_.stream(kEpisodes);
    std::vector<float> places(kEpisodes * 2), y(kEpisodes * kOutputs);
    for (int t = 0; t < CartPole::kLongest; ++t) {
      for (std::size_t c = 0; c < carts.size(); ++c) carts[c].see(std::span(places).subspan(2 * c, 2));
      stream.step(places, y);
      for (std::size_t c = 0; c < carts.size(); ++c)
        if (!carts[c].done()) carts[c].push(y[kOutputs * c + 1] > y[kOutputs * c]);
    }
    double total = 0;
    for (const CartPole& cart : carts) total += cart.steps();
    return total / static_cast<double>(kEpisodes);
  }

 private:
  double recent() const {
    double total = 0;
    for (std::size_t i = lengths_.size() - 100; i < lengths_.size(); ++i) total += lengths_[i];
    return total / 100;
  }

  Rollout roll() {
    Rollout r;
    r.states = stream_.save();
    std::vector<float> seen(kCarts * 2), y(kCarts * kOutputs);
    for (std::size_t t = 0; t <= kSteps; ++t) {
      for (std::size_t c = 0; c < kCarts; ++c) carts_[c].see(std::span(seen).subspan(2 * c, 2));
      const std::vector<Tensor> before = t == kSteps ? stream_.save() : std::vector<Tensor>();
      stream_.step(seen, y);
      for (std::size_t c = 0; c < kCarts; ++c) r.values[c * (kSteps + 1) + t] = y[kOutputs * c + 2];
      if (t == kSteps) {  // looks at the value after the last step
        stream_.restore(before);
        break;
      }
      for (std::size_t c = 0; c < kCarts; ++c)
        act(r, c, t, std::span(seen).subspan(2 * c, 2), std::span(y).subspan(kOutputs * c, 2));
    }
    steps_ += kCarts * kSteps;
    return r;
  }

  /// Makes one step of one cart: a draw from the policy, the reward, and a fresh episode where one ends.
  void act(Rollout& r, std::size_t c, std::size_t t, std::span<const float> seen, std::span<const float> scores) {
    const std::size_t i = c * kSteps + t;
    CartPole& cart = carts_[c];
    const double right = 1 / (1 + std::exp(static_cast<double>(scores[0] - scores[1])));
    const bool to_right = static_cast<double>(random_() >> 11) * 0x1p-53 < right;
    r.fresh[i] = cart.steps() == 0;
    std::ranges::copy(seen, r.places.begin() + static_cast<std::ptrdiff_t>(2 * i));
    r.actions[i] = to_right;
    r.log_probs[i] = static_cast<float>(std::log(to_right ? right : 1 - right));
    cart.push(to_right);
    r.rewards[i] = static_cast<float>(kRewardScale);
    if (!cart.done()) return;
    // An episode that is only cut off would have gone on as well as before.
    if (!cart.fallen()) r.rewards[i] += static_cast<float>(kDiscount) * r.values[c * (kSteps + 1) + t];
    lengths_.push_back(cart.steps());
    cart.reset();
    stream_.reset(static_cast<std::int64_t>(c));
  }

  void learn(const Rollout& r) {
    // Advantages by generalised estimation (arXiv 1506.02438); an episode ends before a fresh step.
    std::vector<float> advantages(kCarts * kSteps), returns(kCarts * kSteps);
    for (std::size_t c = 0; c < kCarts; ++c) {
      double trace = 0;
      for (std::size_t t = kSteps; t-- > 0;) {
        const std::size_t i = c * kSteps + t, v = c * (kSteps + 1) + t;
        const bool ends = t + 1 < kSteps ? r.fresh[i + 1] != 0 : carts_[c].steps() == 0;
        const double next = ends ? 0 : static_cast<double>(r.values[v + 1]);
        const double value = static_cast<double>(r.values[v]);
        trace = static_cast<double>(r.rewards[i]) + kDiscount * next - value + (ends ? 0 : kDiscount * kTrace * trace);
        advantages[i] = static_cast<float>(trace);
        returns[i] = static_cast<float>(trace + value);
      }
    }
    const Shape shape{kCarts, kSteps};
    const Tensor a = Tensor::from(advantages, shape), unit = (a - mean(a)) / (stddev(a) + 1e-6);
    const Tensor fresh =
        ne(cast(Tensor::from(std::vector<std::int64_t>(r.fresh.begin(), r.fresh.end()), shape), Dtype::i64), 0);
    for (int epoch = 0; epoch < 6; ++epoch) {
      carry_.restore(r.states);
      update_(Tensor::from(r.places, {kCarts, kSteps, 2}), fresh, Tensor::from(r.actions, shape),
              Tensor::from(r.log_probs, shape), unit, Tensor::from(returns, shape));
    }
    stream_.refresh();
  }

  /// Returns the loss: the clipped objective (arXiv 1707.06347), the error of the values, and a reward for chance.
  Tensor update(const Tensor& places, const Tensor& fresh, const Tensor& actions, const Tensor& before,
                const Tensor& advantages, const Tensor& returns) const {
    Tape tape;
    const Tensor y = net_(places, {.reset_mask = fresh, .carry = &carry_});
    const Tensor log_probs = log_softmax(slice(y, 2, 0, 2), 2);
    const Tensor chosen = squeeze(gather(log_probs, 2, unsqueeze(actions, 2)), 2);
    const Tensor ratio = exp(chosen - before);
    const Tensor gain = mean(minimum(ratio * advantages, clamp(ratio, 0.8, 1.2) * advantages));
    const Tensor entropy = -mean(sum(exp(log_probs) * log_probs, {2}));
    const Tensor loss = 0.5 * nn::mse_loss(select(y, 2, 2), returns) - gain - 0.01 * entropy;
    adam_.step(nn::clip_grad_norm(tape.grad(loss, net_.parameters()), 0.5).grads);
    return loss;
  }

  std::mt19937_64 random_;
  dsl::Network net_;
  nn::Stream stream_;
  nn::Carry carry_;
  mutable nn::Adam adam_;
  std::vector<CartPole> carts_{};
  std::vector<int> lengths_{};  ///< steps of the episodes that have ended
  std::int64_t steps_ = 0;
  const std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&)>
      update_ = compile([this](const Tensor& places, const Tensor& fresh, const Tensor& actions, const Tensor& before,
                               const Tensor& advantages, const Tensor& returns) {
        return update(places, fresh, actions, before, advantages, returns);
      });
};

int main(int argc, char** argv) try {
  std::uint64_t seeds = 5;
  std::int64_t most = 1'500'000;
  CLI::App app("Balances a pole without seeing speeds and fails below 475 of 500 steps on average");
  app.add_option("--seeds", seeds), app.add_option("--steps", most)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  bool all = true;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto start = std::chrono::steady_clock::now();
    Training training(seed);
    training.run(most);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const double mean_return = training.evaluate(seed + 100);
    all &= mean_return >= 475;
    std::cout << "seed " << seed << ": mean return " << mean_return << " after " << training.steps() << " steps, "
              << took.count() << " s, " << static_cast<double>(training.steps()) / took.count() << " steps a second\n";
  }
  return all ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "cart_pole: " << e.what() << '\n';
  return 1;
}
