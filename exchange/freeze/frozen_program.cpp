/// Turns the step of a stream into a lowered program: constants, lines of past frames, loops.
#include "ferrite/exchange/freeze/frozen_program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "ferrite/compile/passes.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/freeze/c_lanes.h"
#include "ferrite/exchange/freeze/c_nested.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

namespace ops = ferrite::detail::ops;

// ---- constants ------------------------------------------------------------------------------------------------

/// Makes the present values of all variables constants.
void inline_variables(Graph& g) {
  for (const Graph::VariableValue& r : g.reads) g.constants.push_back({r.value, g.variables[r.variable].peek()});
  g.reads.clear();
}

constexpr std::int64_t kFewElements = 4096;

/// Computes what depends on constants alone, unless it is much larger than they are.
void compute_constants(Graph& g) {
  const NewFrame frame;
  std::map<ValueId, Tensor> known;
  for (const Graph::Constant& c : g.constants) known.emplace(c.value, c.tensor);
  std::vector<Graph::Node> left;
  for (Graph::Node& n : g.nodes) {
    std::int64_t in = 0, out = 0;
    std::vector<const Tensor*> operands;
    for (const ValueId v : n.in)
      if (const auto at = known.find(v); at != known.end()) operands.push_back(&at->second), in += at->second.numel();
    for (const ValueId v : n.out) out += g.values[v].shape.numel();
    const bool plain = !n.op->effects || !n.op->effects({}, n.attrs).draws;
    if (operands.size() != n.in.size() || !plain || (out > kFewElements && out > 2 * in)) {
      left.push_back(std::move(n));
      continue;
    }
    const Tensors results = n.op->apply({operands.data(), operands.size()}, n.attrs);
    for (std::size_t k = 0; k < n.out.size(); ++k) {
      known.emplace(n.out[k], results[k]);
      g.constants.push_back({n.out[k], results[k]});
    }
  }
  g.nodes = std::move(left);
  passes::remove_dead_code(g);
}

/// Makes constants row-major; of one that repeats a single number, that number stays alone.
void make_dense(Graph& g) {
  const NewFrame frame;
  for (Graph::Constant& c : g.constants)
    if (!is_repeated(c.tensor)) c.tensor = contiguous(c.tensor);
}

// ---- lines of past frames -----------------------------------------------------------------------------------------

struct Append {
  static constexpr auto name = "append_frames", onnx = "", stablehlo = "";
  static constexpr auto summary = "a line of frames and the new ones after it";
  static Specs infer(Inputs in, const NoAttrs&) {
    Spec s = in[0].spec();
    s.shape[0] += in[1].shape()[0];
    return {s};
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) {
    const NewFrame frame;
    out[0] = contiguous(concat({in[0], in[1]}, 0));
  }
};

/// Returns the number of the node that makes a value, or the number of nodes if none does.
std::size_t maker_index(const Graph& g, ValueId v) {
  std::size_t at = 0;
  while (at < g.nodes.size() && std::ranges::find(g.nodes[at].out, v) == g.nodes[at].out.end()) ++at;
  return at;
}
/// Returns the node that makes a value, or null.
const Graph::Node* maker(const Graph& g, ValueId v) {
  const std::size_t at = maker_index(g, v);
  return at < g.nodes.size() ? &g.nodes[at] : nullptr;
}

/// A concatenation of a state, or its end, and new frames along an axis.
struct Joined {
  ValueId frames = 0;  ///< the new frames
  int axis = 0;
  std::optional<ValueId> all{};  ///< the concatenation of the whole state
};

bool is_end_of(const Graph& g, ValueId v, ValueId of, int axis, std::int64_t begin) {
  const Graph::Node* n = maker(g, v);
  if (!n || n->op != ops::slice || n->in[0] != of) return false;
  const auto a = n->attrs.as<ferrite::detail::SliceAttrs>();
  return a.axis == axis && a.begin == begin && a.step == 1 && a.begin + a.count == g.values[of].shape[axis];
}

/// Returns how the next value of a state is made of its end and of new frames: a concatenation of them, or the end of a
/// concatenation of the state and the frames.
std::optional<Joined> joined(const Graph& g, ValueId state, ValueId next) {
  const Graph::Node* n = maker(g, next);
  if (!n) return {};
  if (n->op == ops::concat && n->in.size() == 2) {
    const int axis = n->attrs.as<ferrite::detail::AxisAttrs>().axis;
    const std::int64_t b = g.values[n->in[1]].shape[axis];
    if (b < g.values[state].shape[axis] && is_end_of(g, n->in[0], state, axis, b)) return Joined{n->in[1], axis};
    return {};
  }
  if (n->op != ops::slice) return {};
  const int axis = n->attrs.as<ferrite::detail::SliceAttrs>().axis;
  const Graph::Node* both = maker(g, n->in[0]);
  if (!both || both->op != ops::concat || both->in.size() != 2 || both->in[0] != state) return {};
  if (both->attrs.as<ferrite::detail::AxisAttrs>().axis != axis) return {};
  const std::int64_t b = g.values[both->in[1]].shape[axis];
  if (!is_end_of(g, next, n->in[0], axis, b)) return {};
  return Joined{both->in[1], axis, n->in[0]};
}

/// Finds states that hold the last frames of a longer state, as the taps of one convolution do, and reads the longer
/// one instead.
class Sharing {
 public:
  /// `states` are the inputs of the graph that are states, `next` their next values.
  Sharing(Graph& g, std::vector<ValueId> states, std::vector<ValueId> next, std::vector<Tensor> first)
      : g_(g), states_(std::move(states)), next_(std::move(next)), first_(std::move(first)) {
    for (std::size_t k = 0; k < states_.size(); ++k) {
      joined_.push_back(first_[k].defined() ? joined(g_, states_[k], next_[k]) : std::nullopt);
      if (joined_[k] && !joined_[k]->all) joined_[k].reset();
    }
  }
  /// Returns whether the k-th state is a part of another one, and thus no state any more.
  bool replace(std::size_t k) {
    if (!joined_[k]) return false;
    std::size_t longest = k;
    for (std::size_t o = 0; o < states_.size(); ++o)
      if (o != k && holds(o, k) && (frames(o) > frames(longest) || (frames(o) == frames(longest) && o < longest)))
        longest = o;
    if (longest == k) return false;
    const int axis = joined_[k]->axis;
    const std::int64_t before = frames(longest) - frames(k);
    g_.nodes.insert(g_.nodes.begin(), part(states_[longest], states_[k], axis, before));
    const ValueId all = *joined_[k]->all, all_of_longest = *joined_[longest]->all;
    const std::size_t at = maker_index(g_, all), other = maker_index(g_, all_of_longest);
    g_.nodes[at] = part(all_of_longest, all, axis, before);
    if (other > at) {  // the longer one reads nothing that is not there already
      const Graph::Node joiner = g_.nodes[other];
      g_.nodes.erase(g_.nodes.begin() + static_cast<std::ptrdiff_t>(other));
      g_.nodes.insert(g_.nodes.begin() + static_cast<std::ptrdiff_t>(at), joiner);
    }
    return true;
  }

 private:
  std::int64_t frames(std::size_t k) const { return g_.values[states_[k]].shape[joined_[k]->axis]; }
  /// Returns whether state o begins and goes on as state k does, from earlier frames on.
  bool holds(std::size_t o, std::size_t k) const {
    if (!joined_[o] || joined_[o]->frames != joined_[k]->frames || joined_[o]->axis != joined_[k]->axis) return false;
    if (frames(o) < frames(k)) return false;
    const NewFrame frame;
    const Tensor end = contiguous(slice(first_[o], joined_[k]->axis, frames(o) - frames(k), frames(o)));
    const Tensor own = contiguous(first_[k]);
    return end.spec() == own.spec() &&
           std::memcmp(end.raw(), own.raw(), static_cast<std::size_t>(own.numel() * size_of(own.dtype()))) == 0;
  }
  /// Returns the node that takes the frames of `from`, from `begin` on, as `to`.
  Graph::Node part(ValueId from, ValueId to, int axis, std::int64_t begin) const {
    const ferrite::detail::SliceAttrs a{axis, begin, g_.values[to].shape[axis], 1};
    return {.op = ops::slice, .attrs = a, .in = {from}, .out = {to}, .scope = {}};
  }

  Graph& g_;
  std::vector<ValueId> states_, next_;
  std::vector<Tensor> first_;
  std::vector<std::optional<Joined>> joined_;
};

/// Returns the order of axes that moves `axis` to the front, or back again.
Shape to_front(int rank, int axis, bool back) {
  Shape order;
  if (!back) {
    order.push_back(axis);
    for (int k = 0; k < rank; ++k)
      if (k != axis) order.push_back(k);
    return order;
  }
  for (int k = 0; k < rank; ++k) order.push_back(k == axis ? 0 : k < axis ? k + 1 : k);
  return order;
}

/// Rewrites a graph so that a state is a line: frames on the first axis, appended by one operation.
class Lining {
 public:
  Lining(Graph& g, std::size_t input, std::size_t output) : g_(g), input_(input), output_(output) {}

  void run(const Joined& j, FrozenState& s) {
    const ValueId state = g_.inputs[input_];
    const int rank = g_.values[state].shape.rank();
    const Spec turned = permuted(g_.values[state], to_front(rank, j.axis, false));
    const ValueId line = g_.add_value(turned);
    g_.inputs[input_] = line;
    g_.nodes.insert(g_.nodes.begin(), turn(line, state, to_front(rank, j.axis, true)));
    // The frames come to the front, too, right where they are joined.
    const ValueId frames = g_.add_value(permuted(g_.values[j.frames], to_front(rank, j.axis, false)));
    Spec longer = turned;
    longer.shape[0] += g_.values[frames].shape[0];
    const ValueId all = g_.add_value(longer);
    const ValueId joiner = j.all ? *j.all : g_.outputs[output_];
    const std::size_t at = maker_index(g_, joiner);
    Graph::Node append{
        .op = &append_operation(), .attrs = {}, .in = {line, frames}, .out = {all}, .scope = g_.nodes[at].scope};
    std::vector<Graph::Node> now{turn(j.frames, frames, to_front(rank, j.axis, false)), append};
    if (j.all) {
      now.push_back(turn(all, *j.all, to_front(rank, j.axis, true)));
      g_.nodes.erase(g_.nodes.begin() + static_cast<std::ptrdiff_t>(at));
    }
    g_.nodes.insert(g_.nodes.begin() + static_cast<std::ptrdiff_t>(at), now.begin(), now.end());
    g_.outputs[output_] = all;
    s.keeping = Keeping::line;
    s.spec = turned;
    s.frame = turned.shape.numel() / std::max<std::int64_t>(turned.shape[0], 1);
    s.appended = g_.values[frames].shape[0];
    const NewFrame frame;
    s.first = contiguous(permute(s.first, to_front(rank, j.axis, false)));
  }

 private:
  static Spec permuted(const Spec& s, const Shape& order) {
    Spec p{{}, s.dtype};
    for (const std::int64_t k : order) p.shape.push_back(s.shape[static_cast<int>(k)]);
    return p;
  }
  static Graph::Node turn(ValueId from, ValueId to, const Shape& order) {
    return {.op = ops::permute, .attrs = ferrite::detail::PermuteAttrs{order}, .in = {from}, .out = {to}, .scope = {}};
  }

  Graph& g_;
  std::size_t input_, output_;
};

}  // namespace

bool is_repeated(const Tensor& x) {
  const Shape strides = x.strides();
  return x.numel() > 1 && std::ranges::all_of(strides, [](std::int64_t s) { return s == 0; });
}

bool same_states(const FrozenProgram& a, const FrozenProgram& b) {
  return std::ranges::equal(a.states, b.states, [](const FrozenState& s, const FrozenState& t) {
    return s.name == t.name && s.keeping == t.keeping && s.spec == t.spec;
  });
}

const Primitive& append_operation() { return ferrite::detail::structured<Append>; }

namespace {

/// Returns whether a product reads a whole value while its successor may be written already.
bool is_multiplied(const ferrite::detail::LoweredProgram& p, ValueId v) {
  return std::ranges::any_of(p.steps, [v](const ferrite::detail::LoweredStep& s) {
    return !s.is_loop && s.node->op == ops::matmul && s.in[0].value == v;
  });
}

/// Finds the states of a graph, which loses those that are parts of others, and how each is kept. Returns the outputs
/// that are their next values.
std::vector<std::size_t> take_states(const StepSource& source, Graph& g, std::vector<FrozenState>& states) {
  const std::size_t nx = source.inputs.size(), n = source.states.size();
  std::vector<std::size_t> output_of, own;
  std::vector<ValueId> now(g.inputs.begin() + static_cast<std::ptrdiff_t>(nx), g.inputs.end()), next;
  std::vector<Tensor> first;
  std::size_t output = source.output_names.size();
  for (const SourceState& s : source.states) {
    next.push_back(s.counts ? 0 : g.outputs[output++]);
    first.push_back(s.counts || s.capacity || s.spec.shape.rank() == 0 ? Tensor() : s.first);
  }
  g.inputs.resize(nx), g.outputs.resize(source.output_names.size());
  Sharing sharing(g, now, next, first);
  for (std::size_t k = 0; k < n; ++k) {
    if (first[k].defined() && sharing.replace(k)) continue;
    own.push_back(k), g.inputs.push_back(now[k]);
    output_of.push_back(g.outputs.size());
    if (!source.states[k].counts) g.outputs.push_back(next[k]);
  }
  passes::remove_dead_code(g);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const SourceState& s = source.states[own[i]];
    FrozenState f{.name = s.name, .spec = s.spec, .first = s.first};
    f.keeping = s.counts ? Keeping::counts : s.capacity ? Keeping::store : Keeping::value;
    if (f.keeping == Keeping::store) f.frame = s.spec.shape.numel() / s.spec.shape[0] / s.capacity;
    if (first[own[i]].defined())
      if (const auto j = joined(g, g.inputs[nx + i], g.outputs[output_of[i]]))
        Lining(g, nx + i, output_of[i]).run(*j, f);
    states.push_back(f);
  }
  return output_of;
}

}  // namespace

FrozenProgram frozen_program(const StepSource& source, bool block) {
  const NewFrame frame;
  std::vector<Spec> specs = source.inputs;
  if (block) specs[0].shape[0] = source.block_steps;
  for (const SourceState& s : source.states) specs.push_back(s.spec);
  Graph g = trace(block ? source.block : source.function, specs);
  inline_variables(g);
  expand_for_c(g);
  compute_constants(g);
  passes::simplify(g);
  compute_constants(g);

  FrozenProgram p{.lowered = {},
                  .inputs = {},
                  .outputs = {},
                  .states = {},
                  .input_names = source.input_names,
                  .output_names = source.output_names,
                  .steps = block ? source.block_steps : 1};
  const std::size_t nx = source.inputs.size();
  const std::vector<std::size_t> output_of = take_states(source, g, p.states);
  make_dense(g);
  p.lowered = ferrite::detail::lower(std::move(g));
  const Graph& lowered = p.lowered.graph;
  p.inputs.assign(lowered.inputs.begin(), lowered.inputs.begin() + static_cast<std::ptrdiff_t>(nx));
  p.outputs.assign(lowered.outputs.begin(),
                   lowered.outputs.begin() + static_cast<std::ptrdiff_t>(source.output_names.size()));
  for (std::size_t k = 0; k < p.states.size(); ++k) {
    p.states[k].now = lowered.inputs[nx + k];
    if (p.states[k].keeping != Keeping::counts) p.states[k].next = lowered.outputs[output_of[k]];
    if (p.states[k].keeping == Keeping::value && is_multiplied(p.lowered, p.states[k].now))
      p.states[k].keeping = Keeping::pair;
  }
  p.joined = joined_rows(p.lowered);
  return p;
}

FrozenProgram frozen_program(const Graph& program, const std::vector<Variable>& variables,
                             const std::vector<std::string>& names) {
  const NewFrame frame;
  Graph g = program;
  const std::size_t nx = g.inputs.size(), ny = g.outputs.size();
  std::vector<ValueId> now(variables.size()), next(variables.size());
  const auto place_of = [&](const Graph::VariableValue& v) {
    const auto at = std::ranges::find(variables, g.variables[v.variable]);
    if (at == variables.end())
      throw ValueError("freeze: the program reads '" + g.variables[v.variable].name() +
                       "', which is no variable of the step of training");
    return static_cast<std::size_t>(at - variables.begin());
  };
  for (std::size_t k = 0; k < variables.size(); ++k)
    now[k] = next[k] = g.add_value({variables[k].shape(), variables[k].dtype()});
  std::vector<ValueId> reads(g.values.size());
  for (std::size_t v = 0; v < reads.size(); ++v) reads[v] = static_cast<ValueId>(v);
  for (const Graph::VariableValue& r : g.reads) reads[r.value] = now[place_of(r)];
  for (Graph::Node& n : g.nodes)
    for (ValueId& v : n.in) v = reads[v];
  for (ValueId& v : g.outputs) v = reads[v];
  for (const Graph::VariableValue& w : g.writes) {
    next[place_of(w)] = reads[w.value];
    if (reads[w.value] != w.value && reads[w.value] != now[place_of(w)])
      throw ExportError("freeze: no C for a program that assigns the value of one variable to '" +
                        g.variables[w.variable].name() + "'");
  }
  g.inputs.insert(g.inputs.end(), now.begin(), now.end());
  g.outputs.insert(g.outputs.end(), next.begin(), next.end());
  g.reads.clear(), g.writes.clear(), g.variables.clear();
  expand_for_c(g);
  compute_constants(g);
  passes::simplify(g);
  make_dense(g);

  FrozenProgram p{.lowered = ferrite::detail::lower(std::move(g)),
                  .inputs = {},
                  .outputs = {},
                  .states = {},
                  .input_names = {},
                  .output_names = {}};
  const Graph& lowered = p.lowered.graph;
  p.inputs.assign(lowered.inputs.begin(), lowered.inputs.begin() + static_cast<std::ptrdiff_t>(nx));
  p.outputs.assign(lowered.outputs.begin(), lowered.outputs.begin() + static_cast<std::ptrdiff_t>(ny));
  for (std::size_t k = 0; k < variables.size(); ++k)
    p.states.push_back({.name = names[k],
                        .spec = lowered.values[lowered.inputs[nx + k]],
                        .first = contiguous(variables[k].peek()),
                        .now = lowered.inputs[nx + k],
                        .next = lowered.outputs[ny + k]});
  return p;
}

}  // namespace ferrite::exchange::detail
