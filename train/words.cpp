/// Parses networks in words: a small reader of the builder's own spelling.
#include "ferrite/train/words.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ferrite/io/suggest.h"
#include "ferrite/nn/layers/layers.h"

namespace ferrite::train {
namespace {

/// A word with its numbers, such as "gru(64, 2)".
struct Word {
  std::string name;
  std::vector<double> numbers;

  std::int64_t whole(std::size_t i) const {
    const auto n = static_cast<std::int64_t>(numbers[i]);
    if (static_cast<double>(n) != numbers[i]) refuse("takes whole numbers");
    return n;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    std::string s = "net: " + name + "(";
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      char digits[32];
      const auto end = std::to_chars(digits, digits + sizeof digits, numbers[i]).ptr;
      s += (i ? ", " : "") + std::string(digits, end);
    }
    throw ValueError(s + "): " + what);
  }
};

[[noreturn]] void refuse_text(const std::string& text, std::size_t at) {
  throw ValueError("net: cannot read '" + text.substr(at, 20) +
                   "'; write words as sequence(12).gru(64).last_step().linear(9)");
}

std::vector<Word> words_of(const std::string& text) {
  std::vector<Word> words;
  std::size_t at = 0;
  const auto blanks = [&] { at = std::min(text.size(), text.find_first_not_of(' ', at)); };
  while (true) {
    blanks();
    const std::size_t open = text.find('(', at), close = text.find(')', at);
    if (open == std::string::npos || close == std::string::npos || close < open || open == at) refuse_text(text, at);
    Word word{text.substr(at, open - at), {}};
    if (word.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") != std::string::npos)
      refuse_text(text, at);
    for (at = open + 1, blanks(); at < close; blanks()) {
      double number = 0;
      const auto [end, fault] = std::from_chars(text.data() + at, text.data() + close, number);
      if (fault != std::errc()) refuse_text(text, at);
      word.numbers.push_back(number);
      at = static_cast<std::size_t>(end - text.data());
      blanks();
      if (text[at] == ',')
        ++at;
      else if (at < close)
        refuse_text(text, at);
    }
    words.push_back(word);
    at = close + 1;
    blanks();
    if (at >= text.size()) return words;
    if (text[at++] != '.') refuse_text(text, at - 1);
  }
}

dsl::Builder first_word(const Word& w) {
  static const std::map<std::string, dsl::Builder (*)(std::int64_t)> beginnings = {
      {"sequence", dsl::sequence}, {"features", dsl::features}, {"tokens", dsl::tokens}};
  if (w.name == "image") {
    if (w.numbers.size() != 3) w.refuse("takes channels, height and width");
    return dsl::image(w.whole(0), w.whole(1), w.whole(2));
  }
  const auto found = beginnings.find(w.name);
  if (found == beginnings.end()) w.refuse("a net begins with sequence(n), features(n), tokens(n) or image(c, h, w)");
  if (w.numbers.size() != 1) w.refuse("takes one number");
  return found->second(w.whole(0));
}

/// The rule of a word with between `least` and `most` numbers.
struct Rule {
  std::size_t least, most;
  std::function<void(dsl::Builder&, const Word&)> add;
};

template <class Options>
Rule recurrent(dsl::Builder& (dsl::Builder::*word)(std::int64_t, const Options&, std::string)) {
  return {1, 2, [word](dsl::Builder& b, const Word& w) {
            Options options;
            if (w.numbers.size() > 1) options.layers = w.whole(1);
            (b.*word)(w.whole(0), options, {});
          }};
}

const std::map<std::string, Rule>& rules() {
  using B = dsl::Builder;
  static const std::map<std::string, Rule> all = {
      {"linear", {1, 1, [](B& b, const Word& w) { b.linear(w.whole(0)); }}},
      {"embedding", {1, 1, [](B& b, const Word& w) { b.embedding(w.whole(0)); }}},
      {"gru", recurrent<nn::GruOptions>(&B::gru)},
      {"lstm", recurrent<nn::LstmOptions>(&B::lstm)},
      {"rnn", recurrent<nn::RnnOptions>(&B::rnn)},
      {"causal_conv1d",
       {2, 3,
        [](B& b, const Word& w) {
          b.causal_conv1d(w.whole(0), w.whole(1), {.dilation = w.numbers.size() > 2 ? w.whole(2) : 1});
        }}},
      {"conv2d",
       {2, 3,
        [](B& b, const Word& w) {
          b.conv2d(w.whole(0), w.whole(1), {.padding = {w.numbers.size() > 2 ? w.whole(2) : 0}});
        }}},
      {"power_spectrum",
       {2, 2,
        [](B& b, const Word& w) {
          b.stft(w.whole(0), {.hop_length = w.whole(1), .spectrum = nn::Spectrum::power, .center = false});
        }}},
      {"mel_bands",
       {2, 3,
        [](B& b, const Word& w) {
          b.mel_bands(w.whole(0), w.numbers[1], {.log_offset = w.numbers.size() > 2 ? w.numbers[2] : 0});
        }}},
      {"max_pool2d", {1, 1, [](B& b, const Word& w) { b.max_pool2d(w.whole(0)); }}},
      {"batch_norm", {0, 0, [](B& b, const Word&) { b.batch_norm(); }}},
      {"min_gru", {1, 1, [](B& b, const Word& w) { b.min_gru(w.whole(0)); }}},
      {"min_lstm", {1, 1, [](B& b, const Word& w) { b.min_lstm(w.whole(0)); }}},
      {"lru", {1, 1, [](B& b, const Word& w) { b.lru(w.whole(0)); }}},
      {"mamba", {0, 0, [](B& b, const Word&) { b.mamba(); }}},
      {"standardize", {0, 0, [](B& b, const Word&) { b.standardize(); }}},
      {"layer_norm", {0, 0, [](B& b, const Word&) { b.layer_norm(); }}},
      {"dropout", {1, 1, [](B& b, const Word& w) { b.dropout(w.numbers[0]); }}},
      {"last_step", {0, 0, [](B& b, const Word&) { b.last_step(); }}},
      {"mean_over_time", {0, 0, [](B& b, const Word&) { b.mean_over_time(); }}},
      {"flatten", {0, 0, [](B& b, const Word&) { b.flatten(); }}},
  };
  return all;
}

/// Returns a hint such as "; did you mean 'gru'?", or an empty text.
std::string suggestion(const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& [word, rule] : rules()) known.push_back(word);
  const std::vector<std::string> activations = nn::activation_names();
  known.insert(known.end(), activations.begin(), activations.end());
  const std::string_view near = io::detail::nearest(name, known);
  return near.empty() ? "" : "; did you mean '" + std::string(near) + "'?";
}

void add_word(dsl::Builder& b, const Word& w) {
  const auto rule = rules().find(w.name);
  if (rule != rules().end()) {
    const Rule& r = rule->second;
    if (w.numbers.size() < r.least || w.numbers.size() > r.most)
      w.refuse("takes " + std::to_string(r.least) +
               (r.most > r.least ? " or " + std::to_string(r.most) : std::string()) + " numbers");
    return r.add(b, w);
  }
  const auto& activations = nn::activation_names();
  if (std::find(activations.begin(), activations.end(), w.name) == activations.end())
    w.refuse("is not a word of the builder" + suggestion(w.name));
  if (!w.numbers.empty()) w.refuse("takes 0 numbers");
  b.activation(w.name);
}

}  // namespace

dsl::Builder parse_words(const std::string& text) {
  const std::vector<Word> words = words_of(text);
  dsl::Builder b = first_word(words[0]);
  for (std::size_t i = 1; i < words.size(); ++i) add_word(b, words[i]);
  return b;
}

}  // namespace ferrite::train
