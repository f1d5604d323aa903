#pragma once
/// Programs whose extents depend on sizes chosen later, such as a batch or a number of steps. Shapes and graphs
/// themselves hold numbers only; symbols are kept next to them. To find them, a program is traced at several sizes and
/// compared.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/compile/symbolic_number.h"

namespace ferrite {

/// A tensor type whose extents may depend on symbols.
struct SymbolicSpec {
  std::vector<SymbolicNumber> shape{};
  Dtype dtype = Dtype::f32;

  SymbolicSpec() = default;
  SymbolicSpec(std::vector<SymbolicNumber> extents, Dtype type = Dtype::f32) : shape(std::move(extents)), dtype(type) {}
  SymbolicSpec(const Spec& spec) : shape(spec.shape.begin(), spec.shape.end()), dtype(spec.dtype) {}
  /// Returns the type with numbers for extents, for these sizes of the symbols.
  Spec at(std::span<const std::int64_t> sizes) const;
  /// Returns the type as text: "f32[B, T, 7]".
  std::string str(std::span<const std::string> symbols) const;
  /// Returns the shape as text: "[B, T, 7]".
  std::string shape_str(std::span<const std::string> symbols) const;
  bool operator==(const SymbolicSpec&) const = default;
};

/// The sizes at which something is tried to see how it depends on symbols: every combination of two sizes for each
/// symbol, which determines a sum of products, and one more that has to agree.
class SymbolicTrial {
 public:
  /// The maximum number of symbols: each doubles the number of sizes.
  static constexpr std::size_t kMaxSymbols = 3;

  /// Makes the trials from `sizes`, the smaller of the two sizes of each symbol. Throws ValueError without symbols, for
  /// more than kMaxSymbols, and for sizes below 1.
  SymbolicTrial(std::vector<std::string> symbols, const std::vector<std::int64_t>& sizes);

  /// Returns the names of the symbols.
  const std::vector<std::string>& symbols() const& { return symbols_; }
  /// Returns the sizes of all trials; the first trial has the given sizes.
  const std::vector<std::vector<std::int64_t>>& sizes() const& { return sizes_; }
  /// Returns the number that has these values, one for each trial; nullopt when no sum of products has.
  std::optional<SymbolicNumber> number(std::span<const std::int64_t> values) const;
  /// Returns the symbolic type that equals specs[t] at the sizes of trial t, for every t; nullopt when there is none.
  std::optional<SymbolicSpec> spec(std::span<const Spec> specs) const;

 private:
  std::vector<std::string> symbols_;
  std::vector<std::vector<std::int64_t>> sizes_;
};

/// A traced program that can be instantiated at any sizes of its symbols.
///
///   const SymbolicNumber B = SymbolicNumber::symbol(0), T = SymbolicNumber::symbol(1);
///   const SymbolicGraph g = trace_symbolic(f, {"B", "T"}, {{{B, T, 12}}}, {2, 16});
///   const Graph long_one = g.at({1, 1000});
class SymbolicGraph {
 public:
  /// Returns the program as traced at the smallest sizes, those that `trace_symbolic` was given.
  const Graph& graph() const& { return graph_; }
  /// Returns the names of the symbols.
  const std::vector<std::string>& symbols() const& { return symbols_; }
  /// Returns the symbolic type of a value of `graph()`.
  SymbolicSpec spec_of(ValueId value) const { return table_.values[value]; }
  /// Returns the graph for other sizes, as tracing at these sizes would give it, but without the shortcuts of size 1.
  /// Throws ValueError for a wrong number of sizes or sizes below 1, ShapeError where an operation does not fit its
  /// operands at these sizes.
  Graph at(const std::vector<std::int64_t>& sizes) const;

 private:
  friend SymbolicGraph trace_symbolic(const std::function<Tensors(const Tensors&)>&, std::vector<std::string>,
                                      const std::vector<SymbolicSpec>&, const std::vector<std::int64_t>&);
  /// A number among the constants of a node that depends on symbols; in a list, the element at index `element`.
  struct Number {
    std::size_t node = 0, field = 0;
    int element = 0;
    SymbolicNumber value{};
  };
  /// The parts of a graph, and of the bodies of its nodes, that depend on symbols.
  struct Table {
    std::vector<SymbolicSpec> values;
    std::vector<Number> numbers;
    std::vector<std::size_t> scans;  ///< nodes whose bodies depend on symbols
    std::vector<Table> bodies;       ///< the tables of these bodies
  };
  static SymbolicSpec spec_of(const SymbolicTrial& trial, std::span<const Graph* const> graphs, std::size_t value,
                              const std::string& where);
  static std::vector<Number> numbers_of(const SymbolicTrial& trial, std::span<const Graph* const> graphs,
                                        std::size_t node, std::size_t field, const std::string& place);
  static Table compare(const SymbolicTrial& trial, std::span<const Graph* const> graphs, const std::string& where);
  static Graph put(const Graph& graph, const Table& table, std::span<const std::int64_t> sizes);

  std::vector<std::string> symbols_;
  Graph graph_;
  Table table_;
};

/// Traces f at several sizes of the symbols and proves the programs equal except for numbers that are sums of products
/// of symbols: extents, and constants of operations (the length of a range, the divisor of a mean). `sizes` holds the
/// smallest size to try for each symbol. Throws TraceError, naming the layer, the operation and what it found, where
/// the program has another form, another captured tensor or any other number at another size, and whatever f throws.
SymbolicGraph trace_symbolic(const std::function<Tensors(const Tensors&)>& f, std::vector<std::string> symbols,
                             const std::vector<SymbolicSpec>& inputs, const std::vector<std::int64_t>& sizes);

}  // namespace ferrite
