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

/// The number of a value in a graph, an index into Graph::values.
using ValueId = std::uint32_t;

/// A traced program: applications of operations, in order, over numbered and typed values. A value is an input, a
/// variable as it was before the program ran, a constant, or one result of one node. Running the program computes the
/// outputs and gives variables their new values.
struct Graph {
  /// An application of an operation to values.
  struct Node {
    const Primitive* op = nullptr;   ///< the record of the operation
    Attrs attrs{};                   ///< constants of this application, such as an axis
    InlineVector<ValueId, 3> in{};   ///< operands
    InlineVector<ValueId, 1> out{};  ///< results
    /// The layer that applied the operation, or whose gradient it is part of. In a scan's body, empty means the layer
    /// of the scan.
    Scope scope{};
  };
  /// A value that is known before the program runs.
  struct Constant {
    ValueId value = 0;
    Tensor tensor{};  ///< the value; may be strided: a repeated value takes one element
  };
  /// A variable with its value before the program runs (in `reads`) or afterwards (in `writes`).
  struct VariableValue {
    std::uint32_t variable = 0;  ///< index into `variables`
    ValueId value = 0;
  };

  std::vector<Spec> values;           ///< the type of each value, by ValueId
  std::vector<ValueId> inputs;        ///< values that the caller passes in
  std::vector<Variable> variables;    ///< variables that the program reads or writes
  std::vector<VariableValue> reads;   ///< values of variables before the program runs
  std::vector<Constant> constants;    ///< values known before the program runs
  std::vector<Node> nodes;            ///< in an order in which every operand is defined before it is read
  std::vector<ValueId> outputs;       ///< values that the program returns
  std::vector<VariableValue> writes;  ///< values that variables are given at the end

  /// Adds a value of the type `spec` and returns its number.
  ValueId add_value(const Spec& spec);
  /// Adds a constant and returns the number of its value.
  ValueId add_constant(const Tensor& tensor);
  /// Appends a node with one result of the type `out` and returns the result's number.
  ValueId add_node(const Primitive& op, const Attrs& attrs, std::initializer_list<ValueId> in, const Spec& out,
                   Scope scope = {});

  /// Throws TraceError where a value is used before it is defined, defined twice or out of range, or where the types of
  /// a node's results are not what its operation's shape rule says.
  void validate() const;

  /// Returns the graph as text, one line for every value, in order. The same program always gives the same text, and
  /// `parse_graph` reads it back. Floats of constants are hexadecimal, so nothing is rounded. Constants of more than
  /// `most_inline` elements are written as `#0`, `#1`, ... in the order of `constants`. With `scopes`, the lines of
  /// nodes that belong to a layer end with its path: `scope="encoder.0"`, which is read back, too.
  std::string str(std::int64_t most_inline = 64, bool scopes = false) const;
  /// Returns the graph as a drawing in the language of Graphviz.
  std::string graphviz() const;
};

namespace detail {

/// A program that an application carries among its constants, such as the body of a scan.
class Body : public Subprogram {
 public:
  /// Returns the program as a graph.
  virtual const Graph& graph() const = 0;
  /// Returns the body among the constants of an application that has one.
  static const Body& of(const Attrs& attrs) { return static_cast<const Body&>(*attrs.body); }
};

}  // namespace detail

/// Returns the multiply-adds of products and the bytes of operands and results (`Cost`) of one run of a graph, from the
/// types of its values alone: nothing is run.
Cost cost_of(const Graph& graph);

/// The cost of the nodes of one layer.
struct LayerCost {
  Scope scope{};               ///< empty for nodes outside layers
  std::size_t operations = 0;  ///< number of nodes; a scan counts as one
  Cost cost{};
};

/// Returns the cost of a graph by layers, in the order of their first nodes; the costs add up to `cost_of(graph)`. Each
/// node counts for the innermost layer that it belongs to, the nodes of a gradient for the layer whose gradient they
/// are; a scan counts for the layer that runs it.
std::vector<LayerCost> cost_by_layer(const Graph& graph);
/// Returns the cost of a graph by layers (`cost_by_layer`) as a table in text, with the total at its end.
std::string cost_table(const Graph& graph);

/// Options of `parse_graph`: whatever the text of a graph cannot hold.
struct ParseOptions {
  /// The tensors written as `#0`, `#1`, ... in the text.
  std::span<const Tensor> constants{};
  /// Returns the variable of a name. By default, a new variable of zeros is made for each name.
  std::function<Variable(std::string_view name)> variable{};
  /// Operations besides those of tensors: operations of layers (`nn::operations()`), all `composites()`, whose
  /// constants are not checked, and operations that a program defines (tensor/define.h).
  std::span<const Primitive* const> operations{};
};

/// Reads a graph from its text form. Throws TraceError, naming the line, when the text is not a graph.
Graph parse_graph(std::string_view text, const ParseOptions& options = {});

/// Applies every node of a graph to tensors (traced or not) in the present frame, without touching its variables.
/// `inputs` holds the inputs of the graph, then the values of the variables read. Returns the outputs, then the values
/// of the variables written. This defines what running a graph means.
Tensors replay(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace ferrite
