#include <algorithm>

#include "ferrite/compile/graph/pull_back.h"
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {

/// Traces a body together with its gradient and cuts the two apart.
class ScanCut {
 public:
  ScanCut(const ScanBody& body, ScanBack& back) : body_(body), back_(back) {
    back.of_ = body.signature();
    back.captures_ = body.captures();
    trace();
    passes::simplify(joint_);
    find_late();
    choose();
  }

  std::shared_ptr<ScanBody> forward() const {
    Graph f = joint_;
    f.inputs.resize(body_.graph().inputs.size());
    f.outputs.resize(body_.graph().outputs.size());
    f.outputs.insert(f.outputs.end(), saved_.begin(), saved_.end());
    std::erase_if(f.nodes, [&](const Graph::Node& n) { return late_[n.out[0]] != 0; });
    return std::make_shared<ScanBody>(std::move(f), body_.signature());
  }

  Graph backward() const {
    const ScanSignature& s = body_.signature();
    const std::size_t inputs = body_.graph().inputs.size(), outputs = body_.graph().outputs.size();
    const auto in = [&](std::size_t i) { return joint_.inputs.begin() + static_cast<std::ptrdiff_t>(i); };
    Graph b = joint_;
    std::erase_if(b.nodes, [&](const Graph::Node& n) { return !late_[n.out[0]] && !again_[n.out[0]]; });
    b.inputs.assign(in(inputs), in(inputs + back_.float_carries_.size()));
    b.inputs.insert(b.inputs.end(), saved_.begin(), saved_.end());
    b.inputs.insert(b.inputs.end(), in(s.carries), in(inputs));
    b.inputs.insert(b.inputs.end(), in(inputs + back_.float_carries_.size()), joint_.inputs.end());
    const auto grad = joint_.outputs.begin() + static_cast<std::ptrdiff_t>(outputs);
    const auto carries = grad + static_cast<std::ptrdiff_t>(back_.float_carries_.size());
    const auto xs = carries + static_cast<std::ptrdiff_t>(back_.float_xs_.size());
    b.outputs.assign(grad, carries);
    b.outputs.insert(b.outputs.end(), xs, joint_.outputs.end());
    b.outputs.insert(b.outputs.end(), carries, xs);
    return b;
  }
  std::size_t saved() const { return saved_.size(); }

 private:
  void trace() {
    const ScanSignature& s = body_.signature();
    const Graph& g = body_.graph();
    Tracer tracer;
    const NewFrame frame(tracer);
    Tape tape;
    std::vector<Tensor> arguments, variables, cotangents;
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      Tensor x = tracer.input(body_.input(i));
      if (is_float(x.dtype())) {
        x = tape.watch(x);
        variables.push_back(x);
        if (i < s.carries) {
          back_.float_carries_.push_back(i);
        } else if (i < s.carries + s.xs) {
          back_.float_xs_.push_back(i - s.carries);
        } else {
          back_.float_captures_.push_back(i - s.carries - s.xs);
        }
      }
      arguments.push_back(x);
    }
    Tensors ends = replay(g, arguments);
    const Tensors results = ends;
    std::vector<std::size_t> which;
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (!is_float(results[k].dtype())) continue;
      cotangents.push_back(tracer.input(results[k].spec()));
      which.push_back(k);
      if (k < s.carries) {
        if (is_float(body_.input(k).dtype)) continue;
      } else if (k < s.carries + s.sums) {
        back_.float_sums_.push_back(k - s.carries);
      } else {
        back_.float_ys_.push_back(k - s.carries - s.sums);
      }
    }
    if (!which.empty() && !variables.empty())
      for (const Tensor& d : pull_back(tape, results, cotangents, which, variables)) ends.push_back(d);
    joint_ = tracer.finish(ends);
  }

  /// What depends on a cotangent comes late.
  void find_late() {
    late_.assign(joint_.values.size(), 0);
    for (std::size_t i = body_.graph().inputs.size(); i < joint_.inputs.size(); ++i) late_[joint_.inputs[i]] = 1;
    for (const Graph::Node& n : joint_.nodes) {
      const bool late = std::any_of(n.in.begin(), n.in.end(), [&](ValueId v) { return late_[v] != 0; });
      for (const ValueId v : n.out) late_[v] = late;
    }
  }

  /// Of the early values that the way back reads, some are saved, and some computed again from the others.
  void choose() {
    const std::size_t inputs = body_.graph().inputs.size();
    std::vector<const Graph::Node*> maker(joint_.values.size());
    for (const Graph::Node& n : joint_.nodes)
      for (const ValueId v : n.out) maker[v] = &n;
    std::vector<char> there(joint_.values.size());
    for (std::size_t i = body_.signature().carries; i < inputs; ++i) there[joint_.inputs[i]] = 1;
    for (const Graph::Constant& c : joint_.constants) there[c.value] = 1;
    std::vector<char> read(joint_.values.size());
    again_.assign(joint_.values.size(), 0);
    const auto want = [&](ValueId v) { read[v] |= !late_[v] && !there[v]; };
    for (const Graph::Node& n : joint_.nodes)
      if (late_[n.out[0]])
        for (const ValueId v : n.in) want(v);
    for (std::size_t k = body_.graph().outputs.size(); k < joint_.outputs.size(); ++k) want(joint_.outputs[k]);
    for (std::size_t i = joint_.nodes.size(); i-- > 0;) {
      const Graph::Node& n = joint_.nodes[i];
      if (n.out.size() != 1 || !read[n.out[0]] || !is_worth_repeating(n, read, there)) continue;
      again_[n.out[0]] = 1;
      for (const ValueId v : n.in) want(v);
    }
    for (ValueId v = 0; v < joint_.values.size(); ++v)
      if (read[v] && !again_[v]) saved_.push_back(v);
  }

  /// Views that make nothing smaller, and cheap operations on what is there anyway.
  bool is_worth_repeating(const Graph::Node& n, const std::vector<char>& read, const std::vector<char>& there) const {
    if (n.in.empty()) return n.op == ops::full;
    if (n.op->view && joint_.values[n.in[0]].shape.numel() <= joint_.values[n.out[0]].shape.numel()) return true;
    const bool cheap = n.op == ops::add || n.op == ops::sub || n.op == ops::mul || n.op == ops::neg;
    return cheap && std::all_of(n.in.begin(), n.in.end(), [&](ValueId v) { return read[v] || there[v]; });
  }

  const ScanBody& body_;
  ScanBack& back_;
  Graph joint_;
  std::vector<char> late_, again_;
  std::vector<ValueId> saved_;
};

std::shared_ptr<ScanBody> ScanBack::differentiate(const ScanBody& body, std::unique_ptr<const ScanBack>& back) {
  auto made = std::make_unique<ScanBack>();
  const ScanCut cut(body, *made);
  made->graph_ = cut.backward();
  made->saved_ = cut.saved();
  back = std::move(made);
  return cut.forward();
}

const ScanBack::Way& ScanBack::way(const Wish& wish) const {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<const Way>& way : ways_)
    if (way->wish == wish) return *way;
  ways_.push_back(std::make_unique<const Way>(make(wish)));
  return *ways_.back();
}

namespace {

/// Inputs of a graph in the order of their kinds, those without readers left out.
class UsedInputs {
 public:
  explicit UsedInputs(const Graph& g) : used_(count_uses(g)), from_(g.inputs) {}
  /// The next n inputs; their numbers among these go to `which`, themselves to `to`.
  void take(std::size_t n, std::vector<std::size_t>& which, std::vector<ValueId>& to) {
    for (std::size_t i = 0; i < n; ++i, ++at_) {
      if (!used_[from_[at_]]) continue;
      which.push_back(i);
      to.push_back(from_[at_]);
    }
  }

 private:
  std::vector<std::uint32_t> used_;
  std::vector<ValueId> from_;
  std::size_t at_ = 0;
};

}  // namespace

ScanBack::Way ScanBack::make(const Wish& wish) const {
  const NewFrame frame;
  Graph b = graph_;
  const std::size_t first_y = b.inputs.size() - float_ys_.size();
  for (std::size_t k = 0; k < float_ys_.size(); ++k) {
    if (wish.ys[float_ys_[k]]) continue;
    ValueId& v = b.inputs[first_y + k];  // no cotangent: zeros stand for it, the input is read by nobody
    const Spec spec = b.values[v];
    b.constants.push_back({v, expand(zeros({}, spec.dtype), spec.shape)});
    v = b.add_value(spec);
  }
  const std::size_t carries = float_carries_.size(), captures = float_captures_.size();
  std::vector<ValueId> sums, xs;
  for (std::size_t k = 0; k < captures; ++k)
    if (wish.inputs[of_.carries + of_.xs + float_captures_[k]]) sums.push_back(b.outputs[carries + k]);
  for (std::size_t k = 0; k < float_xs_.size(); ++k)
    if (wish.inputs[of_.carries + float_xs_[k]]) xs.push_back(b.outputs[carries + captures + k]);
  b.outputs.resize(carries);
  b.outputs.insert(b.outputs.end(), sums.begin(), sums.end());
  b.outputs.insert(b.outputs.end(), xs.begin(), xs.end());
  passes::simplify(b);

  Way way;
  way.wish = wish;
  UsedInputs used(b);
  std::vector<ValueId> first(b.inputs.begin(), b.inputs.begin() + static_cast<std::ptrdiff_t>(carries));
  std::vector<std::size_t> all;
  std::vector<ValueId> ignored, saved_values, x_values, capture_values, sum_values, y_values;
  used.take(carries, all, ignored);
  used.take(saved_, way.saved, saved_values);
  used.take(of_.xs, way.xs, x_values);
  used.take(captures_, way.captures, capture_values);
  used.take(float_sums_.size(), way.sums, sum_values);
  used.take(float_ys_.size(), way.ys, y_values);
  for (std::size_t& k : way.sums) k = float_sums_[k];
  for (std::size_t& k : way.ys) k = float_ys_[k];
  b.inputs = std::move(first);
  for (const std::vector<ValueId>* list : {&saved_values, &x_values, &y_values, &capture_values, &sum_values})
    b.inputs.insert(b.inputs.end(), list->begin(), list->end());
  const std::size_t steps = saved_values.size() + x_values.size() + y_values.size();
  way.body = std::make_shared<const ScanBody>(std::move(b), ScanSignature{carries, steps, sums.size()});
  return way;
}

}  // namespace ferrite::detail
