// Forecasting: how many sunspots next year? A GRU on windows of the past 24 years, beside "the same as this year".
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/sunspots.csv", picture;
  std::int64_t epochs = 80;
  std::uint64_t seed = 0;
  CLI::App app(
      "Forecasts sunspots and fails where the error is above 20, or above two thirds of the simplest forecast's");
  app.add_option("--data", path), app.add_option("--picture", picture, "SVG"), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const Tensor series = unsqueeze(io::read_csv(path).column("sunspots"), 1) / 100;
  constexpr std::int64_t kPast = 24;
  const std::int64_t T = series.shape()[0], first = 230;  // trained up to 1929, judged from 1930 on
  const auto windows = [](const Tensor& of) {
    return train::windows(of, {.length = kPast}).map([](const Tensors& e) {
      return Tensors{e[0], select(e[1], 0, 0)};
    });
  };
  const train::DataLoader training(windows(slice(series, 0, 0, first)), {.batch_size = 16, .seed = seed});
  const train::Dataset test = windows(slice(series, 0, first - kPast, T));

  const auto net = dsl::sequence(1).standardize().gru(16).last_step().linear(1).build(seed);
  train::adapt(dynamic_cast<const nn::Standardize&>(net[0]), training.data());
  nn::AdamW adam(net.parameters(), {.learning_rate = 5e-3, .weight_decay = 1e-2});
  nn::CosineSchedule schedule(adam, epochs);
  train::fit(net, training,
             {.loss = "mse",
              .optimizer = &adam,
              .epochs = epochs,
              .callbacks = {train::ProgressBar(std::cout, isatty(STDOUT_FILENO) != 0)},
              .clip_norm = 1,
              .schedule = &schedule,
              .schedule_by_epoch = true});

  const Tensor forecast = train::predict(net, test), truth = test.all().y();
  const Tensor same = slice(series, 0, first - 1, T - 1);
  const auto error = [&](const Tensor& of) { return 100 * std::sqrt(mean(square(of - truth)).item<float>()); };
  std::cout << "root mean square error " << error(forecast) << ", the same as the year before " << error(same) << '\n';
  if (!picture.empty()) {
    train::Series seen{"sunspots", {}, {}}, told{"forecast", {}, {}};
    for (std::int64_t i = 0; i < T - first; ++i)
      for (const auto& [line, of] : {std::pair{&seen, &truth}, {&told, &forecast}}) {
        line->x.push_back(static_cast<double>(1700 + first + i));
        line->y.push_back(100 * static_cast<double>((*of)[i].item<float>()));
      }
    const std::string svg = train::line_chart({seen, told}, {.title = "Sunspots"});
    io::write_atomically(picture, std::as_bytes(std::span(svg)));
  }
  return error(forecast) < 20 && error(forecast) < error(same) * 2 / 3 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "sunspots: " << e.what() << '\n';
  return 1;
}
