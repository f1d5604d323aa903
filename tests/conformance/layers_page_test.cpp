// docs/layers.md is generated from the headers in nn/ and from a layer of every kind; this test keeps it current.
// FERRITE_REGENERATE=1 writes it.
#include <filesystem>
#include <set>
#include <sstream>

#include "conformance/header_text.h"
#include "conformance/layer_examples.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/graph_layer.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/branches.h"
#include "ferrite/nn/layers/standardize.h"
#include "ferrite/nn/layers/wavenet.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"

using namespace ferrite;
using Entry = conformance::LayerExample;
using Section = conformance::LayerSection;

namespace {

bool declares(const std::string& line, const std::string& name) {
  return (line.starts_with("class " + name + " ") || line.starts_with("class " + name + ";")) && line.back() == '{';
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& p : parts) all += (all.empty() ? "" : ", ") + p;
  return all.empty() ? "-" : all;
}
std::string code(const std::string& text) { return text.empty() ? "-" : "`" + text + "`"; }

std::string variables_of(const nn::Layer& layer) {
  std::vector<std::string> all;
  for (const auto& p : layer.named_parameters())
    all.push_back(code(p.name) + " " + p.variable.shape().str() +
                  (p.variable.layout() == FileLayout::transposed ? "^T" : ""));
  for (const auto& b : layer.named_buffers()) all.push_back(code(b.name) + " " + b.variable.shape().str());
  return joined(all);
}

/// Describes what a stream of one row holds between its steps.
std::string stream_of(const nn::Layer& layer) {
  layer.eval();
  if (!layer.streams()) return "no";
  std::vector<std::string> all;
  const nn::StepInput in = layer.step_input();
  for (const nn::StepState& s : layer.states({1, std::max<std::int64_t>(in.width, 1), in.dtype}))
    all.push_back(s.name + " " + s.spec().shape.str());
  if (all.empty())
    for (const nn::CarriedState& s : layer.carried_states())
      all.push_back(s.name + " " + Shape{s.layers, 1, s.width}.str());
  return all.empty() ? "yes" : "yes: " + joined(all);
}

constexpr const char* kBegin = R"(# Layers

Find a layer, its options and its word for chains. A net is a chain of the builder's words; `add` puts any layer into it,
and `net.summary()` lists shapes, parameters and multiply-adds. To write your own, see
[writing a layer](writing-layers.md). Where PyTorch has the layer, names, options, initial values and results are
PyTorch's (`tests/golden/layers_golden_test.cpp`, `attention_golden_test.cpp`, `recurrent_golden_test.cpp`). This page is
generated from the headers in `nn/` and from a layer of every kind; do not edit it.

In the table, `variables` lists the variables of the layer in the first column; `^T` marks a matrix that is [out, in] in
files and [in, out] in memory. `streams` lists what a stream of one row carries from step to step; `no` means that a
step's output depends on later steps.
)";

std::string page() {
  std::ostringstream table, text;
  for (const Section& section : conformance::layer_examples()) {
    text << "## " << section.title << "\n\n`" << section.header << "`\n\n";
    for (const Entry& e : section.entries) {
      const std::unique_ptr<nn::Layer> layer = e.example();
      table << "| " << code(layer->summary()) << " | " << code(e.pytorch) << " | " << code(e.word) << " | "
            << variables_of(*layer) << " | " << stream_of(*layer) << " |\n";
      text << "### `nn::" << e.title << "`\n\n"
           << pages::docstring(section.header, [&](const std::string& line) { return declares(line, e.name); }) << "\n";
      if (e.options.empty()) continue;
      const std::string members = pages::members(section.header, e.options);
      BOOST_TEST_REQUIRE(!members.empty(), e.options);
      text << "Options, with their defaults:\n\n" << members << "\n";
    }
  }
  std::string activations;
  for (const std::string& name : nn::activation_names()) activations += (activations.empty() ? "" : ", ") + name;
  std::string all =
      std::string(kBegin) + "\n| layer | `torch.nn` | word | variables | streams |\n|---|---|---|---|---|\n" +
      table.str() +
      "\nActivations without options are added by `.activation(name)`, and most of them also by their own words: " +
      activations + ".\n\n" + text.str();
  all.pop_back();
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reference_pages)

BOOST_AUTO_TEST_CASE(layers_md) { pages::check_page("docs/layers.md", page()); }

/// Every layer that a header declares is on the page.
BOOST_AUTO_TEST_CASE(every_layer_is_on_the_page) {
  std::set<std::string> known{"GraphLayer"};  // layers from files are documented elsewhere
  for (const Section& section : conformance::layer_examples())
    for (const Entry& e : section.entries) known.insert(e.name);
  namespace fs = std::filesystem;
  for (const char* folder : {"nn/layers", "nn/recurrent"})
    for (const fs::directory_entry& file : fs::directory_iterator(fs::path(FERRITE_SOURCE_DIR) / folder)) {
      if (file.path().extension() != ".h") continue;
      for (const std::string& line : pages::lines_of(std::string(folder) + "/" + file.path().filename().string())) {
        const bool layer = line.find(" : public LayerOf<") != std::string::npos ||
                           line.find(" : public Layer ") != std::string::npos ||
                           line.find(" : public Parametrized ") != std::string::npos ||
                           line.find(" : public Sequential ") != std::string::npos ||
                           line.find(" : public Branches ") != std::string::npos ||
                           line.find("ElementLayer<") != std::string::npos;
        if (!layer || !line.starts_with("class ")) continue;
        const std::string name = line.substr(6, line.find(' ', 6) - 6);
        const bool base = line.find(" final ") == std::string::npos && name != "Sequential";
        BOOST_TEST((base || known.contains(name)), name << " is not in docs/layers.md");
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
