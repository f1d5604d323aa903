// A small recurrent net learns to detect speech, from speech of scripts/make_speech in noise of our own:
// `voice_activity --out FILE` trains for some minutes, `voice_activity --test FILE` prints how well a net does on
// voices, sentences and noises that it has not heard, beside a threshold of the energy and, with --silero, Silero's
// net.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "../silero_vad/vad.h"
#include "scores.h"
#include "speech.h"

using namespace ferrite;
using namespace nets;

namespace {

// Clips are longer than any pause, so that a stream of hours stays as it was in training.
constexpr std::int64_t kTrained = 10 * 16000, kTested = 60 * 16000;

/// Returns clips in which some people speak and pause.
std::vector<Clip> clips(const std::vector<const std::vector<Utterance>*>& speech, std::size_t n, std::int64_t length,
                        const Conditions& c, std::uint64_t seed) {
  std::vector<Clip> all;
  for (std::size_t i = 0; i < n; ++i) {
    Draw draw(seed * 1000003 + i);
    Clip clip = silence(static_cast<std::size_t>(length));
    const bool nobody = draw(0, 1) < 0.1;
    for (double at = draw(-1.5, 2); !nobody && at < static_cast<double>(length) / 16000 - 0.3;
         at += std::pow(10, draw(-0.7, 0.6))) {
      const auto& from = *speech[static_cast<std::size_t>(draw.below(static_cast<int>(speech.size())))];
      const Utterance& u = from[static_cast<std::size_t>(draw.below(static_cast<int>(from.size())))];
      if (at > 0) place(clip, u, static_cast<std::size_t>(at * 100), std::pow(10, draw(-8, 0) / 20));
      at = std::max(at, 0.0) + static_cast<double>(u.active.size()) / 100;
    }
    record(clip, c, draw);
    all.push_back(std::move(clip));
  }
  return all;
}

Tensor sound(const Clip& clip) { return Tensor::from(clip.samples, {1, std::ssize(clip.samples), 1}); }

/// Returns the features of all clips, [N, F, 32], and their targets, [N, F, 1].
train::Dataset dataset(const std::vector<Clip>& all) {
  const dsl::Network features = mel_features().build(0);
  Tensors x, y;
  for (const Clip& clip : all) {
    x.push_back(select(features(sound(clip)), 0, 0));
    y.push_back(Tensor::from(frame_targets(clip.active, kTrained), {frames_of(kTrained), 1}));
  }
  return train::Dataset({stack(x, 0), stack(y, 0)});
}

/// Returns scores of all frames of clips; `f` gives those of one clip.
template <class F>
Scores scores(const std::vector<Clip>& all, F f) {
  Scores s;
  for (const Clip& clip : all) {
    const std::vector<float> score = f(clip), target = frame_targets(clip.active, std::ssize(clip.samples));
    s.score.insert(s.score.end(), score.begin(), score.end());
    for (const float t : target) s.speech.push_back(t > 0.5F);
  }
  return s;
}

std::vector<float> streamed(nn::Stream& stream, const Clip& clip) {
  std::vector<float> speech;
  float y = 0;
  stream.reset();
  for (const float v : clip.samples)
    if (stream.feed(std::span(&v, 1), std::span(&y, 1))) speech.push_back(y);
  return speech;
}

/// Prints the figures of one set of clips; returns whether the stream has the bits of the whole run.
bool row(const char* name, const std::vector<Clip>& all, const nn::Layer& net, const nn::Layer* silero, float quiet) {
  nn::Stream stream = net.stream();
  const Scores ours = scores(all, [&](const Clip& c) { return streamed(stream, c); });
  const Scores level = scores(all, [](const Clip& c) { return frame_levels(c.samples); });
  std::printf("%-34s %6.4f %6.2f %%  %6.4f %6.2f %%", name, ours.area_under_roc(), 100 * ours.error(0.5F),
              level.area_under_roc(), 100 * level.error(quiet));
  if (silero) {
    const Scores theirs = scores(all, [&](const Clip& c) {
      const std::vector<float> p =
          (*silero)(reshape(Tensor::from(c.samples, {kTested}), {1, kTested / 512, 512})).to_vector<float>();
      std::vector<float> frames;
      for (std::int64_t f = 0; f < frames_of(kTested); ++f)
        frames.push_back(
            p[static_cast<std::size_t>(std::min<std::int64_t>((f * kHop + kFrame / 2) / 512, kTested / 512 - 1))]);
      return frames;
    });
    std::printf("  %6.4f %6.2f %%", theirs.area_under_roc(), 100 * theirs.error(0.5F));
  }
  std::printf("\n");
  std::fflush(stdout);
  return streamed(stream, all[0]) == net(sound(all[0])).to_vector<float>();
}

/// Prints in how many frames of a recording our net and Silero's agree.
void compare(const nn::Layer& net, const nn::Layer& silero, const std::filesystem::path& recording) {
  const io::Audio audio = io::read_wav(recording);
  Samples x = at_speech_rate(select(audio.samples, 0, 0).to_vector<float>(), audio.rate);
  x.resize(x.size() / 512 * 512);
  const std::vector<float> ours = net(Tensor::from(x, {1, std::ssize(x), 1})).to_vector<float>();
  const std::vector<float> theirs = silero(Tensor::from(x, {1, std::ssize(x) / 512, 512})).to_vector<float>();
  Scores s{ours, {}};
  std::size_t speech = 0;
  for (std::size_t f = 0; f < ours.size(); ++f) {
    s.speech.push_back(theirs[std::min((f * kHop + kFrame / 2) / 512, theirs.size() - 1)] > 0.5F);
    speech += s.speech.back();
  }
  std::printf("%s: Silero hears speech in %.1f %% of frames; ours agrees in %.1f %%, area under the curve %.4f\n",
              recording.filename().c_str(), 100.0 * static_cast<double>(speech) / static_cast<double>(ours.size()),
              100 * (1 - s.error(0.5F)), s.area_under_roc());
}

}  // namespace

int main(int argc, char** argv) try {
  std::string out = "voice_activity.safetensors", tested, folder = FERRITE_BUILD "/speech", silero, recording;
  std::uint64_t seed = 1;
  std::int64_t epochs = 24;
  std::size_t count = 1500;
  CLI::App app("Trains a net that detects speech, or tests one");
  app.add_option("--out", out, "The file to write"), app.add_option("--test", tested, "A file to test instead");
  app.add_option("--speech", folder, "The folder of scripts/make_speech");
  app.add_option("--silero", silero, "silero_vad.jit, to compare with");
  app.add_option("--recording", recording, "A recording of people, on which both nets are compared");
  app.add_option("--seed", seed), app.add_option("--epochs", epochs), app.add_option("--clips", count);
  CLI11_PARSE(app, argc, argv);

  const dsl::Network net = voice_activity_head(mel_features()).sigmoid().build(seed);
  const auto read = [&](const char* kind, const char* part) {
    return read_utterances(std::filesystem::path(folder) / kind / part);
  };
  float quiet = -4;
  if (tested.empty()) {
    const auto sentences = read("sentences", "train"), languages = read("languages", "train");
    const std::vector<Clip> all = clips({&sentences, &languages}, count, kTrained, {.microphones = 0.3}, seed);
    quiet = scores(all, [](const Clip& c) { return frame_levels(c.samples); }).best_threshold();
    const dsl::Network part = voice_activity_head(dsl::sequence(kBands)).build(seed);
    train_on_features(part, net, dataset(all), {"bce_with_logits", 4e-3, epochs, seed});
    train::save_net(net, kVoiceActivityWords, out, {.metadata = {{"energy_threshold", std::to_string(quiet)}}});
  } else {
    const io::TensorFile file = io::read_safetensors(tested);
    io::load(net, file);
    quiet = std::stof(file.metadata().at("energy_threshold"));
  }
  net.eval();

  std::optional<Vad> other;
  if (!silero.empty()) other.emplace(read_vad(silero, 16000));
  const auto sentences = read("sentences", "test"), languages = read("languages", "test"),
             flite = read("sentences", "flite");
  std::printf(
      "%-34s %s\n", "frames of 10 ms",
      other ? "net: area, error   energy: area, error  Silero: area, error" : "net: area, error   energy: area, error");
  const nn::Layer* const beside = other ? &*other : nullptr;
  bool same =
      row("unseen voices and sentences", clips({&sentences, &languages}, 20, kTested, {}, 1000), net, beside, quiet);
  same &= row("  10 to 30 dB above the noise", clips({&sentences, &languages}, 10, kTested, {.lowest_snr = 10}, 1001),
              net, beside, quiet);
  same &=
      row("  -5 to 5 dB", clips({&sentences, &languages}, 10, kTested, {.highest_snr = 5}, 1002), net, beside, quiet);
  same &= row("  unseen noises (bells, traffic)",
              clips({&sentences, &languages}, 10, kTested, {.first_noise = kTrainedNoises, .noises = 2}, 1003), net,
              beside, quiet);
  same &= row("another synthesiser (flite)", clips({&flite}, 10, kTested, {}, 1004), net, beside, quiet);
  if (other && !recording.empty()) compare(net, *other, recording);
  std::cout << (same ? "as a stream the same bits\n" : "as a stream OTHER BITS\n");
  return same ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "voice_activity: " << e.what() << '\n';
  return 1;
}
