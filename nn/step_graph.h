#pragma once
/// The steps of a stream as a graph: what every layer computes of which rows, in one order.
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

/// What Layer::add_steps builds: values, which are rows that a step gives, and the steps that make them of earlier
/// ones. All steps of a model are in one graph, so that they are committed, and rows skipped, in one place.
class StepGraph {
 public:
  /// A value by its number; 0 is the input.
  using Value = std::size_t;

  explicit StepGraph(const StepRows& input) : values_{{.rows = input}} {}

  const StepRows& rows(Value v) const& { return values_[v].rows; }
  const StepRows& rows(Value v) const&& = delete;
  /// When a value has a step, seen from the input.
  const Pace& pace(Value v) const& { return values_[v].pace; }
  const Pace& pace(Value v) const&& = delete;

  /// What a step of a layer makes of such values. Where some look further ahead than others, the others' rows wait for
  /// theirs. Throws PaceError for other strides, and for values that do not have the same steps in all.
  Value add(const Layer& layer, std::unique_ptr<Step> step, std::span<const Value> x);
  Value add(const Layer& layer, std::unique_ptr<Step> step, std::initializer_list<Value> x) {
    return add(layer, std::move(step), std::span(x.begin(), x.size()));
  }
  /// The same of a step that has its layer's name.
  Value add(std::unique_ptr<Step> step, std::span<const Value> x);
  /// What a layer makes of a value. Throws ShapeError where the layer takes other rows.
  Value add(const Layer& layer, Value x);

  /// All steps up to a value as one, that of the layer that added them. Nothing may be added then.
  std::unique_ptr<Step> step(const Layer& whole, Value result) &&;

 private:
  friend class detail::ChannelParts;
  friend class detail::GraphStep;
  friend class detail::StepCalls;
  struct Rows {
    StepRows rows;
    Pace pace{};
    InlineVector<std::size_t, 2> ahead{};  ///< the steps up to here that look ahead, in order
  };
  struct Node {
    std::unique_ptr<Step> step;
    InlineVector<Value, 4> x;
    Value y = 0;
  };

  const LayerNames& names_of(const Layer& layer);
  /// Functions of elements and sums become a part of the step before them, where it takes them and nobody else reads
  /// it.
  void join_steps(Value& result);

  std::vector<Rows> values_;
  std::vector<Node> nodes_;  ///< in an order in which they can run
  /// Of the last few layers: one that is made of others comes between them again and again.
  std::array<std::pair<const Layer*, LayerNames>, 4> names_{};
  std::size_t next_name_ = 0;
};

}  // namespace ferrite::nn
