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

constexpr std::int64_t kLength = 40000, kFrames = frames_of(kLength);  // clips of 2.5 s
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

/// Returns the class of each frame of a clip in which a keyword is spoken between two 10 ms: the word for 200 ms from
/// its end on; from its second third to there, and for 100 ms after that, either answer is right.
std::vector<std::int64_t> classes(std::size_t word, std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> target(static_cast<std::size_t>(kFrames), 0);
  for (std::int64_t f = 0; f < kFrames; ++f) {
    const std::int64_t at = f + 1;  // the middle of the frame
    auto& t = target[static_cast<std::size_t>(f)];
    if (at >= begin + (end - begin) / 3 && at < end + 30) t = kIgnored;
    if (at >= end - 2 && at < end + 20) t = static_cast<std::int64_t>(word) + 1;
  }
  return target;
}

const Utterance& any(const std::vector<Utterance>& from, Draw& draw) {
  return from[static_cast<std::size_t>(draw.below(static_cast<int>(from.size())))];
}

/// Returns features [N, F, 32] and classes [N, F] of clips with keywords, other words, sentences or nothing.
train::Dataset dataset(const Speech& speech, std::size_t n, std::uint64_t seed) {
  const dsl::Network features = mel_features().build(0);
  Tensors x, y;
  for (std::size_t i = 0; i < n; ++i) {
    Draw draw(seed * 1000003 + i);
    Clip clip = silence(kLength);
    std::vector<std::int64_t> target(static_cast<std::size_t>(kFrames), 0);
    const double kind = draw(0, 1), gain = std::pow(10, draw(-6, 0) / 20);
    if (kind < 0.6) {
      const auto word = static_cast<std::size_t>(draw.below(static_cast<int>(kKeywords.size())));
      const Utterance& u = any(speech.keywords[word], draw);
      const auto begin = static_cast<std::int64_t>(draw(20, 140));
      place(clip, u, static_cast<std::size_t>(begin), gain);
      if (draw(0, 1) < 0.3) {  // somebody has just said something else
        const Utterance& before = any(draw(0, 1) < 0.5 ? speech.others : speech.sentences, draw);
        const std::size_t most = static_cast<std::size_t>(std::max<std::int64_t>(0, begin - 12));
        const std::size_t length = std::min(before.active.size(), most);
        Utterance part = before;
        part.samples.erase(part.samples.begin(), part.samples.end() - static_cast<std::ptrdiff_t>(length * 160));
        part.active.erase(part.active.begin(), part.active.end() - static_cast<std::ptrdiff_t>(length));
        place(clip, part, most - length, gain);
      }
      target = classes(word, begin, begin + static_cast<std::int64_t>(u.active.size()));
    } else if (kind < 0.75) {
      place(clip, any(speech.others, draw), static_cast<std::size_t>(draw(0, 80)), gain);
      place(clip, any(speech.others, draw), static_cast<std::size_t>(draw(110, 180)), gain);
    } else if (kind < 0.97) {
      place(clip, any(speech.sentences, draw), static_cast<std::size_t>(draw(0, 60)), gain);
    }
    record(clip, {.lowest_snr = 0}, draw);
    x.push_back(select(features(Tensor::from(clip.samples, {1, kLength, 1})), 0, 0));
    y.push_back(Tensor::from(target, {kFrames}));
  }
  return train::Dataset({stack(x, 0), stack(y, 0)});
}

/// Returns what a detector hears in a sound, and at which frames.
std::vector<std::size_t> heard(nn::Stream& stream, const Samples& sound, float threshold) {
  std::vector<std::size_t> words;
  std::array<float, kClasses> p{};
  Detector detector(threshold);
  stream.reset();
  for (const float v : sound)
    if (stream.feed(std::span(&v, 1), p))
      if (const auto word = detector.frame(p)) words.push_back(*word);
  return words;
}

/// Prints for each keyword how many of its recordings are heard, and as which.
void hits(const char* name, const nn::Layer& net, const std::vector<std::vector<Utterance>>& keywords,
          const Conditions& c, float threshold, bool each) {
  nn::Stream stream = net.stream();
  std::size_t right = 0, wrong = 0, all = 0;
  for (std::size_t word = 0; word < keywords.size(); ++word) {
    std::size_t good = 0, i = 0;
    for (const Utterance& u : keywords[word]) {
      Draw draw(77000 + 1000 * word + i++);
      Clip clip = silence(kLength);
      place(clip, u, static_cast<std::size_t>(draw(30, 130)), 1);
      record(clip, c, draw);
      const auto words = heard(stream, clip.samples, threshold);
      if (words.size() == 1 && words[0] == word)
        ++good;
      else if (!words.empty())
        ++wrong;
    }
    if (each)
      std::printf("  %-6s %5.1f %% of %zu\n", std::string(kKeywords[word]).c_str(),
                  100.0 * static_cast<double>(good) / static_cast<double>(i), i);
    right += good, all += i;
  }
  std::printf("%-36s %5.1f %% right, %4.1f %% heard as another word, %zu clips\n", name,
              100.0 * static_cast<double>(right) / static_cast<double>(all),
              100.0 * static_cast<double>(wrong) / static_cast<double>(all), all);
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

/// Writes the recordings on which tests/nets tries the nets: the keywords of one voice that is not trained with, and a
/// sentence.
void write_fixture(const std::filesystem::path& speech, const std::filesystem::path& to) {
  const auto write = [&](const std::filesystem::path& from, const std::string& name) {
    const Samples x = read_utterance(speech / from).samples;
    io::write_wav(to / (name + ".wav"), {Tensor::from(x, {1, std::ssize(x)}), 16000});
  };
  for (const std::string_view word : kKeywords)
    write(std::filesystem::path("words/test") / word / "iven2-1.wav", std::string(word));
  write("sentences/test/24.wav", "sentence");
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
  std::int64_t epochs = 12;
  std::size_t count = 6000;
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
    const Speech speech{read_keywords(root / "words/train"), read_utterances(root / "words/train/other"),
                        read_utterances(root / "sentences/train")};
    const train::Dataset data = dataset(speech, count, seed);
    const dsl::Network part = keywords_head(dsl::sequence(kBands)).build(seed);
    train::adapt(part, data);
    const train::DataLoader loader(data, {.batch_size = 32, .seed = seed});
    nn::Adam adam(part.parameters(), {.learning_rate = 5e-3});
    nn::FunctionSchedule schedule(adam, nn::cosine_rate(epochs * loader.batches()));
    train::FitOptions options{.loss = "cross_entropy_classes_last", .optimizer = &adam, .epochs = epochs};
    options.clip_norm = 1, options.schedule = &schedule, options.callbacks = {train::ProgressBar(std::cout)};
    train::fit(part, loader, options);
    copy_trained(part, net);
    io::save(net, out, {.metadata = {{"net", kKeywordsWords}}});
  } else {
    io::load(net, tested);
  }
  net.eval();
  return test(net, root) ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "keywords: " << e.what() << '\n';
  return 1;
}
