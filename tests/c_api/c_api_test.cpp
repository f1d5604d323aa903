// The C interface against the library itself: values, streams, slots, descriptions and errors; what its steps request
// from the system; and its exported names.
#include <dlfcn.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <regex>
#include <set>
#include <thread>

#include "alloc/counted.h"
#include "ferrite/io/any_file.h"
#include "ferrite/io/nam.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/text_file.h"
#include "ferrite/nn/stream/stream_slot.h"
#include "ferrite/tensor/instruction_set.h"
#include "ferrite/train/net_file.h"
#include "ferrite/train/words.h"
#include "ferrite_c.h"
#include "io/temporary_folder.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using Values = std::vector<float>;

namespace {

template <auto free>
struct Freed {
  void operator()(auto* p) const { free(p); }
};
using Model = std::unique_ptr<ferrite_model, Freed<ferrite_free>>;
using Stream = std::unique_ptr<ferrite_stream, Freed<ferrite_stream_free>>;
using Slot = std::unique_ptr<ferrite_slot, Freed<ferrite_slot_free>>;

Model load(const std::filesystem::path& path) {
  ferrite_model* model = nullptr;
  BOOST_TEST_REQUIRE(ferrite_load(path.string().c_str(), &model) == FERRITE_OK, ferrite_error());
  return Model(model);
}

Stream stream(const Model& model, std::int64_t batch = 1) {
  ferrite_stream* s = nullptr;
  BOOST_TEST_REQUIRE(ferrite_stream_new(model.get(), batch, &s) == FERRITE_OK, ferrite_error());
  return Stream(s);
}

Slot slot(const Model& model, const ferrite_slot_options* options, std::int64_t batch = 1) {
  ferrite_slot* s = nullptr;
  BOOST_TEST_REQUIRE(ferrite_slot_new(model.get(), batch, options, &s) == FERRITE_OK, ferrite_error());
  return Slot(s);
}

ferrite_description described(const Model& model) {
  ferrite_description d{};
  d.size = sizeof d;
  BOOST_TEST_REQUIRE(ferrite_describe(model.get(), &d) == FERRITE_OK, ferrite_error());
  return d;
}

/// Nets in files, read by the library and through the C interface.
struct Nets {
  io_test::TemporaryFolder folder;
  std::filesystem::path gru = write("sequence(2).gru(5).linear(3)", 1, "gru", 48000);
  std::filesystem::path lstm = write("sequence(2).lstm(7).linear(3)", 2, "lstm", 44100);
  std::filesystem::path last = write("sequence(2).gru(5).last_step().linear(4)", 3, "last", {});
  std::filesystem::path mean = write("sequence(2).gru(5).mean_over_time()", 4, "mean", {});
  std::filesystem::path nam = support::fixture_path("nam") / "wavenet.nam";

  std::filesystem::path write(const std::string& words, std::uint64_t seed, const std::string& name,
                              std::optional<double> rate) const {
    const std::filesystem::path path = folder / (name + "_\u00fc.safetensors");
    train::save_net(train::parse_words(words).build(seed), words, path, {.rate = rate});
    return path;
  }
};

Tensor noise(const Shape& shape) { return uniform(shape, {.seed = 5}, -1, 1); }

/// Checks the status of a call that fails, and its text.
void check_failed(ferrite_status status, ferrite_status expected, const std::string& text) {
  BOOST_TEST(status == expected);
  BOOST_TEST(std::string(ferrite_error()).find(text) != std::string::npos, ferrite_error());
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(c_api, Nets)

BOOST_AUTO_TEST_CASE(nets_run_as_in_the_library) {
  for (const auto& path : {gru, lstm, last, mean, nam}) {
    BOOST_TEST_CONTEXT(path.filename().string()) {
      const Model model = load(path);
      const train::NetFile file = train::read_net(path);
      const std::int64_t B = 3, T = 20, D = file.net->step_input().width;
      const Tensor x = noise({B, T, D}), y = (*file.net)(x);
      const Values in = x.to_vector<float>();
      std::size_t n = 0;
      BOOST_TEST(ferrite_run(model.get(), B, T, in.data(), nullptr, 0, &n) == FERRITE_OK);
      BOOST_TEST(n == static_cast<std::size_t>(y.numel()));
      Values out(n);
      BOOST_TEST(ferrite_run(model.get(), B, T, in.data(), out.data(), n, &n) == FERRITE_OK);
      BOOST_TEST(out == y.to_vector<float>());
      const ferrite_description d = described(model);
      BOOST_TEST(d.inputs == D);
      BOOST_TEST(d.rate == file.rate.value_or(0));
      std::int64_t parameters = 0;
      for (const Parameter& p : file.net->parameters()) parameters += p.shape().numel();
      BOOST_TEST(d.parameters == parameters);
      BOOST_TEST((d.streams == 1) == (path != mean));
      if (path == mean) BOOST_TEST((d.outputs == 0 && d.stride == 0));
      if (path != mean) BOOST_TEST((d.outputs == y.shape()[-1] && d.stride == 1 && d.delay == 0));
    }
  }
}

BOOST_AUTO_TEST_CASE(files_are_loaded_from_memory) {
  const std::string text = io::read_text(gru);
  ferrite_model* model = nullptr;
  BOOST_TEST_REQUIRE(ferrite_load_bytes(text.data(), text.size(), &model) == FERRITE_OK);
  BOOST_TEST(described(Model(model)).inputs == 2);
}

BOOST_AUTO_TEST_CASE(streams_run_as_in_the_library) {
  const Model model = load(lstm);
  const train::NetFile file = train::read_net(lstm);
  const std::int64_t B = 2, T = 50;
  const Values x = noise({T, B, 2}).to_vector<float>();
  Values expected(static_cast<std::size_t>(T * B * 3)), y(expected.size());
  file.net->stream(B).steps(T, x, expected);
  const Stream s = stream(model, B);
  for (std::size_t t = 0; t < 20; ++t)
    BOOST_TEST(ferrite_stream_step(s.get(), x.data() + t * 4, y.data() + t * 6) == FERRITE_OK);
  ferrite_stream* copy = nullptr;
  BOOST_TEST_REQUIRE(ferrite_stream_clone(s.get(), &copy) == FERRITE_OK);
  const Stream cloned(copy);
  for (ferrite_stream* each : {s.get(), copy}) {
    std::fill(y.begin() + 120, y.end(), 0.0F);
    BOOST_TEST(ferrite_stream_steps(each, T - 20, x.data() + 80, y.data() + 120) == FERRITE_OK);
    BOOST_TEST(y == expected);
  }
  BOOST_TEST(ferrite_stream_reset(s.get()) == FERRITE_OK);
  std::fill(y.begin(), y.end(), 0.0F);
  for (std::size_t t = 0; t < static_cast<std::size_t>(T); ++t) {
    std::int32_t gave = 0;
    BOOST_TEST(ferrite_stream_feed(s.get(), x.data() + t * 4, y.data() + t * 6, &gave) == FERRITE_OK);
    BOOST_TEST(gave == 1);
  }
  BOOST_TEST(y == expected);
  std::int32_t gave = 1;
  BOOST_TEST(ferrite_stream_finish(s.get(), y.data(), &gave) == FERRITE_OK);
  BOOST_TEST(gave == 0);
  BOOST_TEST(ferrite_stream_steps(s.get(), 0, nullptr, nullptr) == FERRITE_OK);
}

/// Whatever the options, a slot is the library's slot with these options.
BOOST_AUTO_TEST_CASE(slots_play_as_in_the_library) {
  const Model first = load(gru), second = load(lstm);
  const train::NetFile a = train::read_net(gru), b = train::read_net(lstm);
  for (const double rate : {0.0, 48000.0}) {
    const ferrite_slot_options options{sizeof options, 30, 10, rate, 0};
    nn::StreamSlot expected(a.net->stream(), {.crossfade = 30, .lead = 10, .rate = rate}, 48000);
    const Slot s = slot(first, &options);
    const std::int64_t T = 400;
    const Values x = noise({2 * T, 2}).to_vector<float>();
    Values y(static_cast<std::size_t>(2 * T * 3)), z(y.size());
    const auto play = [&](std::size_t from) {
      BOOST_TEST(ferrite_slot_steps(s.get(), T, x.data() + from * 2, y.data() + from * 3) == FERRITE_OK);
      expected.steps(T, std::span(x).subspan(from * 2, T * 2), std::span(z).subspan(from * 3, T * 3));
    };
    play(0);
    BOOST_TEST(ferrite_slot_settled(s.get()) == 1);
    BOOST_TEST(ferrite_slot_swap(s.get(), second.get()) == FERRITE_OK);
    expected.put(b.net->stream(), 44100);
    BOOST_TEST(ferrite_slot_settled(s.get()) == 0);
    play(static_cast<std::size_t>(T));
    BOOST_TEST(y == z);
    BOOST_TEST(ferrite_slot_settled(s.get()) == 1);
    BOOST_TEST(ferrite_slot_latency(s.get()) == expected.latency());
    BOOST_TEST((expected.latency() > 0) == (rate > 0));
    BOOST_TEST(ferrite_slot_reset(s.get()) == FERRITE_OK);
    expected.reset();
    play(0);
    BOOST_TEST(y == z);
  }
}

/// Options of an older header are a shorter struct, and none at all is the defaults.
BOOST_AUTO_TEST_CASE(missing_options_have_their_defaults) {
  const Model first = load(gru), second = load(lstm);
  ferrite_slot_options shorter{offsetof(ferrite_slot_options, lead), 7, -1, -1, -1};
  for (const ferrite_slot_options* options :
       {static_cast<const ferrite_slot_options*>(nullptr), &std::as_const(shorter)}) {
    const Slot s = slot(first, options);
    BOOST_TEST(ferrite_slot_swap(s.get(), second.get()) == FERRITE_OK);
    const std::int64_t crossfade = options ? 7 : 1024;
    Values x(static_cast<std::size_t>(crossfade * 2)), y(static_cast<std::size_t>(crossfade * 3));
    BOOST_TEST(ferrite_slot_steps(s.get(), crossfade - 1, x.data(), y.data()) == FERRITE_OK);
    BOOST_TEST(ferrite_slot_settled(s.get()) == 0);
    BOOST_TEST(ferrite_slot_steps(s.get(), 1, x.data(), y.data()) == FERRITE_OK);
    BOOST_TEST(ferrite_slot_settled(s.get()) == 1);
  }
  ferrite_description d{};
  d.size = offsetof(ferrite_description, outputs);
  d.outputs = 77;
  BOOST_TEST(ferrite_describe(first.get(), &d) == FERRITE_OK);
  BOOST_TEST(d.inputs == 2);
  BOOST_TEST(d.outputs == 77);
}

/// A recurrence that decays reaches denormal numbers, which count as zero only if the options say so.
BOOST_AUTO_TEST_CASE(slots_flush_denormals_if_asked) {
  const std::string words = "sequence(1).linear(1)";
  const dsl::Network net = train::parse_words(words).build(1);
  net.named_parameters()[0].variable.assign(full({1, 1}, 1e-3));
  net.named_parameters()[1].variable.assign(zeros({1}));
  train::save_net(net, words, folder / "small.safetensors");
  const Model model = load(folder / "small.safetensors");
  const float x = 1e-36F;
  for (const std::int32_t flush : {0, 1}) {
    const ferrite_slot_options options{sizeof options, 0, 0, 0, flush};
    float y = -1;
    BOOST_TEST(ferrite_slot_steps(slot(model, &options).get(), 1, &x, &y) == FERRITE_OK);
    BOOST_TEST((y == 0) == (flush == 1));
  }
}

/// The library is loaded while the program runs, so that a thread has no memory for its variables before it touches
/// them.
BOOST_AUTO_TEST_CASE(steps_ask_the_system_for_nothing) {
  const std::filesystem::path copy = folder / "copy.so";
  std::filesystem::copy_file(FERRITE_C_LIBRARY, copy);
  void* const library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  BOOST_TEST_REQUIRE(library, dlerror());
  const auto function = [&]<class F>(F*, const char* name) {
    F* const f = reinterpret_cast<F*>(dlsym(library, name));
    BOOST_TEST_REQUIRE(f, name);
    return f;
  };
#define OF_COPY(name) const auto name = function(&::name, #name)
  OF_COPY(ferrite_load);
  OF_COPY(ferrite_stream_new);
  OF_COPY(ferrite_stream_step);
  OF_COPY(ferrite_stream_steps);
  OF_COPY(ferrite_stream_reset);
  OF_COPY(ferrite_slot_new);
  OF_COPY(ferrite_slot_steps);
  OF_COPY(ferrite_slot_swap);
  OF_COPY(ferrite_slot_reset);
#undef OF_COPY
  ferrite_model *first = nullptr, *second = nullptr, *wavenet = nullptr;
  ferrite_stream *one = nullptr, *other = nullptr;
  ferrite_slot* s = nullptr;
  const ferrite_slot_options options{sizeof options, 20, 0, 48000, 1};
  std::int32_t failed = ferrite_load(gru.c_str(), &first) + ferrite_load(lstm.c_str(), &second) +
                        ferrite_load(nam.c_str(), &wavenet) + ferrite_slot_new(first, 1, &options, &s) +
                        ferrite_stream_new(second, 1, &one) + ferrite_stream_new(wavenet, 1, &other) +
                        ferrite_slot_swap(s, second);
  BOOST_TEST_REQUIRE(failed == 0);
  const Values x(400, 0.5F);
  Values y(600);
  std::uint64_t asked = 1, locks = 1;
  std::thread([&] {
    const std::uint64_t before = counted::counts().locks;
    asked = counted::during([&] {
      failed += ferrite_stream_step(one, x.data(), y.data());
      failed += ferrite_stream_steps(one, 100, x.data(), y.data());
      failed += ferrite_stream_steps(other, 100, x.data(), y.data());
      failed += ferrite_slot_steps(s, 200, x.data(), y.data());
      failed += ferrite_stream_reset(one) + ferrite_slot_reset(s);
    });
    locks = counted::counts().locks - before;
  }).join();
  BOOST_TEST(failed == 0);
  BOOST_TEST(asked == 0U);
  BOOST_TEST(locks == 0U);  // the objects live as long as the process
}

BOOST_AUTO_TEST_CASE(errors_have_a_status_and_a_text) {
  const Model model = load(gru), sums = load(mean), audio = load(nam);
  ferrite_model* none = nullptr;
  check_failed(ferrite_load((folder / "missing.nam").string().c_str(), &none), FERRITE_ERROR_IO, "missing.nam");
  check_failed(ferrite_load_bytes("{}", 2, &none), FERRITE_ERROR_IO, "net");
  check_failed(ferrite_load(nullptr, &none), FERRITE_ERROR_VALUE, "path is null");
  check_failed(ferrite_load_bytes(nullptr, 0, &none), FERRITE_ERROR_VALUE, "bytes is null");
  check_failed(ferrite_load("x", nullptr), FERRITE_ERROR_VALUE, "model is null");
  BOOST_TEST(none == nullptr);
  ferrite_stream* no_stream = nullptr;
  check_failed(ferrite_stream_new(model.get(), 0, &no_stream), FERRITE_ERROR_VALUE, "the batch must be positive");
  check_failed(ferrite_stream_new(sums.get(), 1, &no_stream), FERRITE_ERROR_VALUE, "mean_over_time");
  check_failed(ferrite_stream_new(nullptr, 1, &no_stream), FERRITE_ERROR_VALUE, "model is null");
  BOOST_TEST(no_stream == nullptr);
  const Stream s = stream(model);
  Values x(2), y(3);
  std::int32_t gave = 0;
  std::size_t n = 0;
  check_failed(ferrite_stream_step(nullptr, x.data(), y.data()), FERRITE_ERROR_VALUE, "stream is null");
  check_failed(ferrite_stream_step(s.get(), nullptr, y.data()), FERRITE_ERROR_VALUE, "x is null");
  check_failed(ferrite_stream_steps(s.get(), 1, x.data(), nullptr), FERRITE_ERROR_VALUE, "y is null");
  check_failed(ferrite_stream_steps(s.get(), -1, x.data(), y.data()), FERRITE_ERROR_SHAPE, "negative or too large: -1");
  check_failed(ferrite_stream_steps(s.get(), std::numeric_limits<std::int64_t>::max(), x.data(), y.data()),
               FERRITE_ERROR_SHAPE, "too large");
  check_failed(ferrite_stream_feed(s.get(), x.data(), y.data(), nullptr), FERRITE_ERROR_VALUE, "gave is null");
  check_failed(ferrite_stream_finish(s.get(), nullptr, &gave), FERRITE_ERROR_VALUE, "y is null");
  check_failed(ferrite_run(model.get(), 1, 1, x.data(), y.data(), 2, &n), FERRITE_ERROR_SHAPE,
               "the result has 3 values [1, 1, 3], there is room for 2");
  BOOST_TEST(n == 3U);
  check_failed(ferrite_run(model.get(), -1, 1, x.data(), y.data(), 3, &n), FERRITE_ERROR_SHAPE, "-1");
  check_failed(ferrite_run(model.get(), 1, 1, x.data(), y.data(), 3, nullptr), FERRITE_ERROR_VALUE, "values is null");
  ferrite_slot* no_slot = nullptr;
  const ferrite_slot_options unset{0, 1, 1, 1, 1}, negative{sizeof negative, -1, 0, 0, 0};
  check_failed(ferrite_slot_new(model.get(), 1, &unset, &no_slot), FERRITE_ERROR_VALUE, "options.size is not set");
  check_failed(ferrite_slot_new(model.get(), 1, &negative, &no_slot), FERRITE_ERROR_VALUE, "must not be negative");
  BOOST_TEST(no_slot == nullptr);
  const Slot playing = slot(model, nullptr);
  check_failed(ferrite_slot_swap(playing.get(), audio.get()), FERRITE_ERROR_SHAPE, "a step of the slot is");
  check_failed(ferrite_slot_swap(playing.get(), nullptr), FERRITE_ERROR_VALUE, "model is null");
  check_failed(ferrite_slot_steps(playing.get(), -3, x.data(), y.data()), FERRITE_ERROR_SHAPE, "-3");
  BOOST_TEST(ferrite_slot_settled(nullptr) == 0);
  ferrite_description d{};
  check_failed(ferrite_describe(model.get(), &d), FERRITE_ERROR_VALUE, "description.size is not set");
  ferrite_free(nullptr), ferrite_stream_free(nullptr), ferrite_slot_free(nullptr);
}

/// Texts are those of their thread, and long ones end with a whole character.
BOOST_AUTO_TEST_CASE(texts_of_errors_belong_to_their_thread) {
  ferrite_model* none = nullptr;
  check_failed(ferrite_load("here", &none), FERRITE_ERROR_IO, "here");
  std::thread([&] {
    BOOST_TEST(std::string(ferrite_error()).empty());
    std::string rate;
    for (int i = 0; i < 800; ++i) rate += "\u00fc";
    for (const char* begin : {"", "x"}) {  // one of the two would end in the middle of a character
      const std::string words = "sequence(1).relu()";
      train::save_net(train::parse_words(words).build(1), words, folder / "rate.safetensors", {.rate = 7});
      io::Metadata metadata = io::read_safetensors(folder / "rate.safetensors").metadata();
      metadata["ferrite.rate"] = begin + rate;
      io::write_tensors(folder / "rate.safetensors", {}, metadata);
      BOOST_TEST(ferrite_load((folder / "rate.safetensors").string().c_str(), &none) == FERRITE_ERROR_IO);
      const std::string text = ferrite_error();
      BOOST_TEST((text.size() == 1023 || text.size() == 1022));
      BOOST_TEST(text.substr(text.size() - 2) == "\u00fc");
    }
  }).join();
  BOOST_TEST(std::string(ferrite_error()).find("here") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(texts_are_given_in_the_room_there_is) {
  const Model model = load(gru);
  const std::size_t size = ferrite_summary(model.get(), nullptr, 0);
  std::string text(size + 1, 'x');
  BOOST_TEST(ferrite_summary(model.get(), text.data(), text.size()) == size);
  BOOST_TEST(text[size] == 0);
  text.pop_back();
  BOOST_TEST(text == train::read_network(gru).summary());
  std::array<char, 8> begin{};
  BOOST_TEST(ferrite_summary(model.get(), begin.data(), begin.size()) == size);
  BOOST_TEST(std::string(begin.data()) == text.substr(0, 7));
  BOOST_TEST(ferrite_summary(nullptr, nullptr, 0) == 0U);
  BOOST_TEST(ferrite_version() == FERRITE_VERSION);
  BOOST_TEST(ferrite_instruction_set() == instruction_set());
}

/// The header, the list for Windows and what the library exports name the same functions.
BOOST_AUTO_TEST_CASE(exported_names_are_those_of_the_header) {
  const auto names = [](const std::string& text, const std::string& pattern) {
    std::set<std::string> found;
    const std::regex expression(pattern);
    for (std::sregex_iterator m(text.begin(), text.end(), expression), end; m != end; ++m) found.insert((*m)[1]);
    return found;
  };
  const std::filesystem::path source(FERRITE_SOURCE_DIR);
  const auto header = names(io::read_text(source / "c_api/ferrite_c.h"), R"(FERRITE_C_API [^;(]*\b(ferrite_\w+)\()");
  BOOST_TEST(header.size() > 20U);
  BOOST_TEST((names(io::read_text(source / "c_api/ferrite_c.def"), R"(\n  (\w+))") == header));
  std::unique_ptr<FILE, int (*)(FILE*)> nm(popen(FERRITE_NM " -D --defined-only " FERRITE_C_LIBRARY, "r"), pclose);
  std::string exported;
  for (std::array<char, 256> line{}; nm && fgets(line.data(), line.size(), nm.get());) exported += line.data();
  BOOST_TEST((names(exported, R"( T (\w+))") == header));
  BOOST_TEST((names(exported, R"( [A-Z] (\w+))").size() == header.size() + 1));  // and the name of the version
}

BOOST_AUTO_TEST_SUITE_END()
