/// Rules by which operations run along a further axis, the batch. Axes of the operation move by one.
#include "ferrite/exchange/freeze/batched_replay.h"

#include <algorithm>
#include <deque>

#include "ferrite/compile/rewrite.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

using namespace ferrite::detail;

/// A value during the replay: `tensor`, times `scale` where that is defined.
struct Value {
  Tensor tensor{};
  std::int64_t batch = 0;  ///< extent of the axis of the batch; 0: there is none
  Tensor scale{};          ///< without an axis of the batch, of a shape that broadcasts to that of a value
};

Shape with_batch(std::int64_t n, const Shape& shape, int rank) {
  Shape s{n};
  for (int i = shape.rank(); i < rank; ++i) s.push_back(1);
  for (const std::int64_t extent : shape) s.push_back(extent);
  return s;
}

/// Returns f(), computed now if no operand is traced, so that a recorder sees the result as a constant.
template <class F>
auto folded(bool known, const F& f) {
  if (!known) return f();
  const NewFrame frame;
  return f();
}

bool known(const Tensor& t) { return !t.defined() || !t.is_abstract(); }

/// Returns the elements of a value with its scale applied.
Tensor whole(const Value& v) {
  if (!v.scale.defined()) return v.tensor;
  return folded(known(v.tensor) && known(v.scale), [&] { return v.tensor * v.scale; });
}

/// Tensors of ones, the same one for the same type, so that equal applications to them can be merged.
class Ones {
 public:
  const Tensor& operator()(const Spec& spec) {
    for (const Tensor& t : made_)
      if (t.spec() == spec) return t;
    const NewFrame frame;
    return made_.emplace_back(expand(full({}, 1, spec.dtype), spec.shape));
  }

 private:
  std::deque<Tensor> made_;
};

/// Applies one operation to values of which some have an axis of the batch.
class BatchedNode {
 public:
  BatchedNode(const Graph& g, const Graph::Node& n, std::span<const Value* const> in, Ones& ones)
      : g_(g), n_(n), in_(in), ones_(ones) {
    for (const Value* v : in) batch_ = std::max(batch_, v->batch);
  }

  std::vector<Value> run() const {
    if (batch_ == 0) {
      std::vector<Tensor> operands;
      for (const Value* v : in_) operands.push_back(v->tensor);
      return values(apply(operands, n_.attrs), 0);
    }
    if (n_.op->is_pointwise()) return {pointwise()};
    std::vector<Tensor> operands;
    for (const Value* v : in_) operands.push_back(whole(*v));
    bool all = std::ranges::all_of(operands, known);
    return folded(all, [&] { return values(structured(operands), batch_); });
  }

 private:
  const Spec& out(std::size_t i = 0) const { return g_.values[n_.out[i]]; }
  const Shape& shape_of(std::size_t i) const { return g_.values[n_.in[i]].shape; }

  static std::vector<Value> values(const Tensors& tensors, std::int64_t batch) {
    std::vector<Value> list;
    for (const Tensor& t : tensors) list.push_back({t, batch});
    return list;
  }

  Tensors apply(std::span<const Tensor> operands, const Attrs& attrs) const {
    std::vector<const Tensor*> list;
    for (const Tensor& t : operands) list.push_back(&t);
    return folded(std::ranges::all_of(operands, known),
                  [&] { return n_.op->apply(Inputs(list.data(), list.size()), attrs); });
  }

  // ---- operations on single elements ----

  /// Returns the result of an operation on single elements. Of one batched operand it is a multiple, whose factor is
  /// computed without the batch.
  Value pointwise() const {
    const auto batched = [](const Value* v) { return v->batch > 0; };
    const auto at = static_cast<std::size_t>(std::ranges::find_if(in_, batched) - in_.begin());
    const bool one = std::ranges::count_if(in_, batched) == 1;
    if (one && n_.op != ops::cast && n_.op != ops::where && shape_of(at) == out().shape) return multiple(at);
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < in_.size(); ++i) operands.push_back(aligned(i));
    return {apply(operands, n_.attrs)[0], batch_};
  }

  Value multiple(std::size_t at) const {
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < in_.size(); ++i)
      operands.push_back(i == at ? ones_({out().shape, g_.values[n_.in[i]].dtype}) : in_[i]->tensor);
    const bool times = n_.op == ops::mul && in_.size() == 2;
    Tensor factor = times ? operands[1 - at] : apply(operands, n_.attrs)[0];
    const Value& v = *in_[at];
    if (v.scale.defined()) factor = folded(known(v.scale) && known(factor), [&] { return v.scale * factor; });
    return {v.tensor, v.batch, factor};
  }

  /// Returns an operand of an elementwise operation with the rank of the result and the axis of the batch, if it has
  /// one.
  Tensor aligned(std::size_t i) const {
    const Value& v = *in_[i];
    const Tensor t = whole(v);
    if (v.batch == 0 || shape_of(i).rank() == out().shape.rank()) return t;
    return folded(known(t), [&] { return reshape(t, with_batch(v.batch, shape_of(i), out().shape.rank())); });
  }

  // ---- the others ----

  Tensors structured(const std::vector<Tensor>& in) const {
    const Primitive* op = n_.op;
    if (op == ops::matmul && is_single()) return {product(in)};
    if (op == ops::reshape) return {reshape(in[0], with_batch(batch_, out().shape, 0))};
    if (op == ops::contiguous || op == ops::detach) return op->apply({{&in[0]}});
    if (op == ops::cast) return {cast(in[0], out().dtype)};
    if (op == ops::permute) return {permute(in[0], moved(n_.attrs.as<PermuteAttrs>().order, true))};
    if (op == ops::expand) {
      const int rank = out().shape.rank();
      return {expand(reshape(in[0], with_batch(batch_, shape_of(0), rank)), with_batch(batch_, out().shape, rank))};
    }
    if (op == ops::sum) {
      const auto a = n_.attrs.as<ReductionAttrs>();
      return {sum(in[0], moved(a.axes, false), a.keepdim)};
    }
    if (op == ops::pad) return {padded(in[0])};
    if (convolves() && in_[0]->batch > 0 && is_single()) return {convolved(in)};
    if (runs_along_axis()) return along_axis(in);
    return one_by_one(in);
  }

  bool is_single() const {
    return std::ranges::count_if(in_, [](const Value* v) { return v->batch > 0; }) == 1;
  }

  static Shape moved(const Shape& axes, bool all) {
    Shape s;
    if (all) s.push_back(0);
    for (const std::int64_t a : axes) s.push_back(a + 1);
    return s;
  }

  Tensor padded(const Tensor& t) const {
    auto a = n_.attrs.as<PadAttrs>();
    a.before.insert(0, 0);
    a.after.insert(0, 0);
    return pad(t, a.before, a.after, a.value);
  }

  /// Returns a product of which one factor is batched; the rows of all batches are one matrix where they can be. Unit
  /// vectors times a matrix of constants are the same constants, not a copy of them.
  Tensor product(const std::vector<Tensor>& in) const {
    const std::size_t other = in_[0]->batch > 0 ? 1 : 0;
    if (std::ranges::all_of(in, known) && in[other].numel() == batch_ * out().shape.numel()) {
      const Tensor whole = reshape(in[other], with_batch(batch_, out().shape, 0));
      if (same_constant(plain_product(in), whole)) return whole;
    }
    return plain_product(in);
  }

  Tensor plain_product(const std::vector<Tensor>& in) const {
    const int rank = out().shape.rank();
    if (in_[0]->batch > 0 && shape_of(1).rank() == 2)
      return reshape(matmul(reshape(in[0], {-1, shape_of(0)[-1]}), in[1]), with_batch(batch_, out().shape, rank));
    const std::size_t at = in_[0]->batch > 0 ? 0 : 1;
    const Tensor t = reshape(in[at], with_batch(batch_, shape_of(at), rank));
    return at == 0 ? matmul(t, in[1]) : matmul(in[0], t);
  }

  bool convolves() const { return n_.op->time == TimeRule::convolves || n_.op->time == TimeRule::convolves_transposed; }

  /// Returns a convolution whose input is batched: the batch joins the axis of rows.
  Tensor convolved(const std::vector<Tensor>& in) const {
    std::vector<Tensor> operands = in;
    Shape rows = shape_of(0);
    rows[0] *= batch_;
    operands[0] = reshape(in[0], rows);
    return reshape(apply(operands, n_.attrs)[0], with_batch(batch_, out().shape, 0));
  }

  /// Returns whether the constants of the operation begin with the axis along which it works, and may be moved.
  bool runs_along_axis() const {
    const bool kind = n_.op->time == TimeRule::along_axis || n_.op->time == TimeRule::stacks ||
                      n_.op->time == TimeRule::concatenates || n_.op->time == TimeRule::slices ||
                      (n_.op->time == TimeRule::chooses && in_[0]->batch > 0 && is_single());
    return kind && !n_.op->attributes->empty() && n_.op->attributes->front().name == "axis";
  }

  Tensors along_axis(const std::vector<Tensor>& in) const {
    Attrs attrs = n_.attrs;
    attrs.replace(0, AttrValue(std::get<std::int64_t>(*attrs.at(0)) + 1));
    std::vector<Tensor> operands = in;
    if (n_.op->time != TimeRule::chooses)
      for (std::size_t i = 0; i < in.size(); ++i)
        if (in_[i]->batch == 0) operands[i] = expand(in[i], with_batch(batch_, shape_of(i), 0));
    return apply(operands, attrs);
  }

  /// Returns the results for each element of the batch by itself, stacked: for operations without a rule.
  Tensors one_by_one(const std::vector<Tensor>& in) const {
    std::vector<std::vector<Tensor>> parts(n_.out.size());
    for (std::int64_t b = 0; b < batch_; ++b) {
      std::vector<Tensor> operands = in;
      for (std::size_t i = 0; i < in.size(); ++i)
        if (in_[i]->batch > 0) operands[i] = select(in[i], 0, b);
      const Tensors out = apply(operands, n_.attrs);
      for (std::size_t k = 0; k < out.size(); ++k) parts[k].push_back(out[k]);
    }
    Tensors all;
    for (const auto& list : parts) all.push_back(stack(std::span<const Tensor>(list), 0));
    return all;
  }

  const Graph& g_;
  const Graph::Node& n_;
  std::span<const Value* const> in_;
  Ones& ones_;
  std::int64_t batch_ = 0;
};

}  // namespace

Tensors BatchedReplay::run(std::span<const Tensor> inputs, std::span<const char> batched) {
  const Graph& g = graph_;
  std::vector<Value> values(g.values.size());
  for (std::size_t i = 0; i < g.inputs.size(); ++i)
    values[g.inputs[i]] = {inputs[i], batched[i] != 0 ? inputs[i].shape()[0] : 0};
  for (const Graph::Constant& c : g.constants) values[c.value] = {c.tensor};
  Ones ones;
  Scoped scope(frame().scope);
  for (const Graph::Node& n : g.nodes) {
    scope.enter(n.scope.or_else(scope.before()));
    InlineVector<const Value*, 8> in;
    for (const ValueId v : n.in) in.push_back(&values[v]);
    std::vector<Value> out = in_layer(n.scope, [&] { return BatchedNode(g, n, {in.data(), in.size()}, ones).run(); });
    for (std::size_t i = 0; i < out.size() && i < n.out.size(); ++i) values[n.out[i]] = std::move(out[i]);
  }
  of_batch_.clear();
  Tensors results;
  for (const ValueId v : g.outputs) {
    results.push_back(whole(values[v]));
    of_batch_.push_back(values[v].batch > 0);
  }
  return results;
}

}  // namespace ferrite::exchange::detail
