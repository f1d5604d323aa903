#pragma once
/// Fused programs as plain data, for those who write them in another language.
#include <array>
#include <cstddef>
#include <vector>

#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// A box in the axes of a loop: begin <= i < end on every axis.
struct LoweredBox {
  Shape begin{}, end{};
};

/// A slot of a loop: one number for each point of its domain, or for each row of it.
struct LoweredSlot {
  Dtype dtype = Dtype::f32;
  bool of_rows = false;               ///< one number for each row: a point of the outer axes
  bool literal = false;               ///< the same number everywhere
  std::array<std::byte, 8> number{};  ///< the literal, of type `dtype`
};

/// The elements of a value that a loop reads or writes: number offset + sum of strides[k] i[k] at point i.
struct LoweredAccess {
  ValueId value = 0;
  std::int64_t offset = 0;
  Shape strides{};
  bool of_rows = false;               ///< whether it has one element for each row
  bool whole = true;                  ///< loads: whether elements are read everywhere, not only in `box`
  LoweredBox box{};                   ///< loads and fillings: where elements are read
  std::array<std::byte, 8> number{};  ///< loads and fillings: the number outside the box
};

/// One instruction of a loop. Slots are written once.
struct LoweredInstruction {
  enum class Step : std::uint8_t {
    load,    ///< slot = element of `accesses[access]`
    fill,    ///< slot = in[0] inside the box of `accesses[access]`, the number outside
    apply,   ///< slot = op(in...)
    spread,  ///< slot = in[0], a slot of rows, for each point of the row
    reduce,  ///< slot of rows = op over the points of each row of in[0], in the order of docs/numerics.md, rule 3
    store,   ///< element of `accesses[access]` = slot
    across,  ///< the value of `accesses[access]`, row-major, = op over the axes `LoweredLoop::Across` of in[0]
  };
  Step step = Step::apply;
  std::size_t slot = 0, access = 0;
  std::vector<std::size_t> in{};
  const Graph::Node* node = nullptr;  ///< of apply, reduce and across
};

/// A fused kernel: instructions for each point of a domain, of which the last axes may be rows that are reduced.
struct LoweredLoop {
  enum class Across : std::uint8_t { none, columns, long_rows };
  Shape extents{};
  int outer = 0;                 ///< number of axes before those of a row
  std::int64_t reduced = 0;      ///< elements of a row; 0 without reductions of rows
  Across across = Across::none;  ///< columns: the first `outer` axes are reduced; long_rows: the last ones
  std::vector<LoweredSlot> slots{};
  std::vector<LoweredAccess> accesses{};
  std::vector<LoweredInstruction> instructions{};
};

/// An operand or result of an operation that runs alone: a window on a value.
struct LoweredWindow {
  ValueId value = 0;
  std::int64_t offset = 0;  ///< the number of the value's element at which it begins
  Spec spec{};
  Shape strides{};  ///< distances in elements, one for each axis
};

/// A step of a program: a loop, or an operation that runs alone.
struct LoweredStep {
  bool is_loop = false;
  LoweredLoop loop{};
  const Graph::Node* node = nullptr;
  std::vector<LoweredWindow> in{}, out{};
};

/// A graph, simplified and fused, and its steps in the order in which they run. Each value that a step names is stored
/// row-major and shares no memory with another. Steps point into the graph.
struct LoweredProgram {
  Graph graph;
  std::vector<LoweredStep> steps;
};

/// Simplifies and fuses a graph.
LoweredProgram lower(Graph graph);

}  // namespace ferrite::detail
