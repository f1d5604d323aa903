/// The tracer: how operations, variables and tensors from outside are written down.
#include "ferrite/compile/tracer.h"

#include "ferrite/tensor/operations.h"

namespace ferrite {

Tensor Tracer::input(const Spec& spec) {
  const Tensor t = Tensor::abstract(spec);
  graph_.inputs.push_back(define(t));
  return t;
}

ValueId Tracer::define(const Tensor& t) {
  const ValueId v = graph_.add_value(t.spec());
  know(t, {v});
  return v;
}

void Tracer::know(const Tensor& t, const Known& what) {
  known_[t.identity()] = what;
  alive_.push_back(t.unmarked());
}

/// Returns the number of a value as it is seen here: a value that is not part of a gradient is detached where it leaves
/// its frame.
ValueId Tracer::number_of(const Tensor& t) {
  const auto at = known_.find(t.identity());
  if (at == known_.end()) return from_outside(t);
  Known& k = at->second;
  if (!k.cut || detail::frame().cut) return k.value;
  if (!k.detached) {
    Graph::Node n;
    n.op = detail::ops::detach;
    n.scope = detail::frame().scope;
    n.in.push_back(k.value);
    n.out.push_back(*(k.detached = graph_.add_value(t.spec())));
    graph_.nodes.push_back(std::move(n));
  }
  return *k.detached;
}

ValueId Tracer::from_outside(const Tensor& t) {
  if (outside_ == Outside::captures) {
    // A tensor that is both a variable of a tape and known without one is captured twice: gradients reach the former
    // alone.
    const auto [at, fresh] = captured_.try_emplace({t.identity(), t.tape_id(), t.tape_slot()});
    if (!fresh) return at->second;
    alive_.push_back(t.unmarked());
    captures_.push_back({at->second = graph_.add_value(t.spec()), t});
    return at->second;
  }
  for (const detail::Frame* f = detail::frame().outer; f; f = f->outer)
    for (const Recorder* r : f->recorders)
      if (r->holds(t))
        throw TraceError("trace: a captured tensor " + t.spec().str() +
                         " is recorded on a tape, and as a constant it would have no gradient; make it an argument, or "
                         "detach it outside");
  if (t.is_abstract()) throw TraceError("trace: a traced tensor " + t.spec().str() + " was used outside its trace");
  const ValueId v = define(t);
  graph_.constants.push_back({v, t.unmarked()});
  return v;
}

void Tracer::record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) {
  Graph::Node n;
  n.op = &op;
  n.attrs = attrs;
  n.scope = detail::frame().scope;
  for (const Tensor& x : in) n.in.push_back(number_of(x));
  for (const Tensor& y : out) {
    n.out.push_back(graph_.add_value(y.spec()));
    know(y, {n.out.back(), detail::frame().cut});
  }
  graph_.nodes.push_back(std::move(n));
}

Tracer::VariableState& Tracer::state_of(const Variable& variable) {
  const auto [at, fresh] = variables_.try_emplace(variable.identity());
  if (fresh) {
    if (variable.number() > began_)
      throw TraceError("trace: the variable '" + variable.name() +
                       "' was made inside the traced function, where it would live on from call to call; make it "
                       "outside");
    at->second.index = static_cast<std::uint32_t>(graph_.variables.size());
    graph_.variables.push_back(variable);
  }
  return at->second;
}

void Tracer::read(const Variable& variable, Tensor& value) {
  VariableState& s = state_of(variable);
  if (!s.value.defined()) {
    s.value = Tensor::abstract(value.spec());
    const ValueId v = define(s.value);
    if (outside_ == Outside::captures) {
      captures_.push_back({v, {}, variable});
    } else {
      graph_.reads.push_back({s.index, v});
    }
  }
  if (!s.written && !detail::frame().cut) {
    value = s.value;
    return;
  }
  if (!s.constant.defined()) {
    s.constant = Tensor::abstract(s.value.spec());
    know(s.constant, {known_.at(s.value.identity()).value, true});
  }
  value = s.constant;
}

bool Tracer::write(const Variable& variable, const Tensor& value) {
  if (outside_ == Outside::captures)
    throw TraceError("scan: the body writes the variable '" + variable.name() + "'; make it a carry");
  VariableState& s = state_of(variable);
  (void)number_of(value);
  s.value = value.unmarked();
  s.constant = Tensor();
  s.written = true;
  return true;
}

void Tracer::flag(const std::shared_ptr<const std::atomic<bool>>& flag, bool value) {
  for (const TracedFlag& f : flags_)
    if (f.flag == flag) return;
  flags_.push_back({flag, value});
}

Graph Tracer::finish(std::span<const Tensor> outputs) {
  InlineVector<ValueId, 8> ends;
  for (const Tensor& y : outputs) {
    if (!y.defined()) throw TraceError("trace: a result of the traced function is undefined");
    ends.push_back(number_of(y));  // a result that no operation was applied to becomes known here
  }
  Graph g = graph_;
  g.outputs.assign(ends.begin(), ends.end());
  if (outside_ == Outside::captures) {
    for (const Capture& c : captures_) g.inputs.push_back(c.value);
    g.variables.clear();
    return g;
  }
  for (const Variable& c : g.variables) {
    const VariableState& s = variables_.at(c.identity());
    if (s.written) g.writes.push_back({s.index, known_.at(s.value.identity()).value});
  }
  return g;
}

Graph trace(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
            Tracer::Composites composites) {
  if (!f) throw ValueError("trace: the function is null");
  Tracer tracer(Tracer::Outside::constants, composites);
  const NewFrame frame(tracer);
  Tensors in;
  for (const Spec& s : inputs) in.push_back(tracer.input(s));
  return tracer.finish(f(in));
}

}  // namespace ferrite
