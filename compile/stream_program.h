#pragma once
/// Programs of streams: the nodes of a program over time on one step, and the states between steps.
#include <functional>
#include <string>
#include <vector>

#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// The states of a stream before a step (`now`) and after it (`next`).
struct FrameStates {
  Tensors now, next;
};

/// An operand of a node, as one step reads it.
struct FrameOperand {
  ValueId value = 0;
  int axis = -1;           ///< axis of time; -1 for none
  bool one_frame = false;  ///< a constant that is the same in all steps: its first frame is used for all of them
  int delay = -1;          ///< index of the state that holds the frames by which the operand is ahead; -1 for none
};

/// A node of a program that runs on one step or on several at once.
struct FrameNode {
  std::vector<FrameOperand> in;
  std::function<Tensors(const Tensors& in, FrameStates& states, std::int64_t steps)> run;
};

/// Returns the name of a node in errors and in the names of states, its operation and its layer: "slice of encoder".
std::string label_of(const Graph::Node& n);

/// Thrown when a node keeps a program from running step by step because it strides, or reads later steps. Each of its
/// results is a function of a window of its operand, if its parameters do not change from step to step.
class WindowError : public ValueError {
 public:
  WindowError(const std::string& what, std::size_t node) : ValueError(what), node_(node) {}
  /// Returns the index of the node among those that the program needs.
  std::size_t node() const { return node_; }

 private:
  std::size_t node_;
};

/// A node as a function of windows of its first operand over time: result u is computed from the frames u stride -
/// before + k dilation, k in 0..taps - 1.
struct NodeWindow {
  std::int64_t taps = 1, dilation = 1, stride = 1, before = 0;
  double padding = 0;  ///< the value of frames before the first and after the last one
  /// Computes the results of `steps` consecutive windows, each one frame after the last, with taps `dilation` frames
  /// apart.
  std::function<Tensors(const Tensors& in, std::int64_t steps, std::int64_t dilation)> results{};
};
/// Returns the windows that a convolution, a pooling, a slice or a reshaping reads along the axis of time.
NodeWindow window_of(const Graph& g, const Graph::Node& n, int axis);

class Analysis;

/// A program over time, turned into the program of one step or of a few at once.
class StreamProgram {
 public:
  /// Analyses `graph`, the program on `steps` steps; `axes` holds the axis of time of each input, -1 for none. Throws
  /// WindowError for an operation that looks ahead or strides, ValueError for an operation that reads all steps or of
  /// which nothing is known. The errors name the layer and the operation.
  StreamProgram(Graph graph, std::span<const int> axes, std::int64_t steps);

  /// A state that a stream holds between steps.
  struct State {
    Tensor first;       ///< value at the beginning of a sequence
    std::string words;  ///< description: "convolution of encoder: 2 frames of its window"
  };
  /// Returns the states that a stream holds between steps.
  const std::vector<State>& states() const { return states_; }
  /// Returns the outputs, each with its axis of time, -1 for none.
  const std::vector<FrameOperand>& outputs() const { return outputs_; }
  /// Returns whether a node reads a constant over time: a value with an axis of time that depends on no input and was
  /// found equal in all steps. Weights may decide that, so it has to be checked again when they change.
  bool reads_constants_over_time() const;
  /// Runs `steps` consecutive steps: inputs and outputs in the order of the program, with `steps` frames along their
  /// axis of time. Reads the states in `states.now` and writes those after the steps to `states.next`, which must
  /// already hold as many tensors.
  Tensors step(const Tensors& inputs, FrameStates& states, std::int64_t steps = 1) const;

 private:
  friend class Analysis;

  Graph graph_;
  std::vector<FrameNode> nodes_;
  std::vector<State> states_;
  std::vector<FrameOperand> outputs_;
};

}  // namespace ferrite::detail
