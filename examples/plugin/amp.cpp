/// A guitar amplifier as a plug-in: it plays a net from a `.nam` file, which can be replaced while it plays. One source
/// for CLAP, VST3, LV2 and JACK; the framework DPF has the wrappers.
#include <ferrite/io/nam.h>
#include <ferrite/nn/stream/stream_slot.h>
#include <ferrite/tensor/denormals.h>
#include <ferrite/tensor/error.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "DistrhoPlugin.hpp"
#include "builtin_net.h"

namespace {

using namespace ferrite;

constexpr const char* kModel = "model";  // the state that names the file; empty: the net that is built in
constexpr double kSmooth = 0.02;         // seconds in which a knob takes effect, and one net follows another
enum Knob : uint32_t { input, output, knobs };

float gain_of(float decibels) { return std::pow(10.0F, decibels / 20); }

class Amp final : public DISTRHO::Plugin {
 public:
  Amp() : Plugin(knobs, /*programs=*/0, /*states=*/1), model_(builtin()) {}

 private:
  // What the plug-in is.
  const char* getLabel() const override { return "FerriteAmp"; }
  const char* getDescription() const override { return "Plays amplifiers that a neural network has learned"; }
  const char* getMaker() const override { return "Ferrite"; }
  const char* getLicense() const override { return "MIT"; }
  uint32_t getVersion() const override { return d_version(0, 2, 0); }
  int64_t getUniqueId() const override { return d_cconst('F', 'r', 'A', 'm'); }

  void initParameter(uint32_t index, DISTRHO::Parameter& p) override {
    p.hints = DISTRHO::kParameterIsAutomatable;
    p.name = index == input ? "Input" : "Output";
    p.symbol = index == input ? "input" : "output";
    p.unit = "dB";
    p.ranges.def = 0, p.ranges.min = -30, p.ranges.max = 30;
  }
  void initState(uint32_t, DISTRHO::State& s) override {
    s.hints = DISTRHO::kStateIsFilenamePath;
    s.key = kModel;
    s.label = "Model";
    s.defaultValue = "";
  }

  // On any thread.
  float getParameterValue(uint32_t index) const override { return decibels_[index]; }
  void setParameterValue(uint32_t index, float value) override { decibels_[index] = value; }

  // On any thread but the audio thread.
  DISTRHO::String getState(const char*) const override {
    const std::lock_guard lock(loading_);
    return DISTRHO::String(path_.c_str());
  }
  void setState(const char*, const char* path) override {
    const std::lock_guard lock(loading_);
    try {
      io::NamModel model =
          *path ? io::read_nam(std::filesystem::path(reinterpret_cast<const char8_t*>(path))) : builtin();
      if (slot_) put(model);
      model_ = std::move(model);
      path_ = path;
    } catch (const std::exception& e) {
      d_stderr("Ferrite Amp keeps its present net: %s", e.what());
    }
  }

  // While no audio runs; DPF calls it before the first block.
  void activate() override {
    const std::lock_guard lock(loading_);
    const double rate = std::round(getSampleRate());
    const auto make = [&](double own) {
      slot_.emplace(stream_of(model_), nn::StreamSlotOptions{.crossfade = std::llround(kSmooth * rate), .rate = rate},
                    own);
    };
    try {
      make(model_.sample_rate.value_or(0));
    } catch (const Error& e) {  // no conversion between the two rates
      d_stderr("Ferrite Amp plays its net at the rate of the host: %s", e.what());
      make(0);
    }
    setLatency(static_cast<uint32_t>(slot_->latency()));
    smooth_ = static_cast<float>(1 - std::exp(-1 / (kSmooth * rate)));
    for (uint32_t k = 0; k < knobs; ++k) gains_[k] = gain_of(decibels_[k]);
  }

  // On the audio thread: no lock, no allocation, nothing freed.
  void run(const float** in, float** out, uint32_t frames) override {
    const FlushDenormals guard;
    const std::span<float> y(out[0], frames);
    amplify(input, {in[0], frames}, y);
    slot_->steps(frames, y, y);
    amplify(output, y, y);
    setLatency(static_cast<uint32_t>(slot_->latency()));
  }

  static io::NamModel builtin() { return io::parse_nam(std::as_bytes(std::span(kBuiltinNet))); }

  /// Returns a stream that has been fed silence, as an amplifier is silent before someone plays.
  static nn::Stream stream_of(const io::NamModel& model) {
    nn::Stream stream = model.layer->stream();
    std::vector<float> silence(8192);
    stream.steps(static_cast<std::int64_t>(silence.size()), silence, silence);
    return stream;
  }
  void put(const io::NamModel& model) { slot_->put(stream_of(model), model.sample_rate.value_or(0)); }

  /// Multiplies by the gain of a knob, which follows the knob without steps.
  void amplify(Knob knob, std::span<const float> x, std::span<float> y) {
    const float to = gain_of(decibels_[knob]);
    float g = gains_[knob];
    for (std::size_t t = 0; t < x.size(); ++t) {
      g += smooth_ * (to - g);
      y[t] = g * x[t];
    }
    gains_[knob] = g;
  }

  std::atomic<float> decibels_[knobs]{};
  float gains_[knobs]{};
  float smooth_ = 0;
  mutable std::mutex loading_;
  io::NamModel model_;
  std::string path_;
  std::optional<nn::StreamSlot> slot_;
};

}  // namespace

START_NAMESPACE_DISTRHO
Plugin* createPlugin() { return new Amp; }
END_NAMESPACE_DISTRHO
