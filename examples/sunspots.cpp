// Forecasts next year's sunspots: a GRU on windows of the past 24 years, compared with "the same as this year".
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/sunspots.csv", out = ".";
  std::int64_t epochs = 80;
  std::uint64_t seed = 0;
  CLI::App app(
      "Forecasts sunspots and fails where the error is above 20, or above two thirds of the simplest forecast's");
  app.add_option("--data", path), app.add_option("--out", out, "A folder"), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const Tensor series = unsqueeze(io::read_csv(path).column("sunspots"), 1) / 100;
  constexpr std::int64_t kPast = 24, kFirst = 230;  // trained up to 1929, judged from 1930 on
  const auto windows = [](const Tensor& of) { return train::windows(of, {.length = kPast, .flat = true}); };
  const train::DataLoader training(windows(slice(series, 0, 0, kFirst)), {.batch_size = 16, .seed = seed});
  const train::Dataset test = windows(slice(series, 0, kFirst - kPast));

  const auto net = dsl::sequence(1).standardize().gru(16).last_step().linear(1).build(seed);
  train::adapt(net, training.data());
  nn::AdamW adam(net.parameters(), {.learning_rate = 5e-3, .weight_decay = 1e-2});
  nn::CosineSchedule schedule(adam, epochs);
  train::fit(net, training,
             {.loss = "mse",
              .optimizer = &adam,
              .epochs = epochs,
              .callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal())},
              .clip_norm = 1,
              .schedule = &schedule,
              .schedule_by_epoch = true});

  const Tensor forecast = train::predict(net, test), truth = test.all().y();
  const Tensor same = slice(series, 0, kFirst - 1, series.shape()[0] - 1);
  const auto error = [&](const Tensor& of) { return 100 * std::sqrt(mean(square(of - truth)).item<float>()); };
  std::cout << "root mean square error " << error(forecast) << ", the same as the year before " << error(same) << '\n';
  const Tensor years = arange(1700 + kFirst, 1700 + series.shape()[0]);
  train::write_line_chart(
      out + "/sunspots.svg",
      {train::Series::of("seen", years, 100 * truth), train::Series::of("told a year before", years, 100 * forecast)},
      {.title = "Years that the net has not seen", .x_label = "year", .y_label = "sunspots"});
  return error(forecast) < 20 && error(forecast) < error(same) * 2 / 3 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "sunspots: " << e.what() << '\n';
  return 1;
}
