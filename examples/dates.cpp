// Sequence to sequence with attention: dates as people write them ("7th of march 1984") become "1984-03-07". The
// decoder looks at the letters that the encoder has read (arXiv 1508.04025).
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

using namespace ferrite;

namespace {

constexpr std::int64_t kVocabulary = 96, kWritten = 10;  // printable characters; 0 begins

Tensor tokens(const std::string& text, bool shifted) {
  std::vector<std::int64_t> t;
  for (const char c : text) t.push_back(c - ' ' + 1);
  if (shifted) t.insert(t.begin(), 0), t.pop_back();
  return Tensor::from(t, {std::ssize(t)});
}

/// Example i: the letters, what the decoder is given, what it should say.
Tensors example(std::int64_t i, std::uint64_t seed) {
  static const char* months[] = {"january", "february", "march",     "april",   "may",      "june",
                                 "july",    "august",   "september", "october", "november", "december"};
  const auto n =
      randint({4}, {seed, stream_of("dates"), static_cast<std::uint64_t>(i)}, 0, 1 << 20).to_vector<std::int64_t>();
  const int year = static_cast<int>(1900 + n[0] % 200), month = static_cast<int>(n[1] % 12),
            day = static_cast<int>(1 + n[2] % 28);
  const char* ending = day % 10 == 1 && day != 11   ? "st"
                       : day % 10 == 2 && day != 12 ? "nd"
                       : day % 10 == 3 && day != 13 ? "rd"
                                                    : "th";
  char from[64], to[64];
  switch (n[3] % 4) {
    case 0: std::snprintf(from, sizeof from, "%d%s of %s %d", day, ending, months[month], year); break;
    case 1: std::snprintf(from, sizeof from, "%.3s %d, %d", months[month], day, year); break;
    case 2: std::snprintf(from, sizeof from, "%d.%d.%d", day, month + 1, year); break;
    default: std::snprintf(from, sizeof from, "%s %d%s %d", months[month], day, ending, year);
  }
  std::snprintf(to, sizeof to, "%04d-%02d-%02d", year, month + 1, day);
  return {tokens(from, false), tokens(to, true), tokens(to, false)};
}

struct Translator : nn::Module {
  nn::Embedding letters{kVocabulary, 32}, digits{kVocabulary, 32};
  nn::Gru encoder{32, 32, {.bidirectional = true}}, decoder{32, 64};
  nn::Linear head{128, kVocabulary};
  explicit Translator(std::uint64_t seed) : Module({.seed = seed}) {
    adopt("letters", letters), adopt("digits", digits), adopt("encoder", encoder), adopt("decoder", decoder),
        adopt("head", head);
  }
  /// Letters x [B, T] and what was said so far, y [B, S] -> logits [B, S, C].
  Tensor forward(const Tensor& x, const Tensor& lengths, const Tensor& y) const {
    const Tensor read = encoder(letters(x), {.lengths = lengths}), said = decoder(digits(y));
    const Tensor seen = unsqueeze(nn::length_mask(lengths, x.shape()[1]), 1);  // [B, 1, T]
    return head(concat({said, scaled_dot_product_attention(said, read, read, {.mask = seen})}, 2));
  }
};

}  // namespace

int main(int argc, char** argv) try {
  std::int64_t epochs = 12;
  std::uint64_t seed = 0;
  CLI::App app("Learns to read dates and fails below 95 % of those that it has not seen");
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber), app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);

  const std::vector<train::Field> fields = {{.sequence = true}, {}, {}};
  const train::DataLoader data(train::Dataset(
                                   4000, [=](std::int64_t i) { return example(i, seed); }, fields),
                               {.batch_size = 64, .seed = seed, .bucket_lengths = {12, 24}, .threads = 1});
  const train::Dataset unseen(
      500, [=](std::int64_t i) { return example(i, seed + 1); }, fields);
  const Translator net(seed);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  const auto forward = [&](const train::Batch& b) {
    const Tensor logits = net.forward(b.x(), b.lengths[0], b.field(1));
    return train::StepOutput{nn::cross_entropy(logits, b.field(2), {.classes_last = true})};
  };
  train::fit(net, forward, data,
             {.optimizer = &adam,
              .epochs = epochs,
              .callbacks = {train::ProgressBar(std::cout, isatty(STDOUT_FILENO) != 0)},
              .clip_norm = 1,
              .compile = train::Compile::always});

  const train::Batch b = unseen.all();
  Tensor said = zeros({b.size(), 1}, Dtype::i64);  // one character after the other, the likeliest
  for (std::int64_t t = 0; t < kWritten; ++t)
    said = concat({said, argmax(slice(net.forward(b.x(), b.lengths[0], said), 1, t), 2)}, 1);
  const Tensor right = all(eq(slice(said, 1, 1), b.field(2)), {1});
  const float share = mean(cast(right, Dtype::f32)).item<float>();
  std::cout << 100 * share << " % of " << b.size() << " unseen dates are right\n";
  return share >= 0.95F ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "dates: " << e.what() << '\n';
  return 1;
}
