#pragma once
/// Reading ONNX files as programs that can be run, trained and compiled.
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ferrite/exchange/onnx_error.h"
#include "ferrite/nn/module.h"

/// ONNX (onnx.ai), opset 7 and later. docs/onnx-operations.md lists the supported operations.
namespace ferrite::onnx {

/// Options and limits for reading an ONNX model.
struct ReadOptions {
  /// Allows tensors in other files below the folder of the model: no absolute paths, none with "..", no links that
  /// leave it. Only with `read`.
  bool external_data = false;
  /// Makes all initialisers constants, so that the model has no parameters and `compile` prepares its weights once.
  bool frozen = false;
  /// Exceptions to the rule for which initialisers train, by their names in the file: {"val_3", true}. `read` throws
  /// ValueError for an unknown name and for one that cannot train, because it holds no floats or its numbers have to be
  /// known while a program is traced.
  std::map<std::string, bool> trains{};
  /// Values of inputs that are the same in every call, by name: {"sr", 16000}. They are then not inputs of the model,
  /// and everything that depends on them alone is computed before the program is traced.
  std::map<std::string, Tensor> constants{};
  /// Largest number of iterations of one Loop; graphs within the model (the bodies of its nodes) may together run 64
  /// times as often in one call. The call throws beyond that.
  std::int64_t most_trips = 1024;
  /// Largest number of elements of a node's result and of its operation's intermediate values, so that a small file
  /// cannot take all memory. Beyond that, OnnxError names the node.
  std::int64_t most_elements = std::int64_t{1} << 32;
};

/// An input or output of a model.
struct Port {
  std::string name;  ///< name in the file
  /// ONNX's type of the elements, "float", "int64", "float16"; empty where the file does not say.
  std::string type{};
  /// Ferrite's dtype of the tensor. Types that it does not compute with are held in wider ones: f16 and bf16 in f32,
  /// integers of 16 bits and less in i32, uint32 and uint64 in i64.
  Dtype dtype = Dtype::f32;
  /// The extents as text, one for each axis: "3", a name ("batch"), or "?" for an extent that the file leaves open.
  std::vector<std::string> shape{};
  bool ranked = true;  ///< whether the file gives a shape at all
};

/// An ONNX model as a module. Its parameters are the initialisers of floats, under their names in the file, except for
///  - those whose numbers have to be known while a program is traced (the scales of a Resize), which are folded;
///  - running statistics, and operands of products of integers;
///  - constants that an exporter made, by name, use and shape: an exponent ("val_3"), a state, a mask, a table.
/// docs/onnx.md has the rule, `report` says for each initialiser what became of it and why, and
/// ReadOptions::trains overrides it. A call runs the graph's nodes as Ferrite's operations, so a model may be compiled,
/// differentiated, trained and saved like any other module. A model cannot be copied; `clone` copies the values. Calls
/// from several threads are safe.
///
///   const onnx::Model model = onnx::read("denoiser.onnx");
///   const Tensors y = model.run({x, state});
///   const auto fast = compile([&](const Tensors& in) { return model.run(in); });
class Model final : public nn::Layer {
 public:
  std::string kind() const override { return "onnx"; }
  std::string summary() const override;
  /// Returns the inputs in the file's order, without those that ReadOptions::constants gives.
  const std::vector<Port>& inputs() const&;
  /// Returns the outputs in the file's order.
  const std::vector<Port>& outputs() const&;

  /// Runs the model. Throws ShapeError and DtypeError for inputs that do not fit `inputs()`, OnnxError, naming the
  /// node, for a node that cannot be run: its operation has an attribute that is not supported, or, during tracing, its
  /// shape depends on data.
  Tensors run(const Tensors& inputs) const;
  /// Runs a model with one input and one output. Throws as `run`, and ValueError for other models and for a context
  /// that is not empty.
  Tensor forward(const Tensor& x, const nn::Context& context) const override;
  std::unique_ptr<nn::Layer> clone() const override;

  /// Returns a description of the model: the number of nodes of each operation; for every initialiser whether it
  /// trains, is fixed or is folded, and why (`"val_3" (initialiser): fixed: one number under a name that an exporter
  /// made`); and, after a call, how nodes that can run in several forms were lowered and why (`"gru" (GRU): fused`).
  std::string report() const;

 private:
  struct State;
  friend Model read(const std::filesystem::path& path, const ReadOptions& options);
  friend Model parse(std::span<const std::byte> bytes, const ReadOptions& options);
  explicit Model(std::shared_ptr<State> state, const Model* values = nullptr);

  std::shared_ptr<State> state_;
  std::vector<Parameter> parameters_{};
};

/// Reads a model from a file, which is not needed afterwards. Until it runs or reports, memory is at most twice the
/// file plus 1 MiB, and 1,200 bytes for each parameter in addition to its elements; docs/onnx.md has the rest.
/// Throws OnnxError for a file that is missing or damaged, or that holds an operation that is not supported.
Model read(const std::filesystem::path& path, const ReadOptions& options = {});
/// Reads a model from bytes in memory, which are copied. Throws OnnxError as `read`.
Model parse(std::span<const std::byte> bytes, const ReadOptions& options = {});

}  // namespace ferrite::onnx
