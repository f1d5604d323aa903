/// The joint graph of a program and its gradient, and how it is cut into forward and backward pass.
#include "ferrite/compile/passes/gradient.h"

#include <algorithm>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {
namespace {

/// Removes from a backward pass the cotangents that do not arrive. The pass is linear in its cotangents, so what
/// depends only on absent ones is zero and is not computed: a sum becomes its other operand, and zeros are used only
/// where an operation takes several cotangents at once.
class WithoutCotangents {
 public:
  WithoutCotangents(Graph& g, const std::vector<char>& late, std::span<const ValueId> absent)
      : g_(g), late_(late), absent_(g.values.size()), zeros_(g.values.size(), kNoValue), to_(g.values.size()) {
    for (const ValueId v : absent) absent_[v] = 1;
  }

  void run() {
    rewrite_nodes(g_, to_, [&](Graph::Node& n) {
      if (!drop(n)) g_.nodes.push_back(std::move(n));
    });
    for (ValueId& v : g_.outputs)
      if (is_absent(v)) v = zeros_for(v);
  }

 private:
  bool is_absent(ValueId v) const { return v < absent_.size() && absent_[v] != 0; }
  bool is_late(ValueId v) const { return v < late_.size() && late_[v] != 0; }

  /// Returns whether a node is dropped; a node that stays reads zeros for absent operands.
  bool drop(Graph::Node& n) {
    if (std::none_of(n.in.begin(), n.in.end(), [&](ValueId v) { return is_absent(v); })) return false;
    const bool all = std::all_of(n.in.begin(), n.in.end(), [&](ValueId v) { return is_absent(v) || !is_late(v); });
    if (all && !effects_of(g_, n).communicates) {
      for (const ValueId v : n.out) absent_[v] = 1;
      return true;
    }
    if (n.op == ops::add && n.in.size() == 2 && !all) {
      const ValueId other = n.in[is_absent(n.in[0]) ? 1 : 0];
      if (g_.values[other] == g_.values[n.out[0]]) {
        to_.replace(n.out[0], other);
        return true;
      }
    }
    for (ValueId& v : n.in)
      if (is_absent(v)) v = zeros_for(v);
    return false;
  }

  ValueId zeros_for(ValueId v) {
    if (zeros_[v] == kNoValue) {
      const Spec spec = g_.values[v];
      zeros_[v] = g_.add_value(spec);
      g_.constants.push_back({zeros_[v], expand(zeros({}, spec.dtype), spec.shape)});
    }
    return zeros_[v];
  }

  Graph& g_;
  const std::vector<char>& late_;
  std::vector<char> absent_;    ///< by value: it is zero, because no cotangent reaches it
  std::vector<ValueId> zeros_;  ///< by value: the zeros that replace it, else kNoValue
  Substitution to_;
};

}  // namespace

GraphGradient::GraphGradient(const Graph& program, std::span<const char> given, std::size_t results)
    : given_(given.begin(), given.end()),
      inputs_(program.inputs.size()),
      outputs_(program.outputs.size()),
      results_(results) {
  trace(program);
  passes::simplify(joint_);
  find_late();
  choose_residuals();
}

void GraphGradient::trace(const Graph& program) {
  Tracer tracer;
  const NewFrame frame(tracer);
  Tape tape;
  std::vector<Tensor> arguments, variables;
  for (const ValueId v : program.inputs) {
    Tensor x = tracer.input(program.values[v]);
    if (has_gradient(x.dtype())) variables.push_back(x = tape.watch(x));
    arguments.push_back(x);
  }
  Tensors ends = replay(program, arguments);
  std::vector<GradOf> of;
  for (std::size_t k = 0; k < results_; ++k)
    if (has_gradient(ends[k].dtype()))
      of.push_back({ends[k], tracer.input({ends[k].shape(), gradient_dtype(ends[k].dtype())})});
  for (const Tensor& d : lenient_grad(tape, of, variables)) ends.push_back(d);
  joint_ = tracer.finish(ends);
  passes::drop_recompute(joint_);
}

void GraphGradient::find_late() {
  late_.assign(joint_.values.size(), 0);
  for (std::size_t i = inputs_; i < joint_.inputs.size(); ++i) late_[joint_.inputs[i]] = 1;
  mark_dependents(joint_, late_);
}

void GraphGradient::choose_residuals() {
  std::vector<char> there(joint_.values.size()), read(joint_.values.size());
  for (std::size_t i = 0; i < inputs_; ++i) there[joint_.inputs[i]] = given_[i];
  for (const Graph::Constant& c : joint_.constants) there[c.value] = 1;
  again_.assign(joint_.values.size(), 0);
  const auto want = [&](ValueId v) { read[v] |= !late_[v] && !there[v]; };
  for (const Graph::Node& n : joint_.nodes)
    if (std::any_of(n.out.begin(), n.out.end(), [&](ValueId v) { return late_[v] != 0; }))
      for (const ValueId v : n.in) want(v);
  for (std::size_t k = outputs_; k < joint_.outputs.size(); ++k) want(joint_.outputs[k]);
  for (std::size_t i = joint_.nodes.size(); i-- > 0;) {
    const Graph::Node& n = joint_.nodes[i];
    if (n.out.size() != 1 || !read[n.out[0]] || !is_worth_repeating(n, read, there)) continue;
    again_[n.out[0]] = 1;
    for (const ValueId v : n.in) want(v);
  }
  for (ValueId v = 0; v < joint_.values.size(); ++v)
    if (read[v] && !again_[v]) residuals_.push_back(v);
}

/// Returns whether the backward pass should compute a node again: views that do not make anything smaller, and cheap
/// operations on values that are there anyway.
bool GraphGradient::is_worth_repeating(const Graph::Node& n, const std::vector<char>& read,
                                       const std::vector<char>& there) const {
  if (n.in.empty()) return n.op == ops::full;
  if (n.op->view && joint_.values[n.in[0]].shape.numel() <= joint_.values[n.out[0]].shape.numel()) return true;
  const bool cheap = n.op == ops::add || n.op == ops::sub || n.op == ops::mul || n.op == ops::neg;
  return cheap && std::all_of(n.in.begin(), n.in.end(), [&](ValueId v) { return read[v] || there[v]; });
}

Graph GraphGradient::forward() const {
  Graph f = joint_;
  f.inputs.resize(inputs_);
  f.outputs.resize(outputs_);
  f.outputs.insert(f.outputs.end(), residuals_.begin(), residuals_.end());
  std::erase_if(f.nodes, [&](const Graph::Node& n) { return !n.out.empty() && late_[n.out[0]] != 0; });
  return f;
}

Graph GraphGradient::backward(std::span<const char> arriving, std::span<const char> wanted) const {
  const NewFrame frame;
  Graph b = joint_;
  std::erase_if(b.nodes,
                [&](const Graph::Node& n) { return n.out.empty() || (!late_[n.out[0]] && !again_[n.out[0]]); });
  b.inputs = residuals_;
  for (std::size_t i = 0; i < inputs_; ++i)
    if (given_[i]) b.inputs.push_back(joint_.inputs[i]);
  std::vector<ValueId> absent;
  for (std::size_t k = 0, next = inputs_; k < results_; ++k)
    if (has_gradient(joint_.values[joint_.outputs[k]].dtype))
      (arriving[k] ? b.inputs : absent).push_back(joint_.inputs[next++]);
  b.outputs.clear();
  for (std::size_t i = 0, next = outputs_; i < inputs_; ++i) {
    if (!has_gradient(joint_.values[joint_.inputs[i]].dtype)) continue;
    if (wanted[i]) b.outputs.push_back(joint_.outputs[next]);
    ++next;
  }
  if (!absent.empty()) WithoutCotangents(b, late_, absent).run();
  passes::simplify(b);
  return b;
}

}  // namespace ferrite::detail
