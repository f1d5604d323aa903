// Reinforcement learning in ninety lines: a pole on a cart is balanced by proximal policy optimisation (arXiv
// 1707.06347). examples/cart_pole.cpp does the same without seeing speeds, with a recurrent policy.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

using namespace ferrite;

constexpr std::int64_t kCarts = 16, kSteps = 128;

/// CartPole-v1 of Gymnasium: position, speed, angle, angular speed.
struct Cart {
  std::vector<float> s{};
  int steps = 0;
  std::uint64_t episode = 0;

  void begin(std::uint64_t which) {
    const Tensor at = uniform({4}, {which, stream_of("beginnings"), ++episode}, -0.05, 0.05);
    s = at.to_vector<float>(), steps = 0;
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

int main(int argc, char** argv) try {
  std::uint64_t seed = 0, iterations = 150;
  std::string out = ".";
  CLI::App app("Balances a pole and fails below 450 of 500 steps on average");
  app.add_option("--seed", seed), app.add_option("--iterations", iterations), app.add_option("--out", out, "A folder");
  CLI11_PARSE(app, argc, argv);
  const auto net = dsl::features(4).linear(64).tanh().linear(64).tanh().linear(3).build(seed);  // two actions, a value
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-3});
  const auto forward = [&](const train::Batch& b) {
    const Tensor y = net(b.x()), wrong = square(select(y, 1, 2) - b.field(4));
    const auto policy = nn::Categorical::from_logits(slice(y, 1, 0, 2));
    const Tensor ratio = exp(policy.log_prob(b.field(1)) - b.field(2));
    const Tensor gain = minimum(ratio * b.field(3), clamp(ratio, 0.8, 1.2) * b.field(3));
    return train::StepOutput{mean(0.5 * wrong - gain - 0.01 * policy.entropy())};
  };
  std::vector<Cart> carts(kCarts);
  for (std::uint64_t c = 0; c < kCarts; ++c) carts[c].begin(seed * 100 + c);
  std::vector<double> lately = {0};  // mean steps until a pole falls, by iteration
  for (std::uint64_t i = 0; i < iterations && lately.back() < 475; ++i) {
    std::vector<Tensor> seen, actions, log_probs, values, rewards, goes_on;
    double steps = lately.back();
    for (std::uint64_t t = 0; t <= kSteps; ++t) {
      std::vector<float> states;
      for (const Cart& cart : carts) states.insert(states.end(), cart.s.begin(), cart.s.end());
      const Tensor now = Tensor::from(states, {kCarts, 4}), y = net(now);
      values.push_back(select(y, 1, 2));
      if (t == kSteps) break;
      const auto policy = nn::Categorical::from_logits(slice(y, 1, 0, 2));
      const Tensor action = policy.sample(RandomKey{seed, stream_of("actions"), i * kSteps + t});
      std::vector<float> reward(kCarts, 0.05F), on(kCarts, 1);
      for (std::size_t c = 0; c < kCarts; ++c) {
        carts[c].push(action[c].item<std::int64_t>() == 1);
        if (!carts[c].fallen() && carts[c].steps < 500) continue;
        on[c] = 0;
        if (!carts[c].fallen()) reward[c] += 0.99F * values.back()[c].item<float>();  // it would have gone on
        steps += 0.02 * (carts[c].steps - steps), carts[c].begin(seed * 100 + c);
      }
      seen.push_back(now), actions.push_back(action), goes_on.push_back(Tensor::from(on, {kCarts}));
      log_probs.push_back(policy.log_prob(action)), rewards.push_back(Tensor::from(reward, {kCarts}));
    }
    const Tensor value = stack(values), gains = train::advantages(stack(rewards), value, stack(goes_on));
    const Tensor a = flatten(gains), returns = flatten(gains + slice(value, 0, 0, kSteps));
    const train::Dataset data(
        {concat(seen), concat(actions), concat(log_probs), (a - mean(a)) / (stddev(a) + 1e-6), returns});
    (void)train::fit(net, forward, train::DataLoader(data, {.batch_size = 256, .seed = i}),
                     {.optimizer = &adam, .epochs = 6, .clip_norm = 0.5});
    lately.push_back(steps);
    if (i % 10 == 9) std::cout << "iteration " << i + 1 << ": " << steps << " steps\n";
  }
  std::cout << lately.back() << " steps of late\n";
  train::write_line_chart(out + "/pole.svg", {train::Series::of("", Tensor::from(lately))},
                          {.title = "How long the pole stays up", .x_label = "iteration", .y_label = "steps of late"});
  return lately.back() >= 450 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "pole: " << e.what() << '\n';
  return 1;
}
