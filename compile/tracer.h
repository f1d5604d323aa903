#pragma once
/// The tracer: the recorder that writes down a graph.
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "ferrite/compile/graph.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {

/// A switch (not a tensor) that a program read while it was traced, such as whether a module trains, and its value
/// then.
struct TracedFlag {
  std::shared_ptr<const std::atomic<bool>> flag{};
  bool value = false;
};

/// A recorder that computes nothing and writes down a Graph. Tensors made while it listens are abstract; tensors from
/// outside become constants. Variables that are read or written become variables of the graph; a read after a write
/// sees the new value.
///
///   Tracer tracer;
///   const NewFrame frame(tracer);
///   const Tensor x = tracer.input({{8, 3}, Dtype::f32});
///   const Graph g = tracer.finish({f(x)});
class Tracer final : public Recorder {
 public:
  /// Treatment of tensors from outside, and of variables that are read.
  enum class Outside : std::uint8_t {
    constants,  ///< tensors become constants of the graph, variables become Graph::variables
    captures,   ///< both become further inputs, in the order of `captures()`
  };
  /// Treatment of functions that are composed of operations, such as softmax and layer_norm.
  enum class Composites : std::uint8_t {
    parts,  ///< recorded as the operations that they are made of, which can be differentiated, fused and exported
    whole,  ///< recorded as one node, for exporters whose language has such an operation; not under a tape
  };
  /// Makes a tracer; by default one whose graph holds tensors from outside as constants and the parts of composites.
  explicit Tracer(Outside outside = Outside::constants, Composites composites = Composites::parts)
      : outside_(outside), composites_(composites) {}

  /// Adds an input to the program and returns it as an abstract tensor.
  Tensor input(const Spec& spec);
  /// Returns the program recorded so far, with these tensors as its outputs. Throws TraceError for an undefined result
  /// or a tensor of another trace.
  Graph finish(std::span<const Tensor> outputs);
  Graph finish(const Tensors& outputs) { return finish(std::span<const Tensor>(outputs.data(), outputs.size())); }
  /// A tensor from outside, as it was passed in, or a variable that was read.
  struct Capture {
    ValueId value = 0;    ///< number of the input that it became
    Tensor tensor{};      ///< the tensor; undefined for a variable
    Variable variable{};  ///< the variable; empty for a tensor
  };
  /// Returns what was captured so far, with Outside::captures, in the order of the inputs.
  const std::vector<Capture>& captures() const& { return captures_; }
  /// Returns the switches that were read so far.
  const std::vector<TracedFlag>& flags() const& { return flags_; }

  void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) override;
  void read(const Variable& variable, Tensor& value) override;
  bool write(const Variable& variable, const Tensor& value) override;
  void flag(const std::shared_ptr<const std::atomic<bool>>& flag, bool value) override;
  bool tracing() const override { return true; }
  bool keeps_composites() const override { return composites_ == Composites::whole; }

 private:
  struct VariableState {
    std::uint32_t index = 0;
    Tensor value;     ///< what the variable holds
    Tensor constant;  ///< the same, cut off from gradients: what a read gives after a write, or inside a cut
    bool written = false;
  };
  /// What the trace knows about a tensor.
  struct Known {
    ValueId value = 0;
    bool cut = false;  ///< made or read under a cut: outside it, uses go through a `detach`
    std::optional<ValueId> detached{};
  };
  ValueId number_of(const Tensor& t);
  ValueId from_outside(const Tensor& t);
  ValueId define(const Tensor& t);
  void know(const Tensor& t, const Known& what);
  VariableState& state_of(const Variable& variable);

  Outside outside_;
  Composites composites_;
  std::uint64_t began_ = Variable::made();  ///< variables made up to now are from outside
  Graph graph_;
  std::vector<Capture> captures_;
  std::vector<Tensor> alive_;  ///< kept so that no address is used again
  std::unordered_map<const void*, Known> known_;
  std::map<std::tuple<const void*, std::uint64_t, std::uint32_t>, ValueId> captured_;  ///< by their places on tapes
  std::unordered_map<const void*, VariableState> variables_;
  std::vector<TracedFlag> flags_;
};

/// Runs f once on abstract tensors of the types `inputs` and returns the operations that it applies as a graph. Nothing
/// is computed and no variable changes. Throws ValueError for a null f, TraceError for what cannot be traced, and
/// whatever f throws.
Graph trace(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
            Tracer::Composites composites = Tracer::Composites::parts);

}  // namespace ferrite
