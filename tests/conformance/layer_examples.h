#pragma once
/// A layer of every kind: what tests say of all layers, they say of these.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ferrite/nn/module.h"

namespace conformance {

/// A class and what it is called elsewhere. Its options are those of its header that are named `options`.
struct LayerExample {
  std::string name;     ///< of the class in its header
  std::string title;    ///< of all that the class stands for
  std::string pytorch;  ///< "" for none
  std::string word;     ///< of the builder, "" for none
  std::string options;
  std::function<std::unique_ptr<ferrite::nn::Layer>()> example;
};
struct LayerSection {
  const char *title, *header;
  std::vector<LayerExample> entries;
};

/// By header, in the order of docs/layers.md.
std::vector<LayerSection> layer_examples();

}  // namespace conformance
