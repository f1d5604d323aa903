/// Calls of scans: tracing bodies, masks of lengths, sharing bodies; and the passes over scans in a program.
#include "ferrite/compile/scan.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "ferrite/compile/passes.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/scan/detail/linear.h"
#include "ferrite/compile/scan/detail/operation.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"

namespace ferrite {

// ---- calls ------------------------------------------------------------------------------------------------

namespace {

using detail::effects_of;
using detail::ScanBody;

/// The bodies that were used last, kept so that equal ones share their plans.
class Bodies {
 public:
  std::shared_ptr<const ScanBody> shared(Graph graph, const detail::ScanSignature& signature) {
    auto made = std::make_shared<const ScanBody>(std::move(graph), signature);
    const std::lock_guard lock(mutex_);
    for (auto at = bodies_.begin(); at != bodies_.end(); ++at) {
      if (!(*at)->equals(*made)) continue;
      bodies_.splice(bodies_.begin(), bodies_, at);
      return bodies_.front();
    }
    bodies_.push_front(made);
    if (bodies_.size() > kMost) bodies_.pop_back();
    return made;
  }

 private:
  static constexpr std::size_t kMost = 128;
  std::mutex mutex_;
  std::list<std::shared_ptr<const ScanBody>> bodies_;
};

Bodies& bodies() {
  static auto* b = new Bodies;  // outlives every scan with static lifetime
  return *b;
}

Spec step_of(const Tensor& x) { return {detail::without_steps(x.shape()), x.dtype()}; }

std::int64_t steps_of(const Tensors& xs, const ScanOptions& o) {
  std::int64_t steps = o.steps;
  if (o.checkpoint_every < 0)
    throw ValueError("scan: checkpoint_every must not be negative, got " + std::to_string(o.checkpoint_every));
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].rank() == 0)
      throw ShapeError("scan: x " + std::to_string(i) + " has no axis of time: " + xs[i].spec().str());
    const std::int64_t T = xs[i].shape()[0];
    if (steps >= 0 && T != steps)
      throw ShapeError("scan: x " + std::to_string(i) + " " + xs[i].shape().str() + " has " + std::to_string(T) +
                       " steps, expected " + std::to_string(steps));
    steps = T;
  }
  if (steps < 0) throw ValueError("scan: without xs the number of steps must be given; set ScanOptions::steps");
  return steps;
}

/// A body as traced for some types.
struct Traced {
  detail::TracedStep step;
  std::shared_ptr<const ScanBody> body;
  std::vector<Spec> specs;
  std::string why{};  ///< reason why it is not linear in its carries
  std::optional<detail::LinearScanForm> linear{};

  bool fits(const Tensors& init, const Tensors& xs) const {
    std::size_t i = 0;
    if (specs.size() != init.size() + xs.size()) return false;
    for (const Tensor& t : init)
      if (specs[i++] != t.spec()) return false;
    for (const Tensor& x : xs)
      if (specs[i++] != step_of(x)) return false;
    const std::vector<TracedFlag>& flags = step.flags;
    return std::all_of(flags.begin(), flags.end(), [](const TracedFlag& f) { return f.flag->load() == f.value; });
  }
};

std::string report_of(const Traced& t) {
  return t.linear ? "linear in its carries: runs as linear_scan" : "runs step by step: " + t.why;
}

std::shared_ptr<const Traced> trace_body(const ScanBodyFunction& f, const Tensors& init, const Tensors& xs) {
  std::vector<Spec> specs;
  for (const Tensor& c : init) specs.push_back(c.spec());
  for (const Tensor& s : xs) specs.push_back(step_of(s));
  const std::span<const Spec> all(specs);
  detail::TracedStep step = detail::trace_step(f, all.first(init.size()), all.subspan(init.size()));
  std::shared_ptr<const ScanBody> body = bodies().shared(std::move(step.graph), {init.size(), xs.size(), 0});
  auto t = std::make_shared<Traced>(Traced{std::move(step), std::move(body), std::move(specs)});
  t->linear = detail::LinearScanForm::of(*t->body, t->why);
  if (detail::log_enabled(LogLevel::debug)) detail::log_debug("scan: " + report_of(*t));
  return t;
}

ScanResult split(const Tensors& all, std::size_t carries) {
  ScanResult r;
  for (std::size_t k = 0; k < all.size(); ++k) (k < carries ? r.carry : r.y).push_back(all[k]);
  return r;
}

ScanResult apply(const Traced& t, const Tensors& init, const Tensors& xs, std::int64_t steps, const ScanOptions& o) {
  Tensors captures;
  for (const Tracer::Capture& c : t.step.captures)
    captures.push_back(c.variable.defined() ? c.variable.value() : c.tensor);
  const detail::Frame& now = detail::frame();
  for (Recorder* r : now.recorders)
    for (const TracedFlag& f : t.step.flags) r->flag(f.flag, f.value);
  if (t.linear && steps > 0 && o.checkpoint_every == 0 && !o.by_steps)
    return split(t.linear->run(init, xs, captures, steps, o.reverse), init.size());
  detail::ScanOperands operands;
  for (const Tensor& c : init) operands.add(c);
  for (const Tensor& x : xs) operands.add(x);
  for (const Tensor& c : captures) operands.add(c);
  const bool keeps_few = now.differentiated && o.checkpoint_every > 0;
  if (keeps_few && effects_of(t.body->graph()).communicates)
    throw ValueError("scan: checkpoint_every computes steps again, and the body communicates; leave it 0");
  const bool keeps_all = now.differentiated && !keeps_few;
  const Attrs attrs = keeps_few ? ScanBody::attrs_of(t.body, steps, o.reverse, o.checkpoint_every)
                                : ScanBody::attrs_of(keeps_all ? t.body->saving() : t.body, steps, o.reverse);
  const Primitive& op = keeps_few ? detail::scan_checkpointed_primitive() : detail::scan_primitive();
  Tensors all = operands.apply(op, attrs);
  while (all.size() > init.size() + t.step.ys) all.pop_back();  // residuals, which only a gradient reads
  return split(all, init.size());
}

/// Reshapes a mask of rows [B] to [B, 1, ...], to be combined with a value of that rank.
Tensor with_rank(const Tensor& rows, int rank) {
  Shape s{rows.shape()[0]};
  for (int k = 1; k < rank; ++k) s.push_back(1);
  return reshape(rows, s);
}

void check_rows(const char* what, std::size_t i, const Shape& s, int axis, std::int64_t B) {
  if (s.rank() <= axis || s[axis] != B)
    throw ShapeError(std::string("scan: lengths for ") + std::to_string(B) + " rows do not fit " + what + " " +
                     std::to_string(i) + " " + s.str());
}

/// Runs a body with one more x, a mask of the rows that still have a step. The other rows keep their carries, and their
/// ys are 0.
ScanStep masked_step(const ScanBodyFunction& body, const Tensors& carry, const Tensors& x) {
  const Tensor& inside = x[x.size() - 1];
  Tensors own;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) own.push_back(x[i]);
  ScanStep step = body(carry, own);
  for (std::size_t k = 0; k < step.carry.size() && k < carry.size(); ++k)
    step.carry[k] = where(with_rank(inside, carry[k].rank()), step.carry[k], carry[k]);
  for (std::size_t k = 0; k < step.y.size(); ++k) {
    check_rows("y", k, step.y[k].shape(), 0, inside.shape()[0]);
    step.y[k] = where(with_rank(inside, step.y[k].rank()), step.y[k], zeros({}, step.y[k].dtype()));
  }
  return step;
}

Tensors with_mask(const Tensors& init, const Tensors& xs, std::int64_t steps, const Tensor& lengths) {
  if (lengths.rank() != 1 || lengths.dtype() != Dtype::i64)
    throw ShapeError("scan: lengths must be i64[B], got " + lengths.spec().str());
  const std::int64_t B = lengths.numel();
  for (std::size_t k = 0; k < init.size(); ++k) check_rows("carry", k, init[k].shape(), 0, B);
  for (std::size_t i = 0; i < xs.size(); ++i) check_rows("x", i, xs[i].shape(), 1, B);
  const Tensor in_range = checked(lengths, 0, steps, "scan: a length of");
  Tensors all;
  for (const Tensor& x : xs) all.push_back(ferrite::detail::padding_replaced(x, in_range));
  all.push_back(lt(reshape(arange(steps), {steps, 1}), reshape(in_range, {1, B})));
  return all;
}

void check_body(const ScanBodyFunction& body) {
  if (!body) throw ValueError("scan: the body is null");
}

}  // namespace

detail::TracedStep detail::trace_step(const ScanBodyFunction& f, std::span<const Spec> carries,
                                      std::span<const Spec> xs) {
  Tracer tracer(Tracer::Outside::captures);
  ScanStep step;
  {
    const NewFrame frame(tracer);
    Tensors carry, x;
    for (const Spec& s : carries) carry.push_back(tracer.input(s));
    for (const Spec& s : xs) x.push_back(tracer.input(s));
    step = f(carry, x);
    if (step.carry.size() != carries.size())
      throw ShapeError("scan: the body takes " + std::to_string(carries.size()) + " carries and gives " +
                       std::to_string(step.carry.size()));
  }
  Tensors ends = step.carry;
  for (const Tensor& y : step.y) ends.push_back(y);
  Graph g = tracer.finish(ends);
  return {std::move(g), tracer.captures(), tracer.flags(), step.y.size()};
}

struct Scan::State {
  static constexpr std::size_t kMost = 128;  ///< maximum number of combinations of types, the most recently used
  using List = std::list<std::shared_ptr<const Traced>>;

  ScanBodyFunction plain, masked;
  std::mutex mutex;
  List traced[2];  ///< without and with lengths, most recently used first

  /// Returns what was traced for such types. A body that refers to tensors is traced again, because they may differ
  /// now. No lock is held while the body runs.
  std::shared_ptr<const Traced> find(const ScanBodyFunction& body, bool with_lengths, const Tensors& init,
                                     const Tensors& xs) {
    List& list = traced[with_lengths];
    {
      const std::lock_guard lock(mutex);
      for (auto at = list.begin(); at != list.end(); ++at) {
        if (!(*at)->fits(init, xs)) continue;
        list.splice(list.begin(), list, at);
        return list.front();
      }
    }
    std::shared_ptr<const Traced> t = trace_body(body, init, xs);
    const auto is_tensor = [](const Tracer::Capture& c) { return !c.variable.defined(); };
    if (std::any_of(t->step.captures.begin(), t->step.captures.end(), is_tensor)) return t;
    const std::lock_guard lock(mutex);
    list.push_front(t);
    if (list.size() > kMost) list.pop_back();
    return t;
  }
};

Scan::Scan(ScanBodyFunction body) : state_(std::make_shared<State>()) {
  check_body(body);
  state_->masked = [body](const Tensors& carry, const Tensors& x) { return masked_step(body, carry, x); };
  state_->plain = std::move(body);
}

ScanResult Scan::operator()(const Tensors& init, const Tensors& xs, const ScanOptions& o) const {
  const std::int64_t steps = steps_of(xs, o);
  if (!o.lengths.defined()) return apply(*state_->find(state_->plain, false, init, xs), init, xs, steps, o);
  const Tensors all = with_mask(init, xs, steps, o.lengths);
  return apply(*state_->find(state_->masked, true, init, all), init, all, steps, o);
}

bool Scan::is_linear(const Tensors& init, const Tensors& xs) const {
  return state_->find(state_->plain, false, init, xs)->linear.has_value();
}
std::string Scan::report(const Tensors& init, const Tensors& xs) const {
  return report_of(*state_->find(state_->plain, false, init, xs));
}

ScanResult scan(const ScanBodyFunction& body, const Tensors& init, const Tensors& xs, const ScanOptions& o) {
  check_body(body);
  const std::int64_t steps = steps_of(xs, o);
  if (!o.lengths.defined()) return apply(*trace_body(body, init, xs), init, xs, steps, o);
  const Tensors all = with_mask(init, xs, steps, o.lengths);
  const auto masked = [&](const Tensors& carry, const Tensors& x) { return masked_step(body, carry, x); };
  return apply(*trace_body(masked, init, all), init, all, steps, o);
}

// ---- passes: unused results, single steps, scans that overlap ---------------------------------------------

namespace passes {
namespace {

using detail::ScanBody;
using detail::ScanSignature;

bool is_scan(const Graph::Node& n) { return n.op == &detail::scan_primitive(); }

detail::ScanAttrs constants_of(const Graph::Node& n) { return n.attrs.as<detail::ScanAttrs>(n.op->name); }

/// Rewrites the scans of a graph, node by node.
class Scans {
 public:
  explicit Scans(Graph& g) : g_(g), view_(g), to_(g.values.size()) {}

  void run() {
    if (std::none_of(g_.nodes.begin(), g_.nodes.end(), is_scan)) return;
    share(g_.nodes);
    detail::rewrite_nodes(g_, to_, [&](Graph::Node& n) {
      if (!n.op) return;  // another node computes it
      if (is_scan(n) && stands_for_itself(n)) return inline_step(n);
      if (is_scan(n)) drop_unused(n);
      g_.nodes.push_back(std::move(n));
    });
  }

 private:
  bool is_read(ValueId v) const { return view_.uses(v) > 0 || std::ranges::count(also_read_, v) > 0; }

  // ---- the same scan twice -------------------------------------------------------------------------------

  /// Replaces a scan by another one that computes all its results and more: the steps of a program, and those that its
  /// gradient asks for.
  void share(std::vector<Graph::Node>& nodes) {
    for (Graph::Node& a : nodes) {
      if (!a.op || !is_scan(a)) continue;
      for (Graph::Node& b : nodes) {
        if (!b.op || !is_scan(b) || &a == &b || !gives_more(b, a)) continue;
        for (std::size_t k = 0; k < a.out.size(); ++k) to_.replace(a.out[k], b.out[k]);
        for (std::size_t k = 0; k < a.out.size(); ++k)
          if (is_read(a.out[k])) also_read_.push_back(b.out[k]);
        if (&a < &b) {  // in the place of the first of the two
          a = std::move(b);
          b = {};
        } else {
          a = {};
        }
        break;
      }
    }
  }
  static bool gives_more(const Graph::Node& b, const Graph::Node& a) {
    const detail::ScanAttrs of_a = constants_of(a), of_b = constants_of(b);
    return of_a.steps != 1 && std::ranges::equal(a.in, b.in) &&
           ScanBody::of(b.attrs).base().get() == a.attrs.body.get() && of_a.steps == of_b.steps &&
           of_a.reverse == of_b.reverse;
  }

  // ---- a single step -------------------------------------------------------------------------------------

  /// Returns whether a scan is a single step without sums. Sums over steps are added in an order (docs/numerics.md,
  /// rule 6) that no other operation has.
  static bool stands_for_itself(const Graph::Node& n) {
    return constants_of(n).steps == 1 && ScanBody::of(n.attrs).signature().sums == 0;
  }

  ValueId reshaped(ValueId v, const Shape& shape, Scope scope) {
    return g_.add_node(*detail::ops::reshape, detail::ShapeAttrs{shape}, {v}, {shape, Dtype(g_.values[v].dtype)},
                       scope);
  }

  void inline_step(const Graph::Node& n) {
    const ScanBody& body = ScanBody::of(n.attrs);
    const ScanSignature& s = body.signature();
    std::vector<ValueId> in(n.in.begin(), n.in.end());
    for (std::size_t i = s.carries; i < s.carries + s.xs; ++i) in[i] = reshaped(in[i], body.input(i).shape, n.scope);
    const std::vector<ValueId> out = detail::splice(g_, body.graph(), in, n.scope);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const bool y = k >= s.carries + s.sums;
      to_.replace(n.out[k], y ? reshaped(out[k], g_.values[n.out[k]].shape, n.scope) : out[k]);
    }
  }

  // ---- unused results ------------------------------------------------------------------------------------

  /// Marks the inputs of a body that the marked outputs depend on; a carry that is read must also be computed.
  static std::vector<char> find_live(const ScanBody& body, std::vector<char>& outputs) {
    const Graph& b = body.graph();
    std::vector<char> live(b.values.size());
    for (bool more = true; more;) {
      more = false;
      for (std::size_t k = 0; k < outputs.size(); ++k)
        if (outputs[k]) live[b.outputs[k]] = true;
      detail::mark_needed(b, live);
      for (std::size_t k = 0; k < body.signature().carries; ++k) {
        if (outputs[k] || !live[b.inputs[k]]) continue;
        outputs[k] = true;
        more = true;
      }
    }
    std::vector<char> inputs;
    for (const ValueId v : b.inputs) inputs.push_back(live[v]);
    for (std::size_t k = 0; k < body.signature().carries; ++k) inputs[k] = outputs[k];
    return inputs;
  }

  void drop_unused(Graph::Node& n) {
    const ScanBody& body = ScanBody::of(n.attrs);
    const ScanSignature& s = body.signature();
    std::vector<char> outputs;
    for (const ValueId v : n.out) outputs.push_back(is_read(v));
    const bool read = std::any_of(outputs.begin(), outputs.end(), [](char c) { return c != 0; });
    if (!read && !detail::effects_of(body.graph()).must_run()) return;  // dead code
    if (!read) outputs[0] = true;                                       // a node needs a result
    const std::vector<char> inputs = find_live(body, outputs);
    const auto all = [](const std::vector<char>& list) {
      return std::all_of(list.begin(), list.end(), [](char c) { return c != 0; });
    };
    if (all(inputs) && all(outputs)) return;
    Graph b = body.graph();
    ScanSignature kept;
    for (std::size_t k = 0; k < s.carries; ++k) kept.carries += outputs[k] != 0;
    for (std::size_t i = s.carries; i < s.carries + s.xs; ++i) kept.xs += inputs[i] != 0;
    for (std::size_t k = s.carries; k < s.carries + s.sums; ++k) kept.sums += outputs[k] != 0;
    keep(b.outputs, outputs);
    remove_dead_code(b);
    keep(b.inputs, inputs);
    keep(n.in, inputs);
    keep(n.out, outputs);
    const detail::ScanAttrs constants = constants_of(n);
    n.attrs =
        ScanBody::attrs_of(std::make_shared<const ScanBody>(std::move(b), kept), constants.steps, constants.reverse);
  }
  template <class List>
  static void keep(List& list, const std::vector<char>& kept) {
    const List old = list;
    list.clear();
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (kept[i]) list.push_back(old[i]);
  }

  Graph& g_;
  detail::GraphView view_;
  std::vector<ValueId> also_read_;  ///< results of a scan that are read in place of those of a dropped one
  detail::Substitution to_;
};

}  // namespace

void simplify_scans(Graph& g) { Scans(g).run(); }

}  // namespace passes
}  // namespace ferrite
