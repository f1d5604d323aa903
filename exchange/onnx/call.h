#pragma once
/// One application of an ONNX operation, as the function that lowers it sees it.
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

/// The operands and attributes of a node. It notes what was asked for: an attribute or an input of the node that the
/// lowering function never read is refused afterwards by its name, so that nothing of a file is ignored in silence.
/// Reading an attribute that is absent counts as nothing; reading one of another type than the file's is refused.
class Call {
 public:
  Call(const Interpreter& interpreter, const Environment& environment, const Node& node, const Values& inputs,
       std::int64_t version);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::string label() const;        ///< "node "encoder/Gru_3" (GRU)"
  std::string_view name() const;    ///< "Gemm"
  std::string_view domain() const;  ///< "" for ai.onnx
  /// The version of the operation's domain that the model (or function) imports.
  std::int64_t version() const { return version_; }

  // ---- inputs: those at the end that are left out are not counted
  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const;
  /// Refuses the node where the input is absent.
  const Value& value(std::size_t i) const;
  /// The same where it must be a tensor.
  const Tensor& tensor(std::size_t i) const;
  ElementType type(std::size_t i) const { return value(i).type; }
  /// Whether the numbers of an input can be read now.
  bool known(std::size_t i) const;
  /// Row-major numbers of an input. Refuses the node ("depends on data") where they are not known while it is traced.
  std::vector<std::int64_t> known_ints(std::size_t i) const;
  std::vector<double> known_floats(std::size_t i) const;
  /// The only element of them.
  std::int64_t known_int(std::size_t i) const;
  double known_float(std::size_t i) const;

  // ---- attributes
  bool has_attribute(std::string_view name) const;
  /// The getters without a default refuse the node where the attribute is absent.
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double number(std::string_view name) const;
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise = {}) const;
  std::vector<double> numbers(std::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(std::string_view name, std::vector<std::string> otherwise = {}) const;
  /// A tensor, or a sparse tensor made dense; constant.
  Value tensor_attribute(std::string_view name) const;
  /// Marks an attribute as read that has no influence on results here (for example a hint for training alone); say why
  /// where you call it.
  void without_effect(std::string_view name) const;

  // ---- graphs as attributes (If, Loop, Scan)
  /// Runs the graph with these inputs; names of the surrounding graphs are visible inside.
  Values run(std::string_view attribute, const Values& inputs) const;
  std::size_t graph_inputs(std::string_view attribute) const;
  std::size_t graph_outputs(std::string_view attribute) const;
  /// The trips that an unrolled loop may have at most.
  std::int64_t most_trips() const;
  /// The elements that a result may have at most.
  std::int64_t most_elements() const;

  // ---- outputs
  std::size_t outputs() const;
  /// Whether output i has a name: one without may be left undefined.
  bool wants(std::size_t i) const;

  /// "onnx: node "encoder/Gru_3" (GRU): <why>", as an OnnxError.
  [[noreturn]] void refuse(const std::string& why) const;
  /// Where extents stay open: numbers that follow from them and decide what the node becomes; `counts`: 0 where they
  /// would be less. They have to follow from the extents at small ones, too (exchange::detail::KeepExtentsOpen).
  void tell(std::vector<std::int64_t> numbers, bool counts = false) const;
  /// What the node became, for Model::report(): "fused sequence of a GRU", "scan: clip is given".
  void lowered_as(const std::string& what) const;

  /// For the interpreter: refuses what the node has and nobody read.
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
