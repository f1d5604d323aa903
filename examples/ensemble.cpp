// A deep ensemble (arXiv 1612.01474): five nets with different initial weights agree where there is data, and disagree
// where there is none.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  std::string out = ".";
  std::int64_t epochs = 200;
  CLI::App app("Fits a wave five times and fails where the nets do not know what they do not know");
  app.add_option("--out", out, "A folder"), app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  // Training data between -3 and -1, and between 1 and 3.
  const Tensor side = uniform({200, 1}, {.seed = 1}, 1, 3),
               sign = where(gt(uniform({200, 1}, {.seed = 2}), 0.5), 1.0F, side * 0 - 1);
  const Tensor x = side * sign, y = sin(2 * x) + normal({200, 1}, {.seed = 3}, 0, 0.05);
  const train::DataLoader data(train::Dataset({x, y}), {.batch_size = 32});
  const Tensor grid = reshape(linspace(-5, 5, 201), {201, 1});
  std::vector<Tensor> members;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto net = dsl::features(1).linear(32).tanh().linear(32).tanh().linear(1).build(seed);
    nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
    nn::CosineSchedule schedule(adam, epochs);
    const train::History history = train::fit(
        net, data,
        {.loss = "mse", .optimizer = &adam, .epochs = epochs, .schedule = &schedule, .schedule_by_epoch = true});
    std::cout << "net " << seed << ": loss " << history["loss"].back() << '\n';
    members.push_back(train::predict(net, train::Dataset({grid})));
  }
  const Tensor all = stack(members, 0), middle = mean(all, {0}), spread = sqrt(mean(square(all - middle), {0}));
  const auto mean_spread = [&](double from, double to) {
    const Tensor inside = cast(ge(grid, from) && le(grid, to), Dtype::f32);
    return (sum(spread * inside) / sum(inside)).item<float>();
  };
  const float seen = mean_spread(1, 3), unseen = mean_spread(4, 5);
  std::cout << "they differ by " << seen << " where there were data, by " << unseen << " where there were none\n";
  train::Series nets = train::Series::of("mean of the nets, and two deviations", grid, middle);
  nets.low = train::Series::of("", middle - 2 * spread).y, nets.high = train::Series::of("", middle + 2 * spread).y;
  train::Series points = train::Series::of("data", x, y);
  points.points = true;
  train::write_line_chart(out + "/ensemble.svg", {nets, points},
                          {.title = "Five nets know what they do not know", .x_label = "x", .y_label = "y"});
  return unseen > 4 * seen ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "ensemble: " << e.what() << '\n';
  return 1;
}
