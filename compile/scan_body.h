#pragma once
/// What a scan runs: its body as a graph, and the gradient of the body as bodies again.
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

/// The operation: carries [..], stacks [T, ..] of the xs, captures -> last carries, sums over all steps, stacks of the
/// ys. Its constants are a body, `steps` (T) and `reverse`.
const Primitive& scan_primitive();
/// The same that keeps carries only every so many steps (`every`) for its gradient, which computes the steps between
/// again. Further results: the carries kept, stacks.
const Primitive& scan_checkpointed_primitive();
/// These operations and the gradient of the second.
std::span<const Primitive* const> scan_operations();
/// One of them, or null.
const Primitive* find_scan(std::string_view name);

/// A stack of so many steps, and one step of a stack.
inline Shape with_steps(std::int64_t steps, Shape s) {
  s.insert(0, steps);
  return s;
}
inline Shape without_steps(Shape s) {
  s.erase(0);
  return s;
}

/// The number of values of a kind that a body has.
struct ScanSignature {
  std::size_t carries = 0;  ///< first inputs and first outputs
  std::size_t xs = 0;       ///< next inputs; the captures follow
  std::size_t sums = 0;     ///< next outputs, added over all steps; the ys follow
  bool operator==(const ScanSignature&) const = default;
};

/// The constants of a scan: those of its signature, the number of steps and their direction.
struct ScanAttrs {
  Shape parts{};
  std::int64_t steps = 0;
  bool reverse = false;
  static constexpr auto fields = attr_list(attr("parts", &ScanAttrs::parts), attr("steps", &ScanAttrs::steps),
                                           attr("reverse", &ScanAttrs::reverse));
};
/// Those of a scan that keeps its carries every so many steps.
struct CheckpointedScanAttrs : ScanAttrs {
  std::int64_t every = 0;
  static constexpr auto fields = ScanAttrs::fields.with(attr("every", &CheckpointedScanAttrs::every));
};
/// Those of its gradient: which gradients of inputs are wanted and which cotangents of the ys arrive.
struct CheckpointedGradAttrs : CheckpointedScanAttrs {
  Positions inputs{}, ys{};
  static constexpr auto fields = CheckpointedScanAttrs::fields.with(attr("inputs", &CheckpointedGradAttrs::inputs),
                                                                    attr("ys", &CheckpointedGradAttrs::ys));
};

/// One step of a scan: carries, one step of the xs, captures -> carries, terms of the sums, one step of the ys.
/// Immutable but for what is made from it when first needed; may be used by several threads.
class ScanBody final : public Body, public std::enable_shared_from_this<ScanBody> {
 public:
  /// Simplifies the graph. Throws TraceError for one that is not valid and ShapeError where a carry comes back with
  /// another type.
  ScanBody(Graph graph, const ScanSignature& signature);
  ~ScanBody() override;

  static const ScanBody& of(const Attrs& attrs) { return static_cast<const ScanBody&>(*attrs.body); }
  /// Makes a body of a graph and of the numbers that attributes name, and puts it there.
  static void give(Attrs& attrs, Graph graph);
  /// Constants of an application.
  static Attrs attrs_of(std::shared_ptr<const ScanBody> body, std::int64_t steps, bool reverse);
  /// The same for one that keeps its carries every so many steps.
  static Attrs attrs_of(std::shared_ptr<const ScanBody> body, std::int64_t steps, bool reverse, std::int64_t every);

  const Graph& graph() const override { return graph_; }
  const ScanSignature& signature() const { return signature_; }
  std::size_t captures() const { return graph_.inputs.size() - signature_.carries - signature_.xs; }
  std::size_t ys() const { return graph_.outputs.size() - signature_.carries - signature_.sums; }
  const Spec& input(std::size_t i) const { return graph_.values[graph_.inputs[i]]; }
  const Spec& output(std::size_t i) const { return graph_.values[graph_.outputs[i]]; }
  bool equals(const Subprogram& other) const override;

  /// The same body with more ys: what the gradient reads of it.
  std::shared_ptr<const ScanBody> saving() const;
  /// The body that this one was made of by `saving`, while that lives; else null.
  std::shared_ptr<const ScanBody> base() const { return base_.lock(); }
  /// Of a body made by `saving`: its gradient; else null.
  const ScanBack* back() const { return back_.get(); }
  /// How it runs.
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
  /// Which cotangents arrive and which gradients are wanted.
  struct Request {
    using Flags = InlineVector<char, 16>;
    Flags ys;      ///< by y of the body that was differentiated: whether a cotangent arrives
    Flags inputs;  ///< by input of the body: whether its gradient is wanted; carries always
    bool operator==(const Request& o) const {
      return std::ranges::equal(ys, o.ys) && std::ranges::equal(inputs, o.inputs);
    }
  };
  /// carries: cotangents of the float carries. xs: the saved ones and the xs named here, then cotangents of ys.
  /// captures: those named here, then cotangents of the float sums. Gives gradients of the first carries, as sums those
  /// of the captures wanted, as ys those of the xs wanted.
  struct Pass {
    Request request;
    std::shared_ptr<const ScanBody> body;
    std::vector<std::size_t> saved, xs, ys, captures, sums;
    std::vector<std::size_t> arrived;  ///< by y named here: its place among those that a cotangent arrives at
  };

  explicit ScanBack(const ScanBody& body);
  ~ScanBack();
  /// The step that also gives what the backward pass reads.
  Graph forward() const;
  /// How many values of a step that are.
  std::size_t saved() const;
  const Pass& pass(const Request& request) const;

 private:
  Pass make(const Request& request) const;

  std::unique_ptr<const GraphGradient> gradient_;  ///< of one step
  ScanSignature of_;                               ///< of the body that was differentiated
  std::vector<char> float_inputs_, float_results_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<const Pass>> passes_;
};

/// Multiply-adds of a scan: its body's, step by step.
std::int64_t scan_multiply_adds(std::span<const Spec> in, std::span<const Spec> out, const Attrs& attrs);

/// Which gradients of a body the constants of a checkpointed scan's gradient ask for. Throws TraceError for constants
/// that do not fit.
ScanBack::Request checkpointed_request(const Attrs& attrs, const ScanBody& body);

}  // namespace ferrite::detail
