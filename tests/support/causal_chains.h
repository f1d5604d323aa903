#pragma once
/// Random chains of layers that can be streamed, with the builder's words as text.
#include <algorithm>
#include <random>
#include <string>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream.h"

namespace causal_chains {

using namespace ferrite;

/// Number of steps that attention and positions can hold.
inline constexpr std::int64_t kCapacity = 256;

struct Chain {
  dsl::Builder words;
  std::string text;  ///< "sequence(3) causal_conv1d(2, k3 d2 s2) gru(4)"
};

/// Makes random chains from a seed and keeps track of the widths that the builder infers. Chains are causal, or some of
/// their convolutions look ahead.
class Maker {
 public:
  explicit Maker(std::uint64_t seed, bool ahead = false) : ahead_(ahead), random_(seed) {}

  Chain chain() {
    width_ = between(1, 4);
    Chain all{dsl::sequence(width_), "sequence(" + std::to_string(width_) + ")"};
    for (std::int64_t n = between(1, 5); n > 0; --n) add(all, true);
    return all;
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  bool once_in(std::int64_t n) { return between(1, n) == 1; }
  void say(Chain& c, const std::string& word) { c.text += " " + word; }
  static std::string text(std::int64_t n) { return std::to_string(n); }
  std::int64_t new_width() { return width_ = between(1, 4); }
  /// Returns a random stride that keeps the product of all strides small.
  std::int64_t stride(bool paced) {
    const std::int64_t most = paced ? std::max<std::int64_t>(1, std::min<std::int64_t>(3, 12 / strides_)) : 1;
    const std::int64_t s = between(1, most);
    strides_ *= s;
    return s;
  }

  /// Appends a word. Unless `paced`, each of its inputs gives an output step.
  void add(Chain& c, bool paced) {
    if (ahead_ && once_in(2)) return conv1d(c, paced);
    switch (between(0, paced ? 19 : 14)) {
      case 0: say(c, "linear"), c.words.linear(new_width()); return;
      case 1:
      case 2: causal_conv1d(c, paced); return;
      case 3: conv1d(c, paced); return;
      case 4:
      case 5: recurrent(c); return;
      case 6: norm(c); return;
      case 7:
      case 8: activation(c); return;
      case 9: residual(c); return;
      case 10: attention(c); return;
      case 11: say(c, "dropout"), c.words.dropout(0.5); return;
      case 12: positions(c); return;
      case 13:
      case 14: branches(c); return;
      case 18:
      case 19: spectra(c); return;
      default: pool(c); return;
    }
  }

  void causal_conv1d(Chain& c, bool paced) {
    const std::int64_t in = width_, k = between(1, 3), d = between(1, 3), s = stride(paced);
    const std::int64_t groups = in <= 4 && once_in(3) ? in : 1,
                       out = groups == 1 ? new_width() : width_ = groups * between(1, 2);
    say(c, "causal_conv1d(k" + text(k) + " d" + text(d) + " s" + text(s) + " g" + text(groups) + ")");
    c.words.causal_conv1d(out, k, {.dilation = d, .stride = s, .groups = groups, .bias = once_in(2)});
  }
  void conv1d(Chain& c, bool paced) {
    const std::int64_t in = width_, k = between(1, 3), d = between(1, 3), s = stride(paced);
    const std::int64_t groups = in <= 4 && once_in(3) ? in : 1,
                       out = groups == 1 ? new_width() : width_ = groups * between(1, 2);
    nn::ConvOptions o{.stride = {s}, .dilation = {d}, .groups = groups, .bias = once_in(2)};
    if (!paced || once_in(2)) o.padding = ConvolutionPadding::causal;
    if (ahead_ && s == 1 && !once_in(4)) o.padding = ConvolutionPadding::same;
    if (ahead_ && paced && once_in(2)) o.padding = {between(0, (k - 1) * d)};
    const auto rule = o.padding.rule;
    say(c, "conv1d(k" + text(k) + " d" + text(d) + " s" + text(s) + " g" + text(groups) + " " +
               (rule == ConvolutionPadding::causal ? "causal"
                : rule == ConvolutionPadding::same ? "same"
                                                   : "p" + o.padding.amounts.str()) +
               ")");
    c.words.conv1d(out, k, o);
  }
  void pool(Chain& c) {
    const std::int64_t kind = between(0, 2), k = between(1, 3), s = stride(true);
    say(c, (kind == 0 ? "max" : kind == 1 ? "avg" : "lp") + ("_pool1d(k" + text(k)) + " s" + text(s) + ")");
    const std::int64_t p = ahead_ ? between(0, k / 2) : 0;
    if (p > 0) say(c, "padded");
    if (kind == 0) c.words.max_pool1d(k, {.stride = {s}, .padding = {p}, .dilation = {between(1, 2)}});
    if (kind == 1) c.words.avg_pool1d(k, {.stride = {s}, .padding = {p}});
    if (kind == 2) c.words.lp_pool1d(2, k, {.stride = {s}});
  }
  void spectra(Chain& c) {
    const std::int64_t n = between(4, 5), s = stride(true), back = between(1, n);
    const bool inverse = once_in(2);
    say(c,
        "stft(" + text(n) + " s" + text(s) + ")" + (inverse ? " inverse_stft(s" + text(back) + ") linear" : " linear"));
    const bool whole = inverse || once_in(2);
    c.words.stft(
        n, {.hop_length = s, .spectrum = whole ? nn::Spectrum::complex : nn::Spectrum::magnitude, .center = false});
    if (inverse) c.words.inverse_stft(n, {.hop_length = back, .window = nn::SpectralWindow::hamming, .center = false});
    c.words.linear(new_width());
  }
  void recurrent(Chain& c) {
    const std::int64_t kind = between(0, 3), layers = between(1, 2), n = new_width();
    say(c, (kind == 0 ? "gru" : kind == 1 ? "lstm" : kind == 2 ? "rnn" : "recurrent") + ("(l" + text(layers)) + ")");
    const int L = static_cast<int>(layers);
    if (kind == 0) c.words.gru(n, {.layers = L});
    if (kind == 1) c.words.lstm(n, {.layers = L});
    if (kind == 2) c.words.rnn(n, {.layers = L});
    if (kind == 3) c.words.recurrent<nn::LayerNormGruCell>(n, {.layers = L});
  }
  void norm(Chain& c) {
    const std::int64_t kind = between(0, 2);
    say(c, kind == 0 ? "layer_norm" : kind == 1 ? "batch_norm" : "rms_norm");
    if (kind == 0) c.words.layer_norm();
    if (kind == 1) c.words.batch_norm();
    if (kind == 2) c.words.rms_norm();
  }
  void activation(Chain& c) {
    const auto& names = nn::activation_names();
    const std::string name = names[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(names.size()) - 1))];
    say(c, name), c.words.activation(name);
  }
  void attention(Chain& c) {
    width_ = 4;
    say(c, "linear(4) attention");
    const std::int64_t heads = between(1, 2);
    const nn::Positions positions = once_in(2) ? nn::Positions::rotary : nn::Positions::none;
    c.words.linear(4).attention(heads, {.causal = true, .positions = positions, .capacity = kCapacity});
  }
  void positions(Chain& c) {
    const bool learned = once_in(2);
    say(c, learned ? "learned positions" : "positions");
    learned ? c.words.positions(kCapacity) : c.words.positions();
  }
  /// Appends a residual of one or two words without strides and one that restores the width.
  void residual(Chain& c) {
    const std::int64_t width = width_, n = between(1, 2);
    say(c, "residual{");
    c.words.residual([&](dsl::Builder& part) {
      Chain inner{part, {}};
      for (std::int64_t i = 0; i < n; ++i) add(inner, false);
      inner.words.linear(width);
      part = inner.words;
      c.text += inner.text + " linear }";
    });
    width_ = width;
  }

  /// Appends branches of two words without strides, summed or joined.
  void branches(Chain& c) {
    const bool sums = once_in(2);
    const std::int64_t in = width_, out = between(1, 3);
    const auto part = [&, this](dsl::Builder& words) {
      width_ = in;
      Chain inner{words, {}};
      add(inner, false);
      inner.words.linear(out);
      words = inner.words;
      c.text += inner.text + " linear;";
    };
    say(c, sums ? "parallel{" : "concat{");
    sums ? c.words.parallel({part, part}) : c.words.concat({part, part});
    say(c, "}");
    width_ = sums ? out : 2 * out;
  }

  bool ahead_;
  std::mt19937_64 random_;
  std::int64_t width_ = 1, strides_ = 1;
};

}  // namespace causal_chains
