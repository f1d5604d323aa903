// A plug-in that runs a net step by step; all weights of the net are the same number. It exports the functions below
// and nothing of the library (CMakeLists.txt). plugin_host.cpp loads three plug-ins with different cells and weights.
#include <ferrite/inference.h>

#include <atomic>
#include <memory>
#include <optional>

namespace {

using namespace ferrite;

std::atomic<int> lines{0};  // lines that this plug-in's library has logged
std::optional<dsl::Network> net;
std::optional<nn::Stream> stream;

}  // namespace

extern "C" __attribute__((visibility("default"))) int plugin_start(float weight) {
  try {
    set_log_sink([](LogLevel, std::string_view) { ++lines; }, LogLevel::debug);
    set_threads(2);
    net = dsl::sequence(1).PLUGIN_CELL(3).linear(1).build(/*seed=*/0);
    for (const Parameter& p : net->parameters()) p.assign(full(p.value().shape(), weight));
    stream.emplace(net->stream());
    return 0;
  } catch (const Error&) {
    return 1;
  }
}

extern "C" __attribute__((visibility("default"))) float plugin_step(float x) {
  float y = 0;
  stream->step({&x, 1}, {&y, 1});
  return y;
}

/// Returns 1 if an exception of the library is caught in the plug-in that threw it.
extern "C" __attribute__((visibility("default"))) int plugin_refuses() {
  try {
    (*net)(ones({2}));
  } catch (const ShapeError&) {
    return 1;
  } catch (...) {
    return 0;
  }
  return 0;
}

extern "C" __attribute__((visibility("default"))) int plugin_lines() { return lines; }
