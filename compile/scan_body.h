#pragma once
/// The bodies of scans: one step as a graph, and the gradient of a step as further bodies.
#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ferrite/compile/graph.h"

namespace ferrite::detail {

class GraphGradient;
class ScanProgram;
class ScanBack;

/// Returns the operation of a scan: carries [..], stacks [T, ..] of the xs, captures -> last carries, sums over all
/// steps, stacks of the ys. Its constants are a body, `steps` (T) and `reverse`.
const Primitive& scan_primitive();
/// Returns the operation of a scan that keeps only the carries of every `every`-th step for its gradient, which
/// computes the steps between again. Its further results are stacks of the kept carries.
const Primitive& scan_checkpointed_primitive();
/// Returns the two scan operations and the gradient of the second.
std::span<const Primitive* const> scan_operations();
/// Returns the scan operation of a name, or null.
const Primitive* find_scan(std::string_view name);

/// Returns the shape of a stack of `steps` steps of shape s.
inline Shape with_steps(std::int64_t steps, Shape s) {
  s.insert(0, steps);
  return s;
}
/// Returns the shape of one step of a stack of shape s.
inline Shape without_steps(Shape s) {
  s.erase(0);
  return s;
}

/// The number of values of each kind that a body has.
struct ScanSignature {
  std::size_t carries = 0;  ///< number of first inputs and first outputs
  std::size_t xs = 0;       ///< number of next inputs; the captures follow
  std::size_t sums = 0;     ///< number of next outputs, added over all steps; the ys follow
  bool operator==(const ScanSignature&) const = default;
};

/// The constants of a scan: the signature of its body, the number of steps and their direction.
struct ScanAttrs {
  Shape parts{};
  std::int64_t steps = 0;
  bool reverse = false;
  static constexpr auto fields = attr_list(attr("parts", &ScanAttrs::parts), attr("steps", &ScanAttrs::steps),
                                           attr("reverse", &ScanAttrs::reverse));
};
/// The constants of a scan that keeps the carries of every `every`-th step.
struct CheckpointedScanAttrs : ScanAttrs {
  std::int64_t every = 0;
  static constexpr auto fields = ScanAttrs::fields.with(attr("every", &CheckpointedScanAttrs::every));
};
/// The constants of a checkpointed scan's gradient: which gradients of inputs are wanted, which cotangents of ys
/// arrive.
struct CheckpointedGradAttrs : CheckpointedScanAttrs {
  Positions inputs{}, ys{};
  static constexpr auto fields = CheckpointedScanAttrs::fields.with(attr("inputs", &CheckpointedGradAttrs::inputs),
                                                                    attr("ys", &CheckpointedGradAttrs::ys));
};

/// One step of a scan: carries, one step of the xs, captures -> carries, terms of the sums, one step of the ys.
/// Immutable except for what is made from it on demand; several threads may use it.
class ScanBody final : public Body, public std::enable_shared_from_this<ScanBody> {
 public:
  /// Simplifies the graph. Throws TraceError for an invalid graph and ShapeError where a carry comes back with another
  /// type.
  ScanBody(Graph graph, const ScanSignature& signature);
  ~ScanBody() override;

  /// Returns the body among the constants of a scan.
  static const ScanBody& of(const Attrs& attrs) { return static_cast<const ScanBody&>(*attrs.body); }
  /// Makes a body from a graph and the signature in `attrs`, and stores it in `attrs`.
  static void give(Attrs& attrs, Graph graph);
  /// Returns the constants of a scan's application.
  static Attrs attrs_of(std::shared_ptr<const ScanBody> body, std::int64_t steps, bool reverse);
  /// Returns the constants of an application of a scan that keeps the carries of every `every`-th step.
  static Attrs attrs_of(std::shared_ptr<const ScanBody> body, std::int64_t steps, bool reverse, std::int64_t every);

  const Graph& graph() const override { return graph_; }
  /// Returns the numbers of carries, xs and sums.
  const ScanSignature& signature() const { return signature_; }
  /// Returns the number of captures, the last inputs.
  std::size_t captures() const { return graph_.inputs.size() - signature_.carries - signature_.xs; }
  /// Returns the number of ys, the last outputs.
  std::size_t ys() const { return graph_.outputs.size() - signature_.carries - signature_.sums; }
  /// Returns the type of the i-th input.
  const Spec& input(std::size_t i) const { return graph_.values[graph_.inputs[i]]; }
  /// Returns the type of the i-th output.
  const Spec& output(std::size_t i) const { return graph_.values[graph_.outputs[i]]; }
  bool equals(const Subprogram& other) const override;

  /// Returns this body with further ys: the values that its gradient reads.
  std::shared_ptr<const ScanBody> saving() const;
  /// Returns the body that this one was made from by `saving`, while that body is alive; else null.
  std::shared_ptr<const ScanBody> base() const { return base_.lock(); }
  /// Returns the gradient of a body made by `saving`; else null.
  const ScanBack* back() const { return back_.get(); }
  /// Returns the program that runs this body.
  const ScanProgram& program() const;

 private:
  Graph graph_;
  ScanSignature signature_;
  std::weak_ptr<const ScanBody> base_;
  std::unique_ptr<const ScanBack> back_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const ScanBody> saving_;
  mutable std::unique_ptr<const ScanProgram> program_;
};

/// The backward pass through a body, as a scan in the other direction.
class ScanBack {
 public:
  /// Flags that say which cotangents arrive and which gradients are wanted; one pass is kept for each combination.
  struct Request {
    using Flags = InlineVector<char, 16>;
    Flags ys;      ///< by y of the differentiated body: whether a cotangent arrives
    Flags inputs;  ///< by input of the body: whether its gradient is wanted; always set for carries
    bool operator==(const Request& o) const {
      return std::ranges::equal(ys, o.ys) && std::ranges::equal(inputs, o.inputs);
    }
  };
  /// One backward pass as a body. Its carries are the cotangents of the float carries. Its xs: the values in `saved`,
  /// the xs named in `xs`, then cotangents of ys. Its captures: those named in `captures`, then cotangents of the float
  /// sums. It computes the gradients of the first carries, as sums the gradients of the wanted captures, and as ys the
  /// gradients of the wanted xs.
  struct Pass {
    Request request;
    std::shared_ptr<const ScanBody> body;
    std::vector<std::size_t> saved, xs, ys, captures, sums;
    std::vector<std::size_t> arrived;  ///< by y named here: its index among those that a cotangent arrives at
  };

  /// Differentiates one step of a body.
  explicit ScanBack(const ScanBody& body);
  ~ScanBack();
  /// Returns the graph of a step that also computes what the backward pass reads.
  Graph forward() const;
  /// Returns the number of values that the backward pass reads of each step.
  std::size_t saved() const;
  /// Returns the backward pass for a request: the cotangents that arrive and the gradients that are wanted. Made at the
  /// first such request and kept.
  const Pass& pass(const Request& request) const;

 private:
  Pass make(const Request& request) const;

  std::unique_ptr<const GraphGradient> gradient_;  ///< gradient of one step
  ScanSignature of_;                               ///< signature of the differentiated body
  std::vector<char> float_inputs_, float_results_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<const Pass>> passes_;
};

/// Returns the multiply-adds of a scan: its body's, times the number of steps.
std::int64_t scan_multiply_adds(std::span<const Spec> in, std::span<const Spec> out, const Attrs& attrs);

/// Returns the gradients and cotangents that the constants of a checkpointed scan's gradient name. Throws TraceError
/// for constants that do not fit the body.
ScanBack::Request checkpointed_request(const Attrs& attrs, const ScanBody& body);

}  // namespace ferrite::detail
