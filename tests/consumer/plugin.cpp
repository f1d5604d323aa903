// A plug-in: a net whose weights are all one number, run step by step. It exports the functions below and nothing of
// the library (CMakeLists.txt). Three of them, of different cells and weights, are loaded by plugin_host.cpp.
#include <ferrite/inference.h>

#include <atomic>
#include <memory>
#include <optional>

namespace {

using namespace ferrite;

std::atomic<int> lines{0};  // that this plug-in's library logs
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

/// 1 where an exception of the library is caught in the plug-in that it was thrown in.
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
