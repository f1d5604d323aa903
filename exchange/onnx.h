#pragma once
/// ONNX files as programs: read, run, trained and compiled.
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ferrite/exchange/onnx_error.h"
#include "ferrite/nn/module.h"

/// ONNX (onnx.ai), opset 7 and later. docs/onnx-operations.md says which operations there are.
namespace ferrite::onnx {

struct ReadOptions {
  /// Tensors may be in other files, below the folder of the model: no absolute paths, none with "..", no links that
  /// leave it. Only with `read`.
  bool external_data = false;
  /// The model has no parameters: all initialisers are constants, which lets `compile` prepare weights once.
  bool frozen = false;
  /// Initialisers that train although the rule fixes them, or are fixed although it has them train, by their names in
  /// the file: {"val_3", true}. `read` throws ValueError for a name that is none, and where one cannot train: it holds
  /// no floats, or its numbers have to be known while a program is traced.
  std::map<std::string, bool> trains{};
  /// Inputs that are the same in every call, by name: {"sr", 16000}. They are none of the model's inputs then, and what
  /// depends on them alone is computed before the program is traced.
  std::map<std::string, Tensor> constants{};
  /// How many trips a Loop may make, and 64 times as many all graphs within the model in one call; beyond that the call
  /// throws.
  std::int64_t most_trips = 1024;
  /// How many elements a result of a node may have, and what its operation holds in between: a small file must not take
  /// all memory. More throws OnnxError that names the node.
  std::int64_t most_elements = std::int64_t{1} << 32;
};

/// What a model takes or gives.
struct Port {
  std::string name;
  /// Of the tensor: "float", "int64", "float16", as ONNX writes it; empty where the file does not say.
  std::string type{};
  /// The dtype of the tensor here. Types that Ferrite does not compute with are held in wider ones: f16 and bf16 in
  /// f32, integers of 16 bits and less in i32, uint32 and uint64 in i64.
  Dtype dtype = Dtype::f32;
  /// One text for each axis: "3", a name ("batch"), or "?" for an extent that the file leaves open.
  std::vector<std::string> shape{};
  bool ranked = true;  ///< whether the file says the shape at all
};

/// An ONNX model as a module. Its parameters are the initialisers of floats, under their names in the file, but for
///  - those whose numbers have to be known while a program is traced (the scales of a Resize), which are folded;
///  - running statistics, and operands of products of integers;
///  - constants that an exporter made, by name, use and shape: one number ("val_3": an epsilon or an exponent), a first
///    state, a mask, a table.
/// docs/exchange.md has the rule, `report` says of each what became of it and why, and ReadOptions::trains overrides
/// it. A call runs the graph's nodes in Ferrite's operations, so a model may be compiled, differentiated, trained and
/// saved like any other module. Copies of a handle cannot be made; `clone` copies the values. Calls from several
/// threads are safe.
///
///   const onnx::Model model = onnx::read("denoiser.onnx");
///   const Tensors y = model.run({x, state});
///   const auto fast = compile([&](const Tensors& in) { return model.run(in); });
class Model final : public nn::Layer {
 public:
  std::string kind() const override { return "onnx"; }
  std::string summary() const override;
  /// Inputs in the file's order, without those that ReadOptions::constants gives.
  const std::vector<Port>& inputs() const&;
  const std::vector<Port>& outputs() const&;

  /// Runs the model. Throws ShapeError and DtypeError for inputs that do not fit `inputs()`, OnnxError, naming the
  /// node, for what cannot be run: an operation with an attribute that is not supported, or, while it is traced, a
  /// shape that depends on data.
  Tensors run(const Tensors& inputs) const;
  /// That of a model with one input and one output. Throws ValueError for others, and for a context that is not empty.
  Tensor forward(const Tensor& x, const nn::Context& context) const override;
  std::unique_ptr<nn::Layer> clone() const override;

  /// How many nodes there are of each operation; of every initialiser whether it trains, is fixed or is folded, and
  /// why:
  /// `"val_3" (initialiser): fixed: one number under a name that an exporter made`; and, after a call, how nodes that
  /// can run in several forms were lowered and why: `"gru" (GRU): fused`.
  std::string report() const;

 private:
  struct State;
  friend Model read(const std::filesystem::path& path, const ReadOptions& options);
  friend Model parse(std::span<const std::byte> bytes, const ReadOptions& options);
  explicit Model(std::shared_ptr<State> state, const Model* values = nullptr);

  std::shared_ptr<State> state_;
  std::vector<Parameter> parameters_{};
};

/// Reads a model from a file, which it needs no more then. Before it runs or reports, memory is at most twice the file
/// and 1 MiB, and 1,200 bytes for each parameter beyond its elements; docs/exchange.md has the rest. Throws OnnxError
/// for a file that is missing or damaged, or that holds an operation that is not supported.
Model read(const std::filesystem::path& path, const ReadOptions& options = {});
/// The same from bytes, which are copied.
Model parse(std::span<const std::byte> bytes, const ReadOptions& options = {});

}  // namespace ferrite::onnx
