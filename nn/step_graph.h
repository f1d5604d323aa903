#pragma once
/// The steps of a stream as a graph: which rows each layer's step reads and writes, in the order in which they run.
#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/nn/step.h"
#include "ferrite/tensor/inline_vector.h"

namespace ferrite::nn {

class Layer;

namespace detail {
class ChannelParts;
class GraphStep;
class StepCalls;
}  // namespace detail

/// The graph that Layer::add_steps builds: values, which are the rows that a step gives, and the steps that make them
/// of earlier values. All steps of a model are in one graph, which commits them and skips rows in one place.
class StepGraph {
 public:
  /// The number by which a value of this graph is named; 0 is the stream's input.
  using Value = std::size_t;

  explicit StepGraph(const StepRows& input) : values_{{.rows = input}} {}

  /// Returns the batch, width and dtype of the rows of a value.
  const StepRows& rows(Value v) const& { return values_[v].rows; }
  const StepRows& rows(Value v) const&& = delete;
  /// Returns at which steps of the stream's input a value has rows.
  const Pace& pace(Value v) const& { return values_[v].pace; }
  const Pace& pace(Value v) const&& = delete;

  /// Adds a step of a layer on the values x and returns its result. If some values look further ahead than others, the
  /// rows of the others wait for them. Throws PaceError for values of different strides or numbers of steps.
  Value add(const Layer& layer, std::unique_ptr<Step> step, std::span<const Value> x);
  Value add(const Layer& layer, std::unique_ptr<Step> step, std::initializer_list<Value> x) {
    return add(layer, std::move(step), std::span(x.begin(), x.size()));
  }
  /// Adds a step that already has its layer's name, and returns its result.
  Value add(std::unique_ptr<Step> step, std::span<const Value> x);
  /// Adds the steps of a layer on the value x and returns their result. Throws ShapeError for rows that do not fit.
  Value add(const Layer& layer, Value x);

  /// Joins all steps into one, the step of the layer `whole`, whose output is the value `result`. Consumes the graph.
  std::unique_ptr<Step> step(const Layer& whole, Value result) &&;

 private:
  friend class detail::ChannelParts;
  friend class detail::GraphStep;
  friend class detail::StepCalls;
  struct Rows {
    StepRows rows;
    Pace pace{};
    InlineVector<std::size_t, 2> ahead{};  ///< the steps before this value that look ahead, in order
  };
  struct Node {
    std::unique_ptr<Step> step;
    InlineVector<Value, 4> x;
    Value y = 0;
  };

  const LayerNames& names_of(const Layer& layer);
  /// Makes elementwise functions, sums and products of one output a part of the step before them, if it takes them and
  /// no other step reads it.
  void join_steps(Value& result);

  std::vector<Rows> values_;
  std::vector<Node> nodes_;  ///< in an order in which they can run
  /// The names of the last few layers, because a layer made of others adds steps between theirs again and again.
  std::array<std::pair<const Layer*, LayerNames>, 4> names_{};
  std::size_t next_name_ = 0;
};

}  // namespace ferrite::nn
