#pragma once
/// Traced programs: applications of operations over numbered, typed values.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/scope.h"
#include "ferrite/tensor/variable.h"

namespace ferrite {

/// Number of a value in a graph.
using ValueId = std::uint32_t;

/// A traced program: applications of operations, in order, over numbered and typed values. A value is an input, a
/// variable as it was before the program ran, a constant, or one result of one node. Running the program computes the
/// outputs and gives variables their new values.
struct Graph {
  struct Node {
    const Primitive* op = nullptr;
    Attrs attrs{};
    InlineVector<ValueId, 3> in{};
    InlineVector<ValueId, 1> out{};
    /// The layer that applied it, or whose gradient it is part of. In a body: empty for the layer of the scan.
    Scope scope{};
  };
  struct Constant {
    ValueId value = 0;
    Tensor tensor{};  ///< may be strided: a repeated value takes one element
  };
  /// A variable and the value that it has at first (a read) or is given at the end (a write).
  struct VariableValue {
    std::uint32_t variable = 0;  ///< index into `variables`
    ValueId value = 0;
  };

  std::vector<Spec> values;  ///< by number
  std::vector<ValueId> inputs;
  std::vector<Variable> variables;
  std::vector<VariableValue> reads;
  std::vector<Constant> constants;
  std::vector<Node> nodes;  ///< every operand stands before its reader
  std::vector<ValueId> outputs;
  std::vector<VariableValue> writes;

  /// A new value of that type.
  ValueId add_value(const Spec& spec);
  /// A new constant.
  ValueId add_constant(const Tensor& tensor);
  /// A new node at the end with one result of that type; gives the result.
  ValueId add_node(const Primitive& op, const Attrs& attrs, std::initializer_list<ValueId> in, const Spec& out,
                   Scope scope = {});

  /// Throws TraceError where a value is used before it is defined, defined twice or out of range, or where the types of
  /// a node's results are not what its operation's shape rule says.
  void validate() const;

  /// One line for every value, in order; the same program always gives the same text, and `parse_graph` reads it back.
  /// Floats of constants are hexadecimal, so nothing is rounded. Constants of more than `most_inline` elements stand as
  /// `#0`, `#1`, ... in the order of `constants`. With `scopes`, the lines of nodes that belong to a layer end with its
  /// path: `scope="encoder.0"`, which is read back, too.
  std::string str(std::int64_t most_inline = 64, bool scopes = false) const;
  /// The same as a drawing in the language of Graphviz.
  std::string graphviz() const;
};

namespace detail {

/// A program that an application carries among its constants: the body of a scan.
class Body : public Subprogram {
 public:
  virtual const Graph& graph() const = 0;
  static const Body& of(const Attrs& attrs) { return static_cast<const Body&>(*attrs.body); }
};

}  // namespace detail

/// What running all nodes of a graph once costs.
Cost cost_of(const Graph& graph);

/// What the nodes of one layer cost.
struct LayerCost {
  Scope scope{};               ///< empty: of no layer
  std::size_t operations = 0;  ///< nodes; those of a body count as their scan
  Cost cost{};
};

/// The cost of a graph by layers, in the order of their first nodes: it adds up to `cost_of(graph)`. Each node counts
/// for the innermost layer that it belongs to, those of a gradient for the layer whose gradient they are; a scan counts
/// for the layer that runs it.
std::vector<LayerCost> cost_by_layer(const Graph& graph);
/// The same as a table, with the total at its end.
std::string cost_table(const Graph& graph);

/// What a text cannot hold.
struct ParseOptions {
  /// Tensors that stand as `#0`, `#1`, ... in the text.
  std::span<const Tensor> constants{};
  /// The variable of a name; where there is none, a new variable of zeros is made.
  std::function<Variable(std::string_view name)> variable{};
  /// Operations besides those of tensors: of layers (`nn::operations()`), all `composites()`, whose constants are
  /// believed, and those that a program wrote (tensor/define.h).
  std::span<const Primitive* const> operations{};
};

/// A graph from its text form. Throws TraceError, naming the line, for what is not one.
Graph parse_graph(std::string_view text, const ParseOptions& options = {});

/// Applies every node of a graph to tensors (traced or not) in the present frame, without its variables: `inputs` are
/// those of the graph, then the values of the variables read. Gives the outputs, then the values of the variables
/// written. This is the definition of what running a graph means.
Tensors replay(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace ferrite
