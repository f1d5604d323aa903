/// The trained nets in data/nets: they stay as good as docs/nets.md says, stream, and become C. Recordings are those of
/// tests/data/nets (the sentence by a voice that was not in training, the words by one that was, at another speed);
/// noise, rooms and the amplifier are computed here.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>

#include "../examples/nets/circuit.h"
#include "../examples/nets/guitar.h"
#include "../examples/nets/scores.h"
#include "../examples/nets/signals.h"
#include "../examples/nets/speech.h"
#include "ferrite/exchange/freeze.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "support/frozen.h"

using namespace ferrite;
using namespace nets;

namespace {

std::filesystem::path net_path(const std::string& name) {
  const char* folder = std::getenv("FERRITE_DATA");
  return std::filesystem::path(folder ? folder : std::string(FERRITE_SOURCE_DIR) + "/data") / "nets" / name;
}

std::unique_ptr<nn::Layer> amplifier() { return io::read_nam(net_path("amplifier.nam")).layer; }
dsl::Network voice_activity() {
  dsl::Network net = voice_activity_head(mel_features()).sigmoid().build(0);
  io::load(net, net_path("voice_activity.safetensors"));
  net.eval();
  return net;
}
dsl::Network keywords() {
  dsl::Network net = keywords_head(mel_features()).softmax().build(0);
  io::load(net, net_path("keywords.safetensors"));
  net.eval();
  return net;
}

/// Sets every parameter but small biases to zeros in turn; returns the names of those of which `noticed` returns
/// false, each followed by a blank.
template <class F>
std::string unnoticed_damage(const nn::Layer& net, F noticed) {
  std::string names;
  for (const auto& [name, variable] : net.named_parameters()) {
    if (variable.peek().numel() < 16) continue;
    const Tensor good = variable.peek();
    variable.assign(zeros(good.shape()));
    if (!noticed()) names += name + " ";
    variable.assign(good);
  }
  return names;
}

/// Returns all outputs of a stream for a sound of one channel, one after the other.
std::vector<float> streamed(const nn::Layer& net, const std::vector<float>& x, std::size_t width) {
  nn::Stream stream = net.stream();
  BOOST_TEST(stream.on_tensors() == 0);
  std::vector<float> all, y(width);
  for (const float v : x)
    if (stream.feed(std::span(&v, 1), y)) all.insert(all.end(), y.begin(), y.end());
  return all;
}

constexpr double kAmplifierError = 0.007;  ///< largest error-to-signal ratio; 0.0064 when it was trained
constexpr double kActivityError = 0.08;    ///< largest share of wrong frames

Tensor sound(const std::vector<float>& x) { return Tensor::from(x, {1, std::ssize(x), 1}); }

/// Playing that the amplifier net was not trained with, and the circuit's answer.
struct Playing {
  Playing() : dry(playing(1.5, Amplifier::rate, 31337)), wet(Amplifier().play(dry)) {}
  std::vector<float> dry, wet;
};
const Playing& played() {
  static const Playing p;
  return p;
}
double amplifier_error(const nn::Layer& net) {
  return error_to_signal(net(sound(played().dry)).to_vector<float>(), played().wet);
}

Utterance spoken(const std::string& name) { return read_utterance(support::fixture_path("nets/" + name + ".wav")); }

/// Returns a clip in which a sentence is spoken after a second, 10 dB above a noise.
Clip conversation(Noise kind) {
  Clip clip = silence(6 * 16000);
  place(clip, spoken("sentence"), 100, 0.7);
  Draw draw(5);
  record(clip, {.lowest_snr = 10, .highest_snr = 10, .first_noise = static_cast<int>(kind), .noises = 1}, draw);
  return clip;
}
Scores activity_scores(const nn::Layer& net, Noise kind) {
  const Clip clip = conversation(kind);
  Scores s{net(sound(clip.samples)).to_vector<float>(), {}};
  for (const float t : frame_targets(clip.active, std::ssize(clip.samples))) s.speech.push_back(t > 0.5F);
  return s;
}

std::vector<std::size_t> heard(const nn::Layer& net, const Clip& clip) {
  std::vector<std::size_t> words;
  const std::vector<float> p = net(sound(clip.samples)).to_vector<float>();
  Detector detector;
  for (std::size_t at = 0; at < p.size(); at += kClasses)
    if (const auto word = detector.frame(std::span(p).subspan(at, kClasses))) words.push_back(*word);
  return words;
}
/// Returns how many of the ten keywords are heard, once each, in a noise.
std::size_t keywords_heard(const nn::Layer& net, Noise kind) {
  std::size_t right = 0;
  for (std::size_t word = 0; word < kKeywords.size(); ++word) {
    Clip clip = silence(2 * 16000);
    place(clip, spoken(std::string(kKeywords[word])), 60, 1);
    Draw draw(word);
    record(clip, {.lowest_snr = 15, .highest_snr = 15, .first_noise = static_cast<int>(kind), .noises = 1}, draw);
    right += heard(net, clip) == std::vector<std::size_t>{word};
  }
  return right;
}

/// Compares the C of a net with its stream on a sound, and lets the C check itself.
void compare_frozen(const nn::Layer& net, const std::vector<float>& x, std::size_t width) {
  const exchange::FrozenNet c = exchange::freeze(net, {.batch = 1, .width = 1}, {.name = "net"});
  for (const std::string& compiler : frozen::compilers()) {
    frozen::Library library;
    library.add("net", c);
    const std::string built = library.build(compiler);
    BOOST_TEST_REQUIRE(built == "");
    if (!frozen::rounds_once()) continue;
    const auto f = library.functions<float, float>("net");
    std::vector<std::byte> memory(f.bytes);
    BOOST_TEST(f.check(memory.data()) == 0);
    f.init(memory.data());
    std::vector<float> all, y(width);
    for (const float v : x)
      if (f.step(memory.data(), &v, y.data()) == 0) all.insert(all.end(), y.begin(), y.end());
    BOOST_TEST((all == streamed(net, x, width)));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(trained_nets)

BOOST_AUTO_TEST_CASE(every_file_is_below_100_kilobytes) {
  for (const char* name : {"amplifier.nam", "voice_activity.safetensors", "keywords.safetensors"})
    BOOST_TEST(std::filesystem::file_size(net_path(name)) < 100'000, name);
}

BOOST_AUTO_TEST_CASE(the_files_say_what_nets_they_are) {
  BOOST_TEST(io::read_safetensors(net_path("voice_activity.safetensors")).metadata().at("ferrite.net") ==
             kVoiceActivityWords);
  BOOST_TEST(io::read_safetensors(net_path("keywords.safetensors")).metadata().at("ferrite.net") == kKeywordsWords);
  BOOST_TEST(io::read_nam(net_path("amplifier.nam")).sample_rate.value() == Amplifier::rate);
}

/// A sine of 10 mV is amplified without overtones, one of a volt is clipped: the small-signal gain from the triodes'
/// slopes, the limits from the supply.
BOOST_AUTO_TEST_CASE(the_circuit_amplifies_and_clips) {
  const auto sine = [](double level) {
    std::vector<float> x(9600);
    for (std::size_t t = 0; t < x.size(); ++t)
      x[t] =
          static_cast<float>(level * std::sin(2 * std::numbers::pi * 250 * static_cast<double>(t) / Amplifier::rate));
    return x;
  };
  /// Returns the amplitudes of the first three harmonics of 250 Hz in the last tenth of a second.
  const auto harmonics = [](const std::vector<float>& y) {
    std::array<double, 4> a{};
    for (std::size_t k = 1; k < a.size(); ++k) {
      double s = 0, c = 0;
      for (std::size_t t = y.size() - 4800; t < y.size(); ++t) {
        const double p = 2 * std::numbers::pi * 250 * static_cast<double>(k * t) / Amplifier::rate;
        s += y[t] * std::sin(p), c += y[t] * std::cos(p);
      }
      a[k] = std::hypot(s, c) / 2400;
    }
    return a;
  };
  const auto quiet = harmonics(Amplifier().play(sine(0.01))), twice = harmonics(Amplifier().play(sine(0.02)));
  const auto loud = harmonics(Amplifier().play(sine(1)));
  BOOST_TEST(std::fabs(twice[1] / quiet[1] - 2) < 0.01);
  BOOST_TEST(quiet[2] < 0.02 * quiet[1]);
  BOOST_TEST(loud[1] < 40 * quiet[1]);
  BOOST_TEST(loud[3] > 0.1 * loud[1]);
}

/// At rest the current of the first triode is that through the resistors at its plate and its cathode.
BOOST_AUTO_TEST_CASE(the_circuit_at_rest_obeys_the_law_of_ohm) {
  Circuit::Node out = 0;
  Circuit c = amplifier_circuit(out);
  c.prepare(48000);
  const double plate = c.voltage(2), cathode = c.voltage(3), current = cathode / 1.5e3;
  BOOST_TEST(current > 5e-4);
  BOOST_TEST(std::fabs((300 - plate) / 100e3 - current) < 1e-4 * current);
  BOOST_TEST(std::fabs(plate_current(-cathode, plate - cathode).value - current) < 1e-4 * current);
}

BOOST_AUTO_TEST_CASE(the_derivatives_of_the_triode_are_those_of_its_current) {
  for (const double grid : {-3.0, -1.2, 0.0, 0.7})
    for (const double plate : {5.0, 80.0, 240.0}) {
      const double e = 1e-5;
      const TriodeCurrent i = plate_current(grid, plate);
      const double by_grid = (plate_current(grid + e, plate).value - plate_current(grid - e, plate).value) / (2 * e);
      const double by_plate = (plate_current(grid, plate + e).value - plate_current(grid, plate - e).value) / (2 * e);
      BOOST_TEST(std::fabs(i.by_grid - by_grid) < 1e-6 * (1e-3 + by_grid));
      BOOST_TEST(std::fabs(i.by_plate - by_plate) < 1e-6 * (1e-3 + by_plate));
      const double slope = (grid_current(grid + e).value - grid_current(grid - e).value) / (2 * e);
      BOOST_TEST(std::fabs(grid_current(grid).by_grid - slope) < 1e-9);
    }
}

BOOST_AUTO_TEST_CASE(the_amplifier_sounds_as_its_circuit) {
  const auto net = amplifier();
  BOOST_TEST(amplifier_error(*net) < kAmplifierError);
  // The last product for the next layer has none: the format contains it, but nothing reads its result.
  const auto missed = unnoticed_damage(*net, [&] { return amplifier_error(*net) > kAmplifierError; });
  BOOST_TEST(missed == "arrays.1.layers.6.layer1x1.weight ");
}

BOOST_AUTO_TEST_CASE(voices_are_told_from_noise) {
  const dsl::Network net = voice_activity();
  constexpr std::array kinds{Noise::pink, Noise::fan, Noise::traffic};
  for (const Noise kind : kinds) BOOST_TEST_CONTEXT(name_of(kind)) {
      const Scores s = activity_scores(net, kind);
      BOOST_TEST(s.area_under_roc() > 0.98);
      BOOST_TEST(s.error(0.5F) < kActivityError);
    }
  const auto missed = unnoticed_damage(net, [&] {
    return std::ranges::any_of(kinds, [&](Noise k) { return activity_scores(net, k).error(0.5F) > kActivityError; });
  });
  BOOST_TEST(missed == "");
}

BOOST_AUTO_TEST_CASE(keywords_are_heard_and_sentences_are_not) {
  const dsl::Network net = keywords();
  BOOST_TEST(keywords_heard(net, Noise::pink) >= 9U);
  BOOST_TEST(keywords_heard(net, Noise::traffic) >= 9U);
  BOOST_TEST(heard(net, conversation(Noise::pink)).empty());
  const auto all_heard = [&] { return keywords_heard(net, Noise::pink) + keywords_heard(net, Noise::traffic); };
  const std::size_t good = all_heard();
  const auto missed = unnoticed_damage(net, [&] { return all_heard() < good; });
  BOOST_TEST(missed.find("weight") == std::string::npos, missed);  // a bias of the GRU is small
}

BOOST_AUTO_TEST_CASE(streams_have_the_bits_of_whole_runs) {
  const std::vector<float>& dry = played().dry;
  const std::vector<float> part(dry.begin(), dry.begin() + 6000), speech = conversation(Noise::pink).samples;
  const auto amp = amplifier();
  BOOST_TEST((streamed(*amp, part, 1) == (*amp)(sound(part)).to_vector<float>()));
  const dsl::Network activity_net = voice_activity(), keywords_net = keywords();
  BOOST_TEST((streamed(activity_net, speech, 1) == activity_net(sound(speech)).to_vector<float>()));
  BOOST_TEST((streamed(keywords_net, speech, kClasses) == keywords_net(sound(speech)).to_vector<float>()));
}

BOOST_AUTO_TEST_CASE(frozen_nets_have_the_bits_of_streams) {
  const std::vector<float>& dry = played().dry;
  compare_frozen(*amplifier(), std::vector<float>(dry.begin(), dry.begin() + 6000), 1);
  const std::vector<float> speech = conversation(Noise::pink).samples;
  compare_frozen(voice_activity(), std::vector<float>(speech.begin() + 12000, speech.begin() + 30000), 1);
  compare_frozen(keywords(), std::vector<float>(speech.begin() + 12000, speech.begin() + 30000), kClasses);
}

BOOST_AUTO_TEST_SUITE_END()
