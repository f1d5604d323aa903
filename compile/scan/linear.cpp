/// Runs scans whose body is linear in its carries as linear_scan.
#include "ferrite/compile/scan/detail/linear.h"

#include <algorithm>

#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/scan_stages.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {
namespace {

/// Thrown internally for a body that is not linear.
struct NotLinear {
  std::string why;
};

/// A value of a step: a plain tensor if it does not depend on carries, else a c + b.
struct Affine {
  Tensor plain{};
  std::size_t carry = 0;
  Tensor a{}, b{};                  ///< if undefined: 1 and 0
  std::optional<ValueId> resets{};  ///< where this mask is set, c counts as 0
  bool of_carry() const { return !plain.defined(); }
};

/// Reads a body node by node; values that do not depend on carries are tensors.
class Reading {
 public:
  Reading(const Graph& g, const ScanSignature& s) : g_(g), values_(g.values.size()) {
    for (std::size_t k = 0; k < s.carries; ++k) values_[g.inputs[k]].carry = k;
  }

  void give(ValueId v, const Tensor& t) { values_[v].plain = t; }
  void read(const Graph::Node& n) {
    const bool linear = std::any_of(n.in.begin(), n.in.end(), [&](ValueId v) { return values_[v].of_carry(); });
    if (!linear) return apply(n);
    if (n.out.size() != 1) refuse(n);
    Affine r = combined(n);
    const Spec& spec = g_.values[n.out[0]];
    if (spec.shape != g_.values[g_.inputs[r.carry]].shape) refuse(n);
    values_[n.out[0]] = std::move(r);
  }
  const Affine& operator[](ValueId v) const { return values_[v]; }
  Tensor plain(ValueId v) const { return values_[v].plain; }

 private:
  [[noreturn]] static void refuse(const Graph::Node& n) {
    throw NotLinear{"a carry goes through " + std::string(n.op->name)};
  }

  void apply(const Graph::Node& n) {
    if (n.op->is_view() && n.out.size() > 1 && n.in.size() == 1) return cut(n);
    Tensors in;
    for (const ValueId v : n.in) in.push_back(values_[v].plain);
    const Tensors out = n.op->apply(OperandList(in), n.attrs);
    for (std::size_t i = 0; i < n.out.size(); ++i) give(n.out[i], out[i]);
  }

  /// Replaces adjacent windows along an axis by slices, which can act on many steps at once.
  void cut(const Graph::Node& n) {
    const Tensor& x = values_[n.in[0]].plain;
    int axis = 0;
    for (int k = 0; k < x.rank(); ++k)
      if (g_.values[n.out[0]].shape.rank() == x.rank() && g_.values[n.out[0]].shape[k] != x.shape()[k]) axis = k;
    std::int64_t at = 0;
    for (const ValueId v : n.out) {
      const Shape& part = g_.values[v].shape;
      if (part.rank() != x.rank()) throw NotLinear{std::string(n.op->name) + " cannot act on all steps at once"};
      give(v, slice(x, axis, at, at + part[axis]));
      at += part[axis];
    }
  }

  /// Returns the operands of a pointwise node, including literals.
  std::vector<Affine> operands(const Graph::Node& n) const {
    std::vector<Affine> all;
    std::size_t next = 0;
    for (int k = 0; k < n.op->arity; ++k) {
      const Scalar* literal = literal_of(n.attrs, static_cast<std::size_t>(k));
      if (literal) {
        all.push_back({.plain = full({}, *literal, g_.values[n.in.back()].dtype)});
      } else {
        all.push_back(values_[n.in[next++]]);
      }
    }
    return all;
  }

  static Tensor sum_of(const Tensor& x, const Tensor& y) { return !x.defined() ? y : !y.defined() ? x : x + y; }
  Tensor one(const Graph::Node& n) const { return ones({}, g_.values[n.out[0]].dtype); }

  /// Throws unless both values come from the same carry with the same resets.
  static void check_same(const Graph::Node& n, const Affine& x, const Affine& y) {
    if (x.carry != y.carry) throw NotLinear{"two carries meet in " + std::string(n.op->name)};
    if (x.resets != y.resets) throw NotLinear{"a carry is read before and after a reset"};
  }
  Affine added(const Graph::Node& n, const Affine& x, const Affine& y) const {
    if (!y.of_carry()) return {{}, x.carry, x.a, sum_of(x.b, y.plain), x.resets};
    if (!x.of_carry()) return added(n, y, x);
    check_same(n, x, y);
    const Tensor unit = one(n);
    return {{}, x.carry, (x.a.defined() ? x.a : unit) + (y.a.defined() ? y.a : unit), sum_of(x.b, y.b), x.resets};
  }
  static Affine negated(const Affine& x, const Tensor& unit) {
    if (!x.of_carry()) return {.plain = -x.plain};
    return {{}, x.carry, -(x.a.defined() ? x.a : unit), x.b.defined() ? -x.b : x.b, x.resets};
  }
  static Affine times(const Affine& x, const Tensor& by) {
    return {{}, x.carry, x.a.defined() ? x.a * by : by, x.b.defined() ? x.b * by : x.b, x.resets};
  }

  Affine combined(const Graph::Node& n) const {
    if (n.op == ops::detach) refuse(n);
    if (n.op->arity < 1 || n.op->arity > 3) refuse(n);
    const std::vector<Affine> in = operands(n);
    if (n.op == ops::neg) return negated(in[0], one(n));
    if (n.op == ops::add) return added(n, in[0], in[1]);
    if (n.op == ops::sub) return added(n, in[0], negated(in[1], one(n)));
    if (n.op == ops::mul && in[0].of_carry() != in[1].of_carry())
      return in[0].of_carry() ? times(in[0], in[1].plain) : times(in[1], in[0].plain);
    if (n.op == ops::div && !in[1].of_carry())
      return {{},
              in[0].carry,
              in[0].a.defined() ? in[0].a / in[1].plain : 1 / in[1].plain,
              in[0].b.defined() ? in[0].b / in[1].plain : in[0].b,
              in[0].resets};
    if (n.op == ops::where && !in[0].of_carry()) return chosen(n, in);
    refuse(n);
  }
  /// Combines operands by a mask: two values of the same carry, or 0 in place of the carry itself, which is a reset. A
  /// mask that chooses another value would still need the carry, which might not be finite.
  Affine chosen(const Graph::Node& n, const std::vector<Affine>& in) const {
    const Affine &x = in[1], &y = in[2];
    if (x.of_carry() && y.of_carry()) {
      check_same(n, x, y);
      const Tensor unit = one(n), zero = zeros({}, g_.values[n.out[0]].dtype);
      const auto choice = [&](const Tensor& a, const Tensor& b, const Tensor& otherwise) {
        if (!a.defined() && !b.defined()) return Tensor();
        return where(in[0].plain, a.defined() ? a : otherwise, b.defined() ? b : otherwise);
      };
      return {{}, x.carry, choice(x.a, y.a, unit), choice(x.b, y.b, zero), x.resets};
    }
    const Scalar* literal = literal_of(n.attrs, 1);
    const bool itself = y.of_carry() && !y.a.defined() && !y.b.defined() && !y.resets;
    if (!literal || literal->as<double>() != 0 || !itself) refuse(n);
    const Shape mask = g_.values[n.in[0]].shape, carry = g_.values[n.out[0]].shape;
    if (mask.rank() != carry.rank() || mask.rank() < 2 || mask[0] != carry[0] || mask.numel() != mask[0])
      throw NotLinear{"a carry is reset by a mask that is not one of rows"};
    return {{}, y.carry, {}, {}, n.in[0]};
  }

  const Graph& g_;
  std::vector<Affine> values_;
};

/// Turns a graph on steps into one on stacks of steps: what differs from step to step gets a leading axis.
Graph stacked(const Graph& g, std::size_t xs, std::int64_t steps) {
  const GraphView view(g);
  const ScanSignature all_xs{0, xs, 0};
  const BodyValues values(view, all_xs);
  StageWriter writer(
      view, [](std::size_t) { return true; }, [&](ValueId v) { return values.input(v); });
  for (std::size_t k = 0; k < g.outputs.size(); ++k) writer.give(g.outputs[k], {ScanPlace::Kind::y, k});
  ScanStage stage = writer.write(steps, [&](ValueId v) { return values.differs(v); });
  // The inputs keep their order, including those that are not read.
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const bool x = i < xs;
    const std::size_t index = x ? i : i - xs;
    const auto at = std::ranges::find_if(
        stage.in, [&](const ScanPlace& p) { return p.index == index && (p.kind == ScanPlace::Kind::x) == x; });
    if (at != stage.in.end()) {
      inputs.push_back(stage.graph.inputs[static_cast<std::size_t>(at - stage.in.begin())]);
    } else {
      const Spec& s = g.values[g.inputs[i]];
      inputs.push_back(stage.graph.add_value(x ? Spec{with_steps(steps, s.shape), s.dtype} : s));
    }
  }
  stage.graph.inputs = std::move(inputs);
  return std::move(stage.graph);
}

/// Throws unless all nodes that are needed can act on many steps at once.
void check_stacks(const Graph& g, std::size_t xs) {
  const GraphView view(g);
  const BodyValues values(view, {0, xs, 0});
  std::vector<char> marked(g.values.size());
  for (const ValueId v : g.outputs) marked[v] = true;
  const std::vector<char> needed = mark_needed(g, marked);
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    if (needed[i] &&
        std::any_of(g.nodes[i].in.begin(), g.nodes[i].in.end(), [&](ValueId v) { return values.differs(v); }) &&
        !values.can_stack(i))
      throw NotLinear{std::string(g.nodes[i].op->name) + " cannot act on all steps at once"};
}

bool differs(const Graph& g, std::size_t xs, std::size_t output) {
  const GraphView view(g);
  return BodyValues(view, {0, xs, 0}).differs(g.outputs[output]);
}

}  // namespace

std::optional<LinearScanForm> LinearScanForm::of(const ScanBody& body, std::string& why) {
  const Graph& g = body.graph();
  const ScanSignature& s = body.signature();
  LinearScanForm form;
  form.xs_ = s.xs;
  try {
    if (s.carries == 0 || s.sums != 0) throw NotLinear{"there is no carry"};
    if (effects_of(g).must_run() || effects_of(g).draws || effects_of(g).communicates)
      throw NotLinear{"the body does more than compute"};
    if (!g.reads.empty() || !g.writes.empty()) throw NotLinear{"the body holds variables"};
    for (const Spec& v : g.values)
      if (is_storage_only(v.dtype)) throw NotLinear{"it takes a type that is only stored"};
    for (std::size_t k = 0; k < s.carries; ++k) {
      form.specs_.push_back(body.input(k));
      if (!is_float(body.input(k).dtype)) throw NotLinear{"a carry is no float"};
    }
    {
      Tracer tracer;
      const NewFrame frame(tracer);
      Reading reading(g, s);
      for (std::size_t i = s.carries; i < g.inputs.size(); ++i) reading.give(g.inputs[i], tracer.input(body.input(i)));
      for (const Graph::Constant& c : g.constants) reading.give(c.value, c.tensor);
      std::vector<char> marked(g.values.size());
      for (std::size_t k = 0; k < s.carries; ++k) marked[g.outputs[k]] = true;
      const std::vector<char> needed = mark_needed(g, marked);
      for (std::size_t i = 0; i < g.nodes.size(); ++i)
        if (needed[i]) reading.read(g.nodes[i]);
      std::vector<Tensor> outputs;
      const auto give = [&](const Tensor& t) { return outputs.push_back(t), outputs.size() - 1; };
      for (std::size_t k = 0; k < s.carries; ++k) {
        const Affine& next = reading[g.outputs[k]];
        if (!next.of_carry() || next.carry != k) throw NotLinear{"a carry does not depend on its own last value alone"};
        Carry c;
        if (next.a.defined()) c.a = give(next.a);
        if (next.b.defined()) c.b = give(next.b);
        if (next.resets) c.resets = give(reading.plain(*next.resets));
        form.carries_.push_back(c);
      }
      form.coefficients_ = tracer.finish(outputs);
    }
    check_stacks(form.coefficients_, s.xs);
    for (const Carry& c : form.carries_)
      if (c.resets && !differs(form.coefficients_, s.xs, *c.resets)) throw NotLinear{"all steps reset alike"};
    {
      Tracer tracer;
      const NewFrame frame(tracer);
      Reading reading(g, s);
      Tensors before, after;
      for (const Spec& spec : form.specs_) before.push_back(tracer.input(spec));
      for (const Spec& spec : form.specs_) after.push_back(tracer.input(spec));
      for (std::size_t k = 0; k < s.carries; ++k) reading.give(g.inputs[k], before[k]);
      for (std::size_t i = s.carries; i < g.inputs.size(); ++i) reading.give(g.inputs[i], tracer.input(body.input(i)));
      for (const Graph::Constant& c : g.constants) reading.give(c.value, c.tensor);
      const auto carried = [&](ValueId v) {
        return std::find(g.outputs.begin(), g.outputs.begin() + static_cast<std::ptrdiff_t>(s.carries), v);
      };
      const auto none = g.outputs.begin() + static_cast<std::ptrdiff_t>(s.carries);
      for (const Graph::Node& n : g.nodes) {
        if (const auto at = carried(n.out[0]); n.out.size() == 1 && at != none) {
          reading.give(n.out[0], after[static_cast<std::size_t>(at - g.outputs.begin())]);
        } else {
          reading.read(n);
        }
      }
      std::vector<Tensor> ys;
      for (std::size_t k = s.carries; k < g.outputs.size(); ++k) ys.push_back(reading.plain(g.outputs[k]));
      form.results_ = tracer.finish(ys);
    }
    check_stacks(form.results_, 2 * s.carries + s.xs);
  } catch (const NotLinear& e) {
    why = e.why;
    return {};
  }
  return form;
}

Tensors LinearScanForm::run(const Tensors& init, const Tensors& xs, const Tensors& captures, std::int64_t steps,
                            bool reverse) const {
  std::vector<Tensor> in(xs.begin(), xs.end());
  in.insert(in.end(), captures.begin(), captures.end());
  const Tensors terms = replay(stacked(coefficients_, xs_, steps), in);

  Tensors last, before, after;
  for (std::size_t k = 0; k < carries_.size(); ++k) {
    const Carry& c = carries_[k];
    const Shape &one = specs_[k].shape, all = with_steps(steps, one);
    // If rows are reset, row by row; else all channels of all rows next to each other: [B, T, D] of linear_scan.
    const std::int64_t B = c.resets ? one[0] : 1, D = B ? one.numel() / B : 0;
    const auto in_rows = [&](const Tensor& x, const Shape& wide) {
      return permute(reshape(expand(x, wide), {steps, B, D}), {1, 0, 2});
    };
    const auto term = [&](const std::optional<std::size_t>& at, double otherwise) {
      if (!at) return in_rows(full({}, otherwise, specs_[k].dtype), all);
      const Tensor& t = terms[*at];
      if (!differs(coefficients_, xs_, *at)) return in_rows(t, all);
      Shape padded{steps};  // the axis of steps first, then as many axes as a carry has
      for (int i = t.rank() - 1; i < one.rank(); ++i) padded.push_back(1);
      for (int i = 1; i < t.rank(); ++i) padded.push_back(t.shape()[i]);
      return in_rows(reshape(t, padded), all);
    };
    Tensor a =
        c.a && !c.resets && !differs(coefficients_, xs_, *c.a) ? reshape(expand(terms[*c.a], one), {D}) : term(c.a, 1);
    const Tensor resets = c.resets ? permute(reshape(terms[*c.resets], {steps, B}), {1, 0}) : Tensor();
    // When running backwards, a reset acts after its step in linear_scan, but before it here.
    Tensor marks = resets;
    if (reverse && resets.defined())
      marks = concat({full({B, 1}, false, Dtype::boolean), slice(resets, 1, 0, steps - 1)}, 1);
    const Tensor first = reshape(init[k], {B, D});
    const Tensor h0 = reverse && resets.defined() ? where(unsqueeze(select(resets, 1, -1), 1), 0, first) : first;
    const Tensor rows = linear_scan(a, term(c.b, 0), h0, {.reverse = reverse, .resets = marks});
    const Tensor h = reshape(permute(rows, {1, 0, 2}), all);
    last.push_back(select(h, 0, reverse ? 0 : -1));
    const Tensor start = unsqueeze(init[k], 0);
    before.push_back(reverse ? concat({slice(h, 0, 1, steps), start}, 0)
                             : concat({start, slice(h, 0, 0, steps - 1)}, 0));
    after.push_back(h);
  }
  std::vector<Tensor> of(before.begin(), before.end());
  of.insert(of.end(), after.begin(), after.end());
  of.insert(of.end(), in.begin(), in.end());
  const Tensors ys = replay(stacked(results_, 2 * carries_.size() + xs_, steps), of);
  for (std::size_t k = 0; k < ys.size(); ++k) {
    // Values that are the same in all steps have no axis of steps.
    const bool each = differs(results_, 2 * carries_.size() + xs_, k);
    const Spec& s = results_.values[results_.outputs[k]];
    last.push_back(each ? ys[k] : expand(unsqueeze(ys[k], 0), with_steps(steps, s.shape)));
  }
  return last;
}

}  // namespace ferrite::detail
