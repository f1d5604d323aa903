#pragma once
/// A layer of every kind, for tests of a property that all layers have.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ferrite/nn/module.h"

namespace conformance {

/// A layer's class and its names elsewhere. Its options are those of its header that are named `options`.
struct LayerExample {
  std::string name;     ///< name of the class in its header
  std::string title;    ///< title of the class's section on the page
  std::string pytorch;  ///< name in PyTorch; "" for none
  std::string word;     ///< word of the builder; "" for none
  std::string options;
  std::function<std::unique_ptr<ferrite::nn::Layer>()> example;
};
struct LayerSection {
  const char *title, *header;
  std::vector<LayerExample> entries;
};

/// Returns the examples by header, in the order of docs/layers.md.
std::vector<LayerSection> layer_examples();

}  // namespace conformance
