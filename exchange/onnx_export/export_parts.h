#pragma once
/// The parts of an ONNX model while it is put together: what becomes messages of the file.
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::onnx::detail {

struct GraphParts;
using Integers = std::vector<std::int64_t>;

struct AttributeParts {
  std::string name;
  std::variant<std::int64_t, float, std::string, Integers, std::vector<std::string>, std::shared_ptr<GraphParts>> value;
};

struct NodeParts {
  std::string op, name;
  std::vector<std::string> in, out;
  std::vector<AttributeParts> attributes{};
};

struct InitialiserParts {
  std::string name;
  Tensor tensor;
  bool variable = false;  ///< of the program; else a constant, which becomes a node
};

/// What stands for the name of an extent that has none.
constexpr const char* kOpenExtent = "?";

/// A tensor that a graph takes or gives. `names`: one for each axis, empty where the extent is fixed.
struct PortParts {
  std::string name;
  Spec spec;
  std::vector<std::string> names{};
};

struct GraphParts {
  std::string name;
  std::vector<NodeParts> nodes{};
  std::vector<InitialiserParts> initialisers{};
  std::vector<PortParts> inputs{}, outputs{};
};

/// The bytes of a model: opset 17, IR version 8. Throws ExportError for more than the 2 GiB that a message may have.
std::string encoded(const GraphParts& graph);

}  // namespace ferrite::onnx::detail
