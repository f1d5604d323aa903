#pragma once
/// Recordings of speech, mixed with noise and rooms to the clips on which nets are trained and tested.
#include <ferrite/ferrite.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <string>

#include "biquad.h"
#include "keywords.h"
#include "noise.h"

namespace nets {

/// Features of speech are taken every `kHop` samples from frames of `kFrame`.
inline constexpr std::int64_t kFrame = 400, kHop = 160;
/// Returns the number of frames of a clip.
constexpr std::int64_t frames_of(std::int64_t samples) { return samples < kFrame ? 0 : 1 + (samples - kFrame) / kHop; }

/// Returns a signal at 16 kHz from one at another rate, by a sinc in a Hann window.
inline Samples at_speech_rate(const Samples& x, std::int64_t rate) {
  constexpr std::int64_t target = 16000;
  if (rate == target) return x;
  const std::int64_t phases = target / std::gcd(rate, target);  // sample i lies between those of x as i + phases does
  const double cut = std::min(1.0, static_cast<double>(target) / static_cast<double>(rate));
  const auto half = static_cast<std::int64_t>(16 / cut);
  std::vector<double> taps;
  for (std::int64_t phase = 0; phase < phases; ++phase)
    for (std::int64_t k = 1 - half; k <= half; ++k) {
      const double d =
          static_cast<double>(phase * rate % target) / static_cast<double>(target) - static_cast<double>(k);
      const double p = std::numbers::pi * cut * d,
                   window = 0.5 + 0.5 * std::cos(std::numbers::pi * d / static_cast<double>(half));
      taps.push_back(cut * (p == 0 ? 1 : std::sin(p) / p) * window);
    }
  const std::int64_t n = std::ssize(x) * target / rate;
  Samples y(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t centre = i * rate / target;
    const double* tap = &taps[static_cast<std::size_t>(i % phases * 2 * half)];
    double sum = 0;
    for (std::int64_t k = centre + 1 - half; k <= centre + half; ++k, ++tap)
      if (k >= 0 && k < std::ssize(x)) sum += *tap * x[static_cast<std::size_t>(k)];
    y[static_cast<std::size_t>(i)] = static_cast<float>(sum);
  }
  return y;
}

/// An utterance at 16 kHz: its loudest 20 ms have the root mean square 0.25; silence before and after it is cut off.
struct Utterance {
  Samples samples;
  std::vector<bool> active;  ///< of each 10 ms: whether there is speech
};

/// Marks the 10 ms in which a clean recording is at most 40 dB softer than its loudest part, and pauses up to 100 ms.
inline std::vector<bool> activity(const Samples& x) {
  constexpr std::size_t kBlock = 160, kPause = 10;
  std::vector<double> level;
  for (std::size_t at = 0; at + kBlock <= x.size(); at += kBlock)
    level.push_back(root_mean_square(
        Samples(x.begin() + static_cast<std::ptrdiff_t>(at), x.begin() + static_cast<std::ptrdiff_t>(at + kBlock))));
  const double loudest = level.empty() ? 0 : *std::max_element(level.begin(), level.end());
  std::vector<bool> active(level.size());
  for (std::size_t i = 0; i < level.size(); ++i) active[i] = level[i] > 0.01 * loudest;
  for (std::size_t i = 0, last = level.size(); i < active.size(); ++i) {
    if (!active[i]) continue;
    if (last < i && i - last <= kPause)
      std::fill(active.begin() + static_cast<std::ptrdiff_t>(last), active.begin() + static_cast<std::ptrdiff_t>(i),
                true);
    last = i;
  }
  return active;
}

inline Utterance utterance(Samples x) {
  std::vector<bool> active = activity(x);
  const auto first = std::find(active.begin(), active.end(), true) - active.begin();
  const auto end = active.rend() - std::find(active.rbegin(), active.rend(), true);
  if (first >= end) return {};
  Utterance u{Samples(x.begin() + first * 160, x.begin() + end * 160),
              std::vector<bool>(active.begin() + first, active.begin() + end)};
  double loudest = 1e-9;
  for (std::size_t at = 0; at + 320 <= u.samples.size(); at += 160)
    loudest = std::max(loudest, root_mean_square(Samples(u.samples.begin() + static_cast<std::ptrdiff_t>(at),
                                                         u.samples.begin() + static_cast<std::ptrdiff_t>(at + 320))));
  for (float& v : u.samples) v *= static_cast<float>(0.25 / loudest);
  return u;
}

/// Returns an utterance as by a longer or shorter speaker, who is slower and lower, or faster and higher.
inline Utterance varied(const Utterance& u, Draw& draw) {
  constexpr std::array<std::int64_t, 7> rates{13600, 14400, 15200, 16000, 16960, 17920, 19200};
  const std::int64_t rate = rates[static_cast<std::size_t>(draw.below(rates.size()))];
  return rate == 16000 ? u : utterance(at_speech_rate(u.samples, rate));
}

/// Reads a recording, of any rate.
inline Utterance read_utterance(const std::filesystem::path& path) {
  const ferrite::io::Audio audio = ferrite::io::read_wav(path);
  const ferrite::Tensor mono = ferrite::select(audio.samples, 0, 0);
  return utterance(at_speech_rate(mono.to_vector<float>(), audio.rate));
}

/// Reads all recordings of a folder, in the order of their names. Throws for a folder without recordings.
inline std::vector<Utterance> read_utterances(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".wav") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Utterance> all;
  for (const auto& path : paths) {
    all.push_back(read_utterance(path));
    if (all.back().samples.size() < 1600) all.pop_back();  // a voice that says nothing
  }
  if (all.empty()) throw ferrite::IoError(folder.string() + ": no recordings; run scripts/make_speech");
  return all;
}

/// A clip of a microphone: speech, somewhere, and noise.
struct Clip {
  Samples samples;
  std::vector<bool> active;  ///< of each 10 ms: whether there is speech
};

/// The conditions under which a clip is made.
struct Conditions {
  double lowest_snr = -5, highest_snr = 30;  ///< ratio of speech to noise, in dB
  int first_noise = 0, noises = kTrainedNoises;
  double rooms = 0.6;        ///< share of clips with reflections
  double microphones = 0.8;  ///< share of clips with a microphone that favours some frequencies
};

/// Returns a clip of silence, to which `place` adds speech.
inline Clip silence(std::size_t n) { return {Samples(n, 0.0F), std::vector<bool>(n / 160, false)}; }
/// Adds an utterance at a multiple of 10 ms with a loudness; what does not fit is cut off.
inline void place(Clip& clip, const Utterance& u, std::size_t at, double gain) {
  for (std::size_t i = 0; i < u.samples.size() && at * 160 + i < clip.samples.size(); ++i)
    clip.samples[at * 160 + i] += static_cast<float>(gain * u.samples[i]);
  for (std::size_t i = 0; i < u.active.size() && at + i < clip.active.size(); ++i)
    if (u.active[i]) clip.active[at + i] = true;
}
/// Changes the sound as a microphone and its place may do.
inline void add_microphone(Samples& x, Draw& draw) {
  using Kind = Biquad::Kind;
  std::array<Biquad, 4> filters{
      Biquad(Kind::high_pass, draw(30, 250), 0.7, kSpeechRate),
      Biquad(Kind::peak, 250 * std::pow(2, draw(0, 2)), draw(0.5, 2), kSpeechRate, draw(-8, 8)),
      Biquad(Kind::peak, 1000 * std::pow(2, draw(0, 2.3)), draw(0.5, 2), kSpeechRate, draw(-10, 10)),
      Biquad(Kind::low_pass, draw(3300, 7600), 0.7, kSpeechRate)};
  for (float& v : x) {
    double y = v;
    for (Biquad& filter : filters) y = filter(y);
    v = static_cast<float>(y);
  }
}
/// Adds a room and one or two noises, and chooses the microphone and its level.
inline void record(Clip& clip, const Conditions& c, Draw& draw) {
  if (draw(0, 1) < c.rooms) add_room(clip.samples, draw(0.1, 0.8), draw(0.1, 0.6), draw);
  const double snr = draw(c.lowest_snr, c.highest_snr), level = std::pow(10, draw(-40, 0) / 20);
  const auto any = [&] { return static_cast<Noise>(c.first_noise + draw.below(c.noises)); };
  Samples background = noise(any(), clip.samples.size(), draw);
  if (draw(0, 1) < 0.4) {  // two at once
    const Samples other = noise(any(), clip.samples.size(), draw);
    const double share = draw(0.2, 1);
    for (std::size_t t = 0; t < background.size(); ++t)
      background[t] = static_cast<float>((background[t] + share * other[t]) / std::sqrt(1 + share * share));
  }
  const double gain = 0.12 * std::pow(10, -snr / 20);  // speech has about half of its loudest level on average
  for (std::size_t t = 0; t < clip.samples.size(); ++t) clip.samples[t] += static_cast<float>(gain) * background[t];
  if (draw(0, 1) < c.microphones) add_microphone(clip.samples, draw);
  for (float& v : clip.samples) v = std::clamp(static_cast<float>(level) * v, -1.0F, 1.0F);
}

/// Returns the state of each frame of the net's features: the 10 ms around the middle of the frame.
inline std::vector<float> frame_targets(const std::vector<bool>& active, std::int64_t samples) {
  std::vector<float> target(static_cast<std::size_t>(frames_of(samples)));
  for (std::size_t f = 0; f < target.size(); ++f) target[f] = f + 1 < active.size() && active[f + 1] ? 1.0F : 0.0F;
  return target;
}

/// The first two layers of both nets of speech, which compute the logarithm of power in mel bands.
inline constexpr std::int64_t kBands = 32;
inline ferrite::dsl::Builder mel_features() {
  return ferrite::dsl::sequence(1)
      .stft(kFrame, {.hop_length = kHop, .spectrum = ferrite::nn::Spectrum::power, .center = false})
      .mel_bands(kBands, kSpeechRate, {.log_offset = 1e-5});
}

/// The layers of the two nets after the features, without the last one, and the whole nets in the words of the command
/// `ferrite`.
inline ferrite::dsl::Builder voice_activity_head(ferrite::dsl::Builder features) {
  return features.standardize().gru(32).linear(1);
}
inline constexpr const char* kVoiceActivityWords =
    "sequence(1).power_spectrum(400, 160).mel_bands(32, 16000, 1e-5).standardize().gru(32).linear(1).sigmoid()";
inline ferrite::dsl::Builder keywords_head(ferrite::dsl::Builder features) {
  return features.standardize().gru(56).linear(kClasses);
}
inline constexpr const char* kKeywordsWords =
    "sequence(1).power_spectrum(400, 160).mel_bands(32, 16000, 1e-5).standardize().gru(56).linear(11).softmax()";

/// Returns the logarithm of the level of every frame.
inline std::vector<float> frame_levels(const Samples& x) {
  std::vector<float> level;
  for (std::int64_t f = 0; f < frames_of(std::ssize(x)); ++f) {
    const auto begin = x.begin() + f * kHop;
    level.push_back(static_cast<float>(std::log(root_mean_square(Samples(begin, begin + kFrame)) + 1e-6)));
  }
  return level;
}

/// How a net is trained on features.
struct Training {
  std::string loss;
  double learning_rate;
  std::int64_t epochs;
  std::uint64_t seed;
};

/// Trains a part that takes features on batches of 16, by Adam with a rate that falls as a cosine, and copies what it
/// has learned into a net that begins with `mel_features`: the parameters, and the mean and deviation of
/// nn::Standardize, its third layer.
inline void train_on_features(const ferrite::dsl::Network& part, const ferrite::dsl::Network& net,
                              const ferrite::train::Dataset& data, const Training& how) {
  using namespace ferrite;
  train::adapt(part, data);
  const train::DataLoader loader(data, {.batch_size = 16, .seed = how.seed});
  nn::Adam adam(part.parameters(), {.learning_rate = how.learning_rate});
  nn::FunctionSchedule schedule(adam, nn::cosine_rate(how.epochs * loader.batches()));
  train::FitOptions options{.loss = how.loss, .optimizer = &adam, .epochs = how.epochs};
  options.clip_norm = 1, options.schedule = &schedule, options.callbacks = {train::ProgressBar(std::cout)};
  train::fit(part, loader, options);

  const auto from = part.parameters(), to = net.parameters();
  if (from.size() != to.size()) throw ValueError("train_on_features: the nets differ");
  for (std::size_t i = 0; i < from.size(); ++i) to[i].assign(from[i].peek());
  const auto& statistics = part.layer<nn::Standardize>("0");
  const auto& standardize = net.layer<nn::Standardize>("2");
  standardize.mean.assign(statistics.mean.peek()), standardize.deviation.assign(statistics.deviation.peek());
}

}  // namespace nets
