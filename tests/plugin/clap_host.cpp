// A host for the CLAP plug-in of examples/plugin: clap_host PLUGIN BUILT-IN-NET OTHER-NET FOLDER. Its sound is compared
// with the library's stream of the built-in net, bit by bit; nets are replaced, knobs turned and states saved while it
// plays, with what the audio thread requests counted. FOLDER gets an input and what a plug-in makes of it, for the
// hosts of other formats (lv2_host.cpp, vst3_host.py).
#include <dlfcn.h>
#include <ferrite/io/nam.h>
#include <ferrite/nn/stream/stream.h>
#include <ferrite/tensor/denormals.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "alloc/counted.h"
#include "clap/entry.h"
#include "clap/events.h"
#include "clap/ext/latency.h"
#include "clap/ext/params.h"
#include "clap/ext/state.h"
#include "clap/host.h"
#include "clap/plugin-factory.h"
#include "clap/plugin.h"
#include "clap/stream.h"

namespace {

using namespace ferrite;
using Values = std::vector<float>;

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "clap_host: failed: %s\n", what);
  std::exit(1);
}

constexpr clap_host_latency_t kLatency{.changed = [](const clap_host_t*) {}};  // DPF expects that hosts have it
constexpr clap_host_t kHost{.clap_version = CLAP_VERSION,
                            .host_data = nullptr,
                            .name = "clap_host",
                            .vendor = "Ferrite",
                            .url = "",
                            .version = "1",
                            .get_extension = [](const clap_host_t*, const char* id) -> const void* {
                              return std::strcmp(id, CLAP_EXT_LATENCY) == 0 ? &kLatency : nullptr;
                            },
                            .request_restart = [](const clap_host_t*) {},
                            .request_process = [](const clap_host_t*) {},
                            .request_callback = [](const clap_host_t*) {}};

/// A change of a parameter, as the only event of a block, or no event.
struct Event {
  std::uint32_t count = 0;
  clap_event_param_value_t value{};
};

/// A plug-in of one channel.
class Plugin {
 public:
  Plugin(const clap_plugin_factory_t& factory, double rate)
      : plugin_(factory.create_plugin(&factory, &kHost, factory.get_plugin_descriptor(&factory, 0)->id)) {
    require(plugin_ && plugin_->init(plugin_), "a plug-in is made");
    require(plugin_->activate(plugin_, rate, 1, 512) && plugin_->start_processing(plugin_), "it begins to play");
  }
  ~Plugin() {
    plugin_->stop_processing(plugin_);
    plugin_->deactivate(plugin_);
    plugin_->destroy(plugin_);
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  /// Runs a block; on the audio thread.
  bool process(const float* x, float* y, std::uint32_t n, const Event& event = {}) {
    float* in = const_cast<float*>(x);
    clap_audio_buffer_t input{}, output{};
    input.data32 = &in, input.channel_count = 1;
    output.data32 = &y, output.channel_count = 1;
    const clap_input_events_t events{const_cast<Event*>(&event),
                                     [](const clap_input_events_t* e) { return static_cast<Event*>(e->ctx)->count; },
                                     [](const clap_input_events_t* e, std::uint32_t) -> const clap_event_header_t* {
                                       return &static_cast<Event*>(e->ctx)->value.header;
                                     }};
    const clap_output_events_t none{nullptr,
                                    [](const clap_output_events_t*, const clap_event_header_t*) { return true; }};
    clap_process_t p{};
    p.frames_count = n;
    p.audio_inputs = &input, p.audio_outputs = &output;
    p.audio_inputs_count = p.audio_outputs_count = 1;
    p.in_events = &events, p.out_events = &none;
    return plugin_->process(plugin_, &p) != CLAP_PROCESS_ERROR;
  }
  Values process(const Values& x, std::uint32_t block) {
    Values y(x.size());
    for (std::size_t at = 0; at < x.size(); at += block)
      require(process(&x[at], &y[at], static_cast<std::uint32_t>(std::min<std::size_t>(block, x.size() - at))),
              "a block");
    return y;
  }
  Event turn(const char* name, double value) const {
    const auto* params = extension<clap_plugin_params_t>(CLAP_EXT_PARAMS);
    for (std::uint32_t i = 0; i < params->count(plugin_); ++i) {
      clap_param_info_t info{};
      params->get_info(plugin_, i, &info);
      if (std::strcmp(info.name, name) != 0) continue;
      Event e{1, {}};
      e.value.header = {sizeof e.value, 0, CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_PARAM_VALUE, 0};
      e.value.param_id = info.id;
      e.value.note_id = -1, e.value.port_index = -1, e.value.channel = -1, e.value.key = -1;
      e.value.value = value;
      return e;
    }
    require(false, "a parameter of this name");
    return {};
  }
  std::uint32_t latency() const { return extension<clap_plugin_latency_t>(CLAP_EXT_LATENCY)->get(plugin_); }
  std::string state() const {
    std::string all;
    clap_ostream_t stream{&all, [](const clap_ostream_t* s, const void* from, std::uint64_t n) {
                            static_cast<std::string*>(s->ctx)->append(static_cast<const char*>(from), n);
                            return static_cast<std::int64_t>(n);
                          }};
    require(extension<clap_plugin_state_t>(CLAP_EXT_STATE)->save(plugin_, &stream), "the state is saved");
    return all;
  }
  bool restore(std::string state) {
    clap_istream_t stream{&state, [](const clap_istream_t* s, void* to, std::uint64_t n) {
                            auto& rest = *static_cast<std::string*>(s->ctx);
                            n = std::min<std::uint64_t>(n, rest.size());
                            std::memcpy(to, rest.data(), n);
                            rest.erase(0, n);
                            return static_cast<std::int64_t>(n);
                          }};
    return extension<clap_plugin_state_t>(CLAP_EXT_STATE)->load(plugin_, &stream);
  }
  /// Loads a net, as a host does that restores a project.
  bool load(const std::string& path) {
    const std::string zero(1, '\0');
    return restore("__dpf_state_begin__" + zero + "model" + zero + path + zero + "__dpf_state_end__" + zero + "\xfe" +
                   zero);
  }

 private:
  template <class T>
  const T* extension(const char* id) const {
    const void* found = plugin_->get_extension(plugin_, id);
    require(found, id);
    return static_cast<const T*>(found);
  }
  const clap_plugin_t* plugin_;
};

/// Returns what a net makes of x once it has heard silence.
Values played(const std::string& net, const Values& x) {
  const io::NamModel model = io::read_nam(net);
  nn::Stream stream = model.layer->stream();
  const FlushDenormals guard;
  Values silence(8192), y(x.size());
  stream.steps(static_cast<std::int64_t>(silence.size()), silence, silence);
  stream.steps(static_cast<std::int64_t>(x.size()), x, y);
  return y;
}

/// A plucked string: a decaying tone of some harmonics.
Values pluck(std::size_t n, double rate) {
  Values x;
  for (std::size_t t = 0; t < n; ++t) {
    const double s = static_cast<double>(t) / rate;
    double sum = 0;
    for (int k = 1; k <= 5; ++k) sum += std::sin(2 * 3.141592653589793 * 110 * k * s) * std::exp(-3 * k * s) / k;
    x.push_back(static_cast<float>(0.3 * sum));
  }
  return x;
}

double energy(const Values& x, std::size_t from) {
  double sum = 0;
  for (std::size_t t = from; t < x.size(); ++t) sum += static_cast<double>(x[t]) * static_cast<double>(x[t]);
  return sum;
}

void write(const std::filesystem::path& path, const Values& x) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 5, "four arguments");
  const std::string builtin = argv[2], other = argv[3];
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  require(library, "the plug-in is loaded");
  const auto* entry = static_cast<const clap_plugin_entry_t*>(dlsym(library, "clap_entry"));
  require(entry && entry->init(argv[1]), "it has an entry");
  const auto& factory = *static_cast<const clap_plugin_factory_t*>(entry->get_factory(CLAP_PLUGIN_FACTORY_ID));
  require(factory.get_plugin_count(&factory) == 1, "it has one plug-in");
  const Values x = pluck(24000, 48000), expected = played(builtin, x);
  write(std::filesystem::path(argv[4]) / "in.f32", x);
  write(std::filesystem::path(argv[4]) / "out.f32", expected);

  for (const std::uint32_t block : {1U, 64U, 500U}) {
    Plugin plugin(factory, 48000);
    require(plugin.process(x, block) == expected, "the bits of the library's stream");
    require(plugin.latency() == 0, "no latency at the net's rate");
  }
  {  // the knob before the net drives it, that after it is a volume
    Plugin plugin(factory, 48000);
    Values y(x.size()), z(64);
    for (int i = 0; i < 200; ++i) require(plugin.process(x.data(), z.data(), 0, plugin.turn("Output", -20)), "a knob");
    const Values silence(48000);
    plugin.process(silence, 480);  // in which the knob arrives
    y = plugin.process(x, 480);
    for (std::size_t t = 0; t < y.size(); ++t)
      require(std::fabs(y[t] - 0.1F * expected[t]) <= 2e-4F, "-20 dB are a tenth");
    const std::string state = plugin.state();
    Plugin second(factory, 48000);
    require(second.restore(state), "a state is restored");
    require(second.state() == state, "a restored state is the one that was saved");
  }
  {  // another rate: the same sound later, and the host is told by how much
    Plugin plugin(factory, 44100);
    const Values slow = pluck(22050, 44100), y = plugin.process(slow, 256);
    require(plugin.latency() > 0, "a latency at another rate");
    require(std::fabs(energy(y, 0) / 44100 / (energy(expected, 0) / 48000) - 1) < 0.05, "as loud as at the net's rate");
  }
  {  // nets come and go while an audio thread plays
    Plugin plugin(factory, 48000);
    std::atomic<bool> ended = false;
    std::uint64_t asked = 1, locks = 1, blocks = 0;
    std::thread audio([&] {
      const Values silence(64);
      Values y(64);
      const std::uint64_t before = counted::counts().locks;
      asked = counted::during([&] {
        while (!ended) require(plugin.process(silence.data(), y.data(), 64), "a block"), ++blocks;
      });
      locks = counted::counts().locks - before;
    });
    for (int i = 0; i < 20; ++i) {
      require(plugin.load(i % 2 ? other : ""), "a net is loaded");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    require(plugin.state().find(other) != std::string::npos, "the state names the net");
    require(plugin.load("no such file.nam") && plugin.state().find(other) != std::string::npos,
            "a missing file changes nothing");
    ended = true;
    audio.join();
    require(blocks > 100, "it played");
    require(asked == 0 && locks == 0, "the audio thread requests nothing and takes no lock");
    const Values silence(48000);
    plugin.process(silence, 512);
    const Values y = plugin.process(x, 512), alone = played(other, x);
    const double difference = [&] {
      double sum = 0;
      for (std::size_t t = 0; t < y.size(); ++t) sum += std::pow(static_cast<double>(y[t] - alone[t]), 2);
      return sum;
    }();
    require(difference <= 1e-6 * energy(alone, 0), "the other net is heard");
  }
  entry->deinit();
  std::puts("clap_host: as expected");
}
