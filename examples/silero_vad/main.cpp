// Finds out when someone speaks: Silero VAD, loaded from its scripted PyTorch module, run frame by frame as a stream.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>

#include "vad.h"

using namespace ferrite;

namespace {

/// Returns two seconds of silence, of a vowel by a voice that rises and falls, and of silence again, with some noise.
io::Audio sung(std::int64_t rate) {
  std::vector<float> samples;
  const std::vector<float> noise = normal({6 * rate}, {.seed = 1}).to_vector<float>();
  const std::array<double, 3> formants = {700, 1220, 2600};
  double phase = 0;
  for (std::int64_t t = 0; t < 6 * rate; ++t) {
    const double seconds = static_cast<double>(t) / static_cast<double>(rate);
    const double pitch = 120 + 20 * std::sin(6.283185307 * 0.7 * seconds);
    phase += 6.283185307 * pitch / static_cast<double>(rate);
    double voice = 0;
    for (int h = 1; h * pitch < static_cast<double>(rate) / 2; ++h)
      for (const double formant : formants)
        voice += std::sin(h * phase) / h / (1 + std::pow((h * pitch - formant) / 90, 2));
    const double level = seconds < 2 || seconds > 4 ? 0 : 0.5 * std::fabs(std::sin(6.283185307 * 2 * seconds));
    samples.push_back(
        static_cast<float>(level * voice + 1e-3 * static_cast<double>(noise[static_cast<std::size_t>(t)])));
  }
  return {Tensor::from(samples, {1, std::ssize(samples)}), rate};
}

struct Segment {
  std::int64_t begin = 0, end = 0;  ///< positions in the recording, in samples
};

/// Returns segments of speech as the package does (get_speech_timestamps with its defaults): from a probability of 0.5
/// on, until one below 0.35 is followed by 100 ms without speech; none below 250 ms; 30 ms more on both sides.
std::vector<Segment> segments_of(const std::vector<float>& speech, std::int64_t rate, std::int64_t frame,
                                 std::int64_t samples) {
  const std::int64_t pad = rate * 30 / 1000;
  std::vector<Segment> found;
  const auto close = [&](std::int64_t begin, std::int64_t end) {
    if (end - begin > rate / 4) found.push_back({begin, end});
  };
  bool speaking = false;
  std::int64_t begin = 0, quiet = 0;
  for (std::size_t i = 0; i < speech.size(); ++i) {
    const std::int64_t now = static_cast<std::int64_t>(i) * frame;
    if (speech[i] >= 0.5F) {
      quiet = 0;
      if (!speaking) begin = now;
      speaking = true;
    } else if (speech[i] < 0.35F && speaking) {
      if (quiet == 0) quiet = now;
      if (now - quiet < rate / 10) continue;
      close(begin, quiet);
      speaking = false, quiet = 0;
    }
  }
  if (speaking) close(begin, samples);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i == 0) found[i].begin = std::max<std::int64_t>(0, found[i].begin - pad);
    const bool last = i + 1 == found.size();
    const std::int64_t between = last ? samples - found[i].end : found[i + 1].begin - found[i].end;
    const std::int64_t more = last ? std::min(pad, between) : between < 2 * pad ? between / 2 : pad;
    found[i].end += more;
    if (!last) found[i + 1].begin -= more;
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Finds speech in a sound, by the network of the package silero-vad");
  std::string weights = FERRITE_BUILD "/example-data/silero/silero_vad.jit", wav, frames;
  std::int64_t rate = 16000;
  int repeat = 1;
  app.add_option("WAV", wav, "One channel of 16000 or 8000 samples a second; without a file, a sung vowel");
  app.add_option("--weights", weights, "The package's module; scripts/example-data fetches it")->capture_default_str();
  app.add_option("--rate", rate, "Of the sung vowel")->check(CLI::IsMember({16000, 8000}));
  app.add_option("--frames", frames, "Writes the probability of each frame to this file, one a line");
  app.add_option("--repeat", repeat, "Runs so often; the time is the shortest")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const io::Audio sound = wav.empty() ? sung(rate) : io::read_wav(wav);
  if (sound.samples.size(0) != 1)
    throw std::runtime_error("one channel is understood, not " + std::to_string(sound.samples.size(0)));
  if (sound.rate != 16000 && sound.rate != 8000)
    throw std::runtime_error("16000 or 8000 samples a second are understood, not " + std::to_string(sound.rate));
  const Vad vad = read_vad(weights, sound.rate);
  const auto frame = static_cast<std::size_t>(vad.options().frame());
  std::vector<float> samples = sound.samples.to_vector<float>();
  samples.resize((samples.size() + frame - 1) / frame * frame);  // the last frame ends in zeros

  nn::Stream stream(vad, 1);
  std::vector<float> speech(samples.size() / frame);
  double shortest = std::numeric_limits<double>::infinity();
  for (int run = 0; run < repeat; ++run) {
    stream.reset();
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < speech.size(); ++i)
      stream.step(std::span(samples).subspan(i * frame, frame), std::span(speech).subspan(i, 1));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    shortest = std::min(shortest, took.count() / static_cast<double>(speech.size()));
  }
  if (!frames.empty()) {
    std::ofstream file(frames);
    file << std::setprecision(9);
    for (const float p : speech) file << p << '\n';
  }
  std::cout << std::fixed << std::setprecision(2);
  for (const Segment& s : segments_of(speech, sound.rate, vad.options().frame(), sound.samples.size(1)))
    std::cout << "speech from " << static_cast<double>(s.begin) / static_cast<double>(sound.rate) << " s to "
              << static_cast<double>(s.end) / static_cast<double>(sound.rate) << " s\n";
  std::cout << speech.size() << " frames of 32 ms, " << shortest << " us each\n";
  return stream.on_tensors() == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "silero_vad: " << e.what() << '\n';
  return 1;
}
