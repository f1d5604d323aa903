// Reinforcement learning in ninety lines: a pole on a cart is balanced by proximal policy optimisation (arXiv
// 1707.06347). examples/cart_pole.cpp does the same without seeing speeds, with a recurrent policy.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <iostream>

using namespace ferrite;

namespace {

constexpr std::int64_t kCarts = 16, kSteps = 128;
constexpr float kDiscount = 0.99F, kTrace = 0.95F;

/// CartPole-v1 of Gymnasium: place, speed, angle, speed of the angle.
struct Cart {
  std::array<float, 4> s{};
  int steps = 0;
  std::uint64_t episode = 0;

  void begin(std::uint64_t which) {
    const std::vector<float> at =
        uniform({4}, {which, stream_of("beginnings"), ++episode}, -0.05, 0.05).to_vector<float>();
    std::copy(at.begin(), at.end(), s.begin());
    steps = 0;
  }
  bool fallen() const { return std::fabs(s[0]) > 2.4F || std::fabs(s[2]) > 0.2095F; }
  void push(bool right) {
    const float sine = std::sin(s[2]), cosine = std::cos(s[2]);
    const float part = ((right ? 10.0F : -10.0F) + 0.05F * s[3] * s[3] * sine) / 1.1F;
    const float turn = (9.8F * sine - cosine * part) / (0.5F * (4.0F / 3 - 0.1F * cosine * cosine / 1.1F));
    s = {s[0] + 0.02F * s[1], s[1] + 0.02F * (part - 0.05F * turn * cosine / 1.1F), s[2] + 0.02F * s[3],
         s[3] + 0.02F * turn};
    ++steps;
  }
};

}  // namespace

int main(int argc, char** argv) try {
  std::uint64_t seed = 0, iterations = 150;
  CLI::App app("Balances a pole and fails below 450 of 500 steps on average");
  app.add_option("--seed", seed), app.add_option("--iterations", iterations);
  CLI11_PARSE(app, argc, argv);
  const auto net = dsl::features(4).linear(64).tanh().linear(64).tanh().linear(3).build(seed);  // two actions, a value
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-3});
  const auto forward = [&](const train::Batch& b) {
    const Tensor y = net(b.x()), log_p = log_softmax(slice(y, 1, 0, 2), 1);
    const Tensor ratio = exp(squeeze(gather(log_p, 1, unsqueeze(b.field(1), 1)), 1) - b.field(2));
    const Tensor gain = minimum(ratio * b.field(3), clamp(ratio, 0.8, 1.2) * b.field(3));
    const Tensor wrong = square(select(y, 1, 2) - b.field(4)), chance = -sum(exp(log_p) * log_p, {1});
    return train::StepOutput{mean(0.5 * wrong - gain - 0.01 * chance)};
  };
  std::vector<Cart> carts(kCarts);
  for (std::uint64_t c = 0; c < kCarts; ++c) carts[c].begin(seed * 100 + c);
  double lately = 0;
  for (std::uint64_t i = 0; i < iterations && lately < 475; ++i) {
    std::vector<Tensor> seen, actions, log_probs, values, rewards, goes_on;
    for (std::int64_t t = 0; t <= kSteps; ++t) {
      const Tensor now = Tensor::build<float>({kCarts, 4}, [&](std::span<float> out) {
        for (std::size_t c = 0; c < kCarts; ++c)
          std::copy(carts[c].s.begin(), carts[c].s.end(), out.begin() + 4 * static_cast<std::ptrdiff_t>(c));
      });
      const Tensor y = net(now), log_p = log_softmax(slice(y, 1, 0, 2), 1);
      values.push_back(select(y, 1, 2));
      if (t == kSteps) break;
      const Tensor action =
          sample_logits(log_p, RandomKey{seed, stream_of("actions"), i * kSteps + static_cast<std::uint64_t>(t)});
      std::vector<float> reward(kCarts, 0.05F), on(kCarts, 1);
      for (std::size_t c = 0; c < kCarts; ++c) {
        carts[c].push(action[c].item<std::int64_t>() == 1);
        if (!carts[c].fallen() && carts[c].steps < 500) continue;
        on[c] = 0;
        if (!carts[c].fallen()) reward[c] += kDiscount * values.back()[c].item<float>();  // it would have gone on
        lately += 0.02 * (carts[c].steps - lately);
        carts[c].begin(seed * 100 + c);
      }
      seen.push_back(now), actions.push_back(action), goes_on.push_back(Tensor::from(on, {kCarts}));
      log_probs.push_back(squeeze(gather(log_p, 1, unsqueeze(action, 1)), 1)),
          rewards.push_back(Tensor::from(reward, {kCarts}));
    }
    std::vector<Tensor> advantages(kSteps), returns(kSteps);  // arXiv 1506.02438
    Tensor trace = zeros({kCarts});
    for (std::size_t t = kSteps; t-- > 0;) {
      trace = rewards[t] + kDiscount * goes_on[t] * values[t + 1] - values[t] + kDiscount * kTrace * goes_on[t] * trace;
      advantages[t] = trace, returns[t] = trace + values[t];
    }
    const Tensor a = concat(advantages);
    const train::Dataset data(
        {concat(seen), concat(actions), concat(log_probs), (a - mean(a)) / (stddev(a) + 1e-6), concat(returns)});
    (void)train::fit(net, forward, train::DataLoader(data, {.batch_size = 256, .seed = i}),
                     {.optimizer = &adam, .epochs = 6, .clip_norm = 0.5});
    if (i % 10 == 9) std::cout << "iteration " << i + 1 << ": " << lately << " steps\n";
  }
  std::cout << lately << " steps of late\n";
  return lately >= 450 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "pole: " << e.what() << '\n';
  return 1;
}
