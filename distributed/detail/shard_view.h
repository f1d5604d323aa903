#pragma once
/// Variables as one shard sees them, and the gradients of parameters as they become final.
#include <functional>
#include <unordered_map>
#include <vector>

#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::mpi::detail {

/// The variables of a model that its calls may write, and its parameters, each with its place.
struct KnownVariables {
  std::vector<Variable> written;  ///< buffers and states
  std::vector<char> counts;       ///< whether it is a counter: i64 states of rank 0
  std::unordered_map<const void*, std::size_t> place, parameter;

  void add(const Variable& v);
};

/// A recorder that gives one shard variables of its own: all shards begin with the values before the step, and counters
/// of draws are so far apart that no two shards see the same draws. A parameter that a tape watches passes a hook.
class ShardView final : public Recorder {
 public:
  using Arrived = std::function<void(std::size_t parameter, const Tensor& gradient)>;
  ShardView(const KnownVariables& known, const Tensors& start, Arrived arrived);

  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable& variable, Tensor& value) override;
  bool write(const Variable& variable, const Tensor& value) override;

  /// Parameters in the order in which they were first read.
  const std::vector<std::size_t>& order() const { return order_; }
  const Tensors& values() const { return values_; }
  bool wrote(std::size_t i) const { return wrote_[i] != 0; }

 private:
  const KnownVariables& known_;
  Tensors values_;  ///< as `known.written`
  std::vector<char> wrote_;
  Arrived arrived_;
  std::unordered_map<std::size_t, Tensor> hooked_;
  std::vector<std::size_t> order_;
};

}  // namespace ferrite::mpi::detail
