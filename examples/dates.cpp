// Sequence to sequence with attention: dates as people write them ("7th of march 1984") become "1984-03-07". The
// decoder looks at the letters that the encoder has read (arXiv 1508.04025).
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

const train::Characters characters("\n 0123456789-.,abcdefghijklmnopqrstuvwxyz");  // the first character begins

/// Returns example i: the letters, the input of the decoder, and its target.
Tensors example(std::int64_t i, std::uint64_t seed) {
  static const std::string months[] = {"january", "february", "march",     "april",   "may",      "june",
                                       "july",    "august",   "september", "october", "november", "december"};
  const Tensor n = randint({4}, {seed, stream_of("dates"), static_cast<std::uint64_t>(i)}, 0, 1 << 20);
  const auto draw = [&](std::int64_t k, std::int64_t below) { return n[k].item<std::int64_t>() % below; };
  const std::int64_t year = 1900 + draw(0, 200), month = 1 + draw(1, 12), day = 1 + draw(2, 28);
  const std::string y = std::to_string(year), m = std::to_string(month), d = std::to_string(day);
  const std::string& name = months[month - 1];
  static const char* endings[] = {"th", "st", "nd", "rd"};
  const char* ending = day / 10 == 1 || day % 10 > 3 ? "th" : endings[day % 10];
  const std::string from[] = {d + ending + " of " + name + ' ' + y, name.substr(0, 3) + ' ' + d + ", " + y,
                              d + '.' + m + '.' + y, name + ' ' + d + ending + ' ' + y};
  const Tensor said = characters.tokens('\n' + y + (month < 10 ? "-0" : "-") + m + (day < 10 ? "-0" : "-") + d);
  return {characters.tokens(from[draw(3, 4)]), slice(said, 0, 0, -1), slice(said, 0, 1)};
}

struct Translator : nn::Module {
  nn::Embedding letters{characters.size(), 32}, digits{characters.size(), 32};
  nn::Gru encoder{32, 32, {.bidirectional = true}}, decoder{32, 64};
  nn::Linear head{128, characters.size()};
  explicit Translator(std::uint64_t seed) : Module({.seed = seed}) {
    adopt("letters", letters), adopt("digits", digits), adopt("encoder", encoder), adopt("decoder", decoder),
        adopt("head", head);
  }
  /// Computes letters x [B, T] and output so far y [B, S] -> logits [B, S, C] and the attention to the letters [B, S,
  /// T].
  Tensors forward(const Tensor& x, const Tensor& lengths, const Tensor& y) const {
    const Tensor read = encoder(letters(x), {.lengths = lengths}), said = decoder(digits(y));
    const Tensor there = unsqueeze(nn::length_mask(lengths, x.shape()[1]), 1);  // [B, 1, T]
    const Tensor seen = softmax(where(there, matmul(said, transpose(read, 1, 2)) / 8, -1e9), 2);
    return {head(concat({said, matmul(seen, read)}, 2)), seen};
  }
};

int main(int argc, char** argv) try {
  std::int64_t epochs = 12;
  std::uint64_t seed = 0;
  std::string out = ".";
  CLI::App app("Learns to read dates and fails below 95 % of those that it has not seen");
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  app.add_option("--seed", seed), app.add_option("--out", out, "A folder");
  CLI11_PARSE(app, argc, argv);

  const auto dates = [](std::int64_t n, std::uint64_t of) {
    return train::Dataset(n, [=](std::int64_t i) { return example(i, of); }, {{.sequence = true}, {}, {}});
  };
  const train::DataLoader data(dates(4000, seed),
                               {.batch_size = 64, .seed = seed, .bucket_lengths = {12, 24}, .threads = 1});
  const Translator net(seed);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  const auto forward = [&](const train::Batch& b) {
    const Tensor logits = net.forward(b.x(), b.lengths[0], b.field(1))[0];
    return train::StepOutput{nn::cross_entropy(logits, b.field(2), {.classes_last = true})};
  };
  train::FitOptions options{.optimizer = &adam, .epochs = epochs};
  options.clip_norm = 1, options.compile = train::Compile::always;
  options.callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal())};
  train::fit(net, forward, data, options);

  const train::Batch b = dates(500, seed + 1).all();
  Tensor said = zeros({b.size(), 1}, Dtype::i64), seen;  // one character at a time, the most likely
  for (std::int64_t t = 0; t < b.field(2).shape()[1]; ++t) {
    const Tensors now = net.forward(b.x(), b.lengths[0], said);
    said = concat({said, argmax(slice(now[0], 1, t), 2)}, 1), seen = now[1];
  }
  const float right = mean(cast(all(eq(slice(said, 1, 1), b.field(2)), {1}), Dtype::f32)).item<float>();
  std::cout << 100 * right << " % of " << b.size() << " unseen dates are right\n";
  const Tensor first = slice(b.x()[0], 0, 0, b.lengths[0][0].item<std::int64_t>());
  train::HeatMapOptions map{.title = "Where it looks", .x_label = "read", .y_label = "written", .low = 0, .high = 1};
  map.columns = characters.strings(first), map.rows = characters.strings(slice(said[0], 0, 1));
  train::write_heat_map(out + "/dates.svg", slice(seen[0], 1, 0, first.numel()), map);
  return right >= 0.95F ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "dates: " << e.what() << '\n';
  return 1;
}
