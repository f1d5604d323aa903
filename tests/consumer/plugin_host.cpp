// A host that loads three plug-ins (plugin.cpp), each with its own copy of the library, and has its own spdlog:
// plugin_host RNN GRU LSTM. Each must compute its own cell, as the loops below do, whatever the others do.
#include <dlfcn.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kUnits = 3;  // all units are equal, as all weights are

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// A unit of a layer whose weights are all w, as in docs.pytorch.org/docs/stable/nn.html.
struct Unit {
  double h = 0, c = 0;
  void step(int kind, double w, double x) {
    const double input = w * x + w, before = kUnits * w * h + w, both = input + before, gate = sigmoid(both);
    if (kind == 0) h = std::tanh(both);
    if (kind == 1) h = (1 - gate) * std::tanh(input + gate * before) + gate * h;
    if (kind == 2) {
      c = gate * c + gate * std::tanh(both);
      h = gate * std::tanh(c);
    }
  }
  double head(double w) const { return kUnits * w * h + w; }
};

template <class F>
F function(void* plugin, const char* name) {
  void* const found = dlsym(plugin, name);
  if (found == nullptr) std::printf("no %s\n", name), std::exit(1);
  return reinterpret_cast<F>(found);
}

struct Plugin {
  void* handle;
  int kind;
  float weight;
  float (*step)(float) = function<float (*)(float)>(handle, "plugin_step");

  /// Returns whether the outputs of many steps are right.
  bool right(int steps) const {
    Unit unit;
    for (int t = 0; t < steps; ++t) {
      const float x = std::sin(0.1F * static_cast<float>(t));
      unit.step(kind, double{weight}, double{x});
      const double wanted = unit.head(double{weight}), got = double{step(x)};
      if (std::abs(got - wanted) > 2e-5) {
        std::printf("plug-in %d, step %d: %g, not %g\n", kind, t, got, wanted);
        return false;
      }
    }
    return true;
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::ostringstream log;
  const auto logger =
      std::make_shared<spdlog::logger>("ferrite", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
  logger->set_pattern("%v");
  spdlog::register_logger(logger);
  std::vector<Plugin> plugins;
  for (int i = 1; i < argc; ++i) {
    void* const handle = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return std::printf("%s\n", dlerror()), 1;
    plugins.push_back({handle, i - 1, 0.2F * static_cast<float>(i)});
    if (function<int (*)(float)>(handle, "plugin_start")(plugins.back().weight) != 0) return std::printf("start\n"), 1;
  }
  spdlog::get("ferrite")->info("ours");
  std::array<bool, 3> right{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < plugins.size(); ++i)
    threads.emplace_back([&, i] { right.at(i) = plugins[i].right(500); });
  for (std::thread& thread : threads) thread.join();
  for (const Plugin& p : plugins) {
    if (!right.at(static_cast<std::size_t>(p.kind))) return 1;
    if (function<int (*)()>(p.handle, "plugin_refuses")() != 1) return std::printf("an exception was lost\n"), 1;
    std::printf("plug-in %d: right, %d lines logged\n", p.kind, function<int (*)()>(p.handle, "plugin_lines")());
  }
  if (dlclose(plugins[0].handle) != 0) return 1;
  if (log.str() != "ours\n") return std::printf("the host's own log: %s\n", log.str().c_str()), 1;
  return plugins.size() == 3 ? 0 : 1;
}
