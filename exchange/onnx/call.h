#pragma once
/// The interface through which the lowering of an ONNX operation sees its node.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/exchange/onnx/value.h"

namespace ferrite::onnx::detail {

struct Node;
class Interpreter;
struct Environment;
struct Attribute;

/// The operands and attributes of one application of an ONNX operation. It records what is read: an attribute or input
/// that the lowering function never read is refused afterwards by its name, so that nothing in a file is silently
/// ignored. Reading an absent attribute is allowed; reading one as another type than the file's is refused.
class Call {
 public:
  Call(const Interpreter& interpreter, const Environment& environment, const Node& node, const Values& inputs,
       std::int64_t version);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::string label() const;        ///< the node in an error: "node "encoder/Gru_3" (GRU)"
  std::string_view name() const;    ///< the name of the operation: "Gemm"
  std::string_view domain() const;  ///< the domain of the operation, "" for ai.onnx
  /// Returns the version of the operation's domain that the model (or function) imports.
  std::int64_t version() const { return version_; }

  // ---- inputs: those at the end that are left out are not counted
  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const;
  /// Returns input i. Refuses the node where it is absent.
  const Value& value(std::size_t i) const;
  /// Returns input i. Refuses the node where it is absent or not a tensor.
  const Tensor& tensor(std::size_t i) const;
  ElementType type(std::size_t i) const { return value(i).type; }
  /// Returns whether the numbers of an input can be read now.
  bool known(std::size_t i) const;
  /// Returns the numbers of an input, row-major. Refuses the node ("depends on data") where they are not known during
  /// tracing.
  std::vector<std::int64_t> known_ints(std::size_t i) const;
  std::vector<double> known_floats(std::size_t i) const;
  /// Returns the only number of an input. Refuses the node as known_ints, and where there are more or fewer.
  std::int64_t known_int(std::size_t i) const;
  double known_float(std::size_t i) const;

  // ---- attributes
  bool has_attribute(std::string_view name) const;
  /// Returns an attribute. The getters without a default refuse the node where it is absent.
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double number(std::string_view name) const;
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise = {}) const;
  std::vector<double> numbers(std::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(std::string_view name, std::vector<std::string> otherwise = {}) const;
  /// Returns an attribute that is a tensor, or a sparse tensor made dense, as a constant.
  Value tensor_attribute(std::string_view name) const;
  /// Marks an attribute as read that has no influence on results in Ferrite (for example a hint for training only);
  /// callers say why.
  void without_effect(std::string_view name) const;

  // ---- graphs as attributes (If, Loop, Scan)
  /// Runs the graph with these inputs; names of the surrounding graphs are visible inside.
  Values run(std::string_view attribute, const Values& inputs) const;
  std::size_t graph_inputs(std::string_view attribute) const;
  std::size_t graph_outputs(std::string_view attribute) const;
  /// Returns the largest number of iterations of an unrolled loop.
  std::int64_t most_trips() const;
  /// Returns the largest number of elements of a result.
  std::int64_t most_elements() const;

  // ---- outputs
  std::size_t outputs() const;
  /// Returns whether output i has a name; one without may be left undefined.
  bool wants(std::size_t i) const;

  /// Throws OnnxError "onnx: node "encoder/Gru_3" (GRU): <why>".
  [[noreturn]] void refuse(const std::string& why) const;
  /// Reports numbers that follow from open extents and decide what the node becomes; they have to follow from small
  /// extents, too (exchange::detail::KeepExtentsOpen). `counts` says that those below 0 were replaced by 0.
  void tell(std::vector<std::int64_t> numbers, bool counts = false) const;
  /// Records what the node became, for Model::report(): "fused sequence of a GRU", "scan: clip is given".
  void lowered_as(const std::string& what) const;

  /// Refuses attributes and inputs that were never read; for the interpreter.
  void check_all_read() const;

 private:
  const Attribute* find(std::string_view name, bool read) const;
  const Attribute& get(std::string_view name, int type) const;

  const Interpreter* interpreter_;
  const Environment* environment_;
  const Node* node_;
  const Values& inputs_;
  std::int64_t version_;
  mutable std::uint64_t read_inputs_ = 0;
  mutable std::uint64_t read_attributes_ = 0;
};

}  // namespace ferrite::onnx::detail
