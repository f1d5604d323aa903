// A small recurrent net learns ten keywords from speech of scripts/make_speech: `keywords --out FILE` trains for some
// minutes; `keywords --test FILE` prints how many it hears of voices that were not in training, and how often it raises
// a false alarm in an hour of other speech.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "keywords.h"
#include "speech.h"

using namespace ferrite;
using namespace nets;

namespace {

constexpr std::int64_t kLength = 6 * 16000, kFrames = frames_of(kLength);  // clips of training
constexpr std::int64_t kIgnored = -100;

/// Recordings of one part: of each keyword, of other words, and sentences.
struct Speech {
  std::vector<std::vector<Utterance>> keywords;
  std::vector<Utterance> others, sentences;
};

std::vector<std::vector<Utterance>> read_keywords(const std::filesystem::path& folder) {
  std::vector<std::vector<Utterance>> all;
  for (const std::string_view word : kKeywords) all.push_back(read_utterances(folder / word));
  return all;
}

/// Marks the class of each frame around a keyword that is spoken between two 10 ms: the word for 200 ms from its end
/// on; from its second third to there, and for 100 ms after that, either answer is right.
void mark(std::vector<std::int64_t>& target, std::size_t word, std::int64_t begin, std::int64_t end) {
  for (std::int64_t f = 0; f < kFrames; ++f) {
    const std::int64_t at = f + 1;  // the middle of the frame
    auto& t = target[static_cast<std::size_t>(f)];
    if (at >= begin + (end - begin) / 3 && at < end + 30) t = kIgnored;
    if (at >= end - 2 && at < end + 20) t = static_cast<std::int64_t>(word) + 1;
  }
}

const Utterance& any(const std::vector<Utterance>& from, Draw& draw) {
  return from[static_cast<std::size_t>(draw.below(static_cast<int>(from.size())))];
}

/// Returns features [N, F, 32] and classes [N, F] of clips with keywords, other words, sentences and pauses. Both
/// synthesisers speak equally often, although one of them has few voices.
train::Dataset dataset(const std::array<Speech, 2>& synthesisers, std::size_t n, std::uint64_t seed) {
  const dsl::Network features = mel_features().build(0);
  Tensors x, y;
  for (std::size_t i = 0; i < n; ++i) {
    Draw draw(seed * 1000003 + i);
    Clip clip = silence(kLength);
    std::vector<std::int64_t> target(static_cast<std::size_t>(kFrames), 0);
    for (auto at = static_cast<std::int64_t>(draw(5, 100)); at < kLength / 160 - 20;) {
      const double kind = draw(0, 1), gain = std::pow(10, draw(-6, 0) / 20);
      const auto word = static_cast<std::size_t>(draw.below(static_cast<int>(kKeywords.size())));
      const Speech& speech = synthesisers[draw(0, 1) < 0.5 ? 0 : 1];
      const Utterance& said = any(kind < 0.6   ? speech.keywords[word]
                                  : kind < 0.8 ? speech.others
                                               : speech.sentences,
                                  draw);
      const Utterance u = draw(0, 1) < 0.5 ? varied(said, draw) : said;
      const std::int64_t end = at + std::ssize(u.active);
      place(clip, u, static_cast<std::size_t>(at), gain);
      if (kind < 0.6) mark(target, word, at, end);
      at = end + static_cast<std::int64_t>(kind < 0.6 ? draw(35, 150) : draw(12, 120));
    }
    record(clip, {.lowest_snr = 0, .microphones = 0.4}, draw);
    x.push_back(select(features(Tensor::from(clip.samples, {1, kLength, 1})), 0, 0));
    y.push_back(Tensor::from(target, {kFrames}));
  }
  return train::Dataset({stack(x, 0), stack(y, 0)});
}

/// A keyword that was said, or that a detector heard.
struct Event {
  std::size_t word;
  std::int64_t begin, end;  ///< in frames; of what is heard, both are the frame in which it is heard
};

/// Returns what a detector hears in a sound.
std::vector<Event> heard(nn::Stream& stream, const Samples& sound, float threshold) {
  std::vector<Event> words;
  std::array<float, kClasses> p{};
  Detector detector(threshold);
  stream.reset();
  std::int64_t frame = 0;
  for (const float v : sound)
    if (stream.feed(std::span(&v, 1), p)) {
      if (const auto word = detector.frame(p)) words.push_back({*word, frame, frame});
      ++frame;
    }
  return words;
}

/// Says all keywords in a random order, with pauses of one to three seconds, in clips of a minute, and prints of each
/// how many are heard, at most 0.5 s after their end.
void hits(const char* name, const nn::Layer& net, const std::vector<std::vector<Utterance>>& keywords,
          const Conditions& c, float threshold, bool each) {
  std::vector<std::pair<std::size_t, const Utterance*>> order;
  for (std::size_t word = 0; word < keywords.size(); ++word)
    for (const Utterance& u : keywords[word]) order.emplace_back(word, &u);
  Draw draw(77000);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(draw.below(static_cast<int>(i)))]);
  nn::Stream stream = net.stream();
  std::array<std::size_t, kKeywords.size()> right{}, said{};
  std::size_t wrong = 0, all = 0, extra = 0;
  for (std::size_t next = 0; next < order.size();) {
    Clip clip = silence(60 * 16000);
    std::vector<Event> truth;
    for (auto at = static_cast<std::int64_t>(draw(50, 150)); at < 5850 && next < order.size(); ++next) {
      const Utterance& u = *order[next].second;
      truth.push_back({order[next].first, at, at + std::ssize(u.active)});
      place(clip, u, static_cast<std::size_t>(at), 1);
      at += std::ssize(u.active) + static_cast<std::int64_t>(draw(100, 300));
    }
    record(clip, c, draw);
    std::vector<Event> events = heard(stream, clip.samples, threshold);
    for (const Event& t : truth) {
      bool good = false, other = false;
      std::erase_if(events, [&](const Event& e) {
        if (e.begin < t.begin || e.begin > t.end + 50) return false;
        (e.word == t.word ? good : other) = true;
        return true;
      });
      right[t.word] += good && !other, said[t.word] += 1, wrong += other;
    }
    extra += events.size();
  }
  std::size_t good = 0;
  for (std::size_t word = 0; word < kKeywords.size(); ++word) {
    if (each)
      std::printf("  %-6s %5.1f %%\n", std::string(kKeywords[word]).c_str(),
                  100.0 * static_cast<double>(right[word]) / static_cast<double>(said[word]));
    good += right[word], all += said[word];
  }
  std::printf("%-34s %5.1f %% of %zu right, %4.1f %% heard as another word, %zu alarms in pauses\n", name,
              100.0 * static_cast<double>(good) / static_cast<double>(all), all,
              100.0 * static_cast<double>(wrong) / static_cast<double>(all), extra);
  std::fflush(stdout);
}

/// Returns clips of a minute in which people speak sentences without keywords.
std::vector<Clip> talk(const std::vector<Utterance>& sentences, std::size_t minutes) {
  std::vector<Clip> all;
  std::size_t next = 0;
  for (std::size_t m = 0; m < minutes; ++m) {
    Draw draw(99000 + m);
    Clip clip = silence(60 * 16000);
    for (std::size_t at = 20; at < 5900; at += 20) {
      const Utterance& u = sentences[next++ % sentences.size()];
      place(clip, u, at, std::pow(10, draw(-6, 0) / 20));
      at += u.active.size();
    }
    record(clip, {.lowest_snr = 5}, draw);
    all.push_back(std::move(clip));
  }
  return all;
}

/// Writes the recordings on which tests/nets tries the nets: the keywords, and a sentence, of the voice that is kept
/// for tests.
void write_fixture(const std::filesystem::path& speech, const std::filesystem::path& to) {
  const auto write = [&](const std::filesystem::path& from, const std::string& name) {
    const Samples x = read_utterance(speech / from).samples;
    io::write_wav(to / (name + ".wav"), {Tensor::from(x, {1, std::ssize(x)}), 16000});
  };
  for (const std::string_view word : kKeywords)
    write(std::filesystem::path("words/flite") / word / ("flite-slt-1.0-" + std::string(word) + ".wav"),
          std::string(word));
  write("sentences/flite/flite-slt-5.wav", "sentence");
}

bool test(const nn::Layer& net, const std::filesystem::path& folder) {
  const auto words = read_keywords(folder / "words/test"), flite = read_keywords(folder / "words/flite");
  const auto sentences = read_utterances(folder / "sentences/test");
  constexpr float kThreshold = 0.7F;
  const Conditions clear{.lowest_snr = 10}, loud{.lowest_snr = 0, .highest_snr = 10};
  hits("unseen voices, 10 to 30 dB", net, words, clear, kThreshold, true);
  hits("unseen voices, 0 to 10 dB", net, words, loud, kThreshold, false);
  hits("  unseen noises, 10 to 30 dB", net, words, {.lowest_snr = 10, .first_noise = kTrainedNoises, .noises = 2},
       kThreshold, false);
  hits("another synthesiser, 10 to 30 dB", net, flite, clear, kThreshold, true);
  nn::Stream stream = net.stream();
  const std::vector<Clip> hour = talk(sentences, 60);
  for (const float threshold : {0.5F, 0.7F, 0.9F}) {
    std::size_t alarms = 0;
    for (const Clip& clip : hour) alarms += heard(stream, clip.samples, threshold).size();
    std::printf("threshold %.1f: %zu false alarms in an hour of other speech;", static_cast<double>(threshold), alarms);
    hits("", net, words, clear, threshold, false);
  }
  const Tensor whole =
      net(Tensor::from(Samples(hour[0].samples.begin(), hour[0].samples.begin() + 32000), {1, 32000, 1}));
  std::vector<float> frames;
  std::array<float, kClasses> p{};
  stream.reset();
  for (std::size_t t = 0; t < 32000; ++t)
    if (stream.feed(std::span(&hour[0].samples[t], 1), p)) frames.insert(frames.end(), p.begin(), p.end());
  const bool same = frames == whole.to_vector<float>();
  std::cout << (same ? "as a stream the same bits\n" : "as a stream OTHER BITS\n");
  return same;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string out = "keywords.safetensors", tested, fixture, folder = FERRITE_BUILD "/speech";
  std::uint64_t seed = 1;
  std::int64_t epochs = 24;
  std::size_t count = 5000;
  CLI::App app("Trains a net that hears ten keywords, or tests one");
  app.add_option("--out", out, "The file to write"), app.add_option("--test", tested, "A file to test instead");
  app.add_option("--speech", folder, "The folder of scripts/make_speech");
  app.add_option("--fixture", fixture, "A folder: writes the recordings of tests/nets there");
  app.add_option("--seed", seed), app.add_option("--epochs", epochs), app.add_option("--clips", count);
  CLI11_PARSE(app, argc, argv);

  const dsl::Network net = keywords_head(mel_features()).softmax().build(seed);
  const std::filesystem::path root = folder;
  if (!fixture.empty()) return write_fixture(root, fixture), 0;
  if (tested.empty()) {
    const auto read = [&](const std::string& part) {
      return Speech{read_keywords(root / "words" / part), read_utterances(root / "words" / part / "other"),
                    read_utterances(root / "sentences/train")};
    };
    const dsl::Network part = keywords_head(dsl::sequence(kBands)).build(seed);
    train_on_features(part, net, dataset({read("train"), read("flite_train")}, count, seed),
                      {"cross_entropy_classes_last", 5e-3, epochs, seed});
    train::save_net(net, kKeywordsWords, out);
  } else {
    io::load(net, tested);
  }
  net.eval();
  return test(net, root) ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "keywords: " << e.what() << '\n';
  return 1;
}
