/// Plans as they are called: arguments are checked, tensors bound to buffers, steps run, variables assigned; and
/// reports of plans.
#include "ferrite/compile/plan.h"

#include <algorithm>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/compile/plan/body.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- products with weights packed once for many steps -----------------------------------------------------

namespace detail {
namespace {

template <class T>
PackedMatrix pack(const Tensor& w, Tensor& room) {
  const std::int64_t K = w.shape()[0], N = w.shape()[1];
  if (!w.impl()->storage->rewritten) {
    (void)count_use(w);  // counted, so that new content drops this pack
    return {column_pack<T>(w), K, N};
  }
  room = Tensor::empty({{gate_pack_size<T>(K, 1, N)}, w.dtype()});
  pack_columns(w, Writer::data<T>(room));
  return {room.data<T>(), K, N};
}

template <class T>
void product(const Tensor& a, const PackedMatrix& w, const Tensor& out) {
  const TensorImpl& to = *out.impl();
  T* const c = reinterpret_cast<T*>(to.first);
  const GateMatrix<T> matrix = packed_gates(static_cast<const T*>(w.data), w.K, 1, w.N);
  products_in_use.of<T>().packed_product(matrix, to.shape[0], a.data<T>(), a.strides()[0], nullptr, c);
}

}  // namespace

bool can_pack(const Tensor& w) {
  return w.rank() == 2 && is_float(w.dtype()) && w.numel() > 0 && (w.strides()[1] == 1 || w.strides()[0] == 1);
}

PackedMatrix pack_matrix(const Tensor& w, Tensor& room) {
  return w.dtype() == Dtype::f32 ? pack<float>(w, room) : pack<double>(w, room);
}

void packed_product(const Tensor& a, const PackedMatrix& w, const Tensor& out) {
  if (a.dtype() == Dtype::f32) {
    product<float>(a, w, out);
  } else {
    product<double>(a, w, out);
  }
}

// ---- one call: its tensors bound to buffers, its steps run ------------------------------------------------

Workspace::Workspace(const PlanBody& plan)
    : plan_(plan), bases_(plan.ends.bases.count), addresses_(plan.ends.bases.count) {
  arena_ = Tensor::empty({{plan.arena_bytes + kLineBytes}, Dtype::boolean});
  arena_.impl()->storage->rewritten = true;  // rewritten in every run, so nothing in it may be packed
  put(0, address_of(arena_));
  for (std::size_t i = 0; i < plan.ends.constants.size(); ++i)
    put(plan.ends.bases.constants + i, address_of(plan.ends.constants[i]));
  arguments.resize(plan.ends.bases.constants - plan.ends.bases.arguments);
  results.resize(plan.ends.results.size());
  copies.resize(arguments.size());
  calls_.resize(plan.program.calls.size());
  packed_.resize(plan.program.calls.size());
  for (std::size_t c = 0; c < calls_.size(); ++c) {
    const PlannedCall& planned = plan.program.calls[c];
    Call& call = calls_[c];
    call.in.resize(planned.in.size());
    call.out.resize(planned.out.size());
    for (std::size_t i = 0; i < planned.in.size(); ++i) make(planned.in[i], call.in[i]);
    for (std::size_t i = 0; i < planned.out.size(); ++i) make(planned.out[i], call.out[i]);
    for (const Tensor& t : call.in) call.pointers.push_back(&t);
  }
}

/// Lets go of borrowed storage: the windows did not count their references.
Workspace::~Workspace() {
  for (TensorImpl* w : windows_) w->storage = nullptr;
}

void Workspace::make(const PlannedTensor& t, Tensor& tensor) {
  tensor = Tensor::abstract(t.spec);
  TensorImpl* impl = tensor.impl();
  impl->strides = t.strides;
  impl->contiguous = is_contiguous(t.spec.shape, t.strides);
  windows_.push_back(impl);
  if (const Address& address = addresses_[t.base]; address.storage) {
    impl->storage = address.storage;
    impl->first = address.first + t.offset;
  } else {
    moving_.push_back({impl, t.base, t.offset});
  }
}

/// Takes the arguments and the results of this call: fresh tensors, or variables that nothing else holds.
void Workspace::bind(bool updates) {
  for (std::size_t i = 0; i < arguments.size(); ++i) put(plan_.ends.bases.arguments + i, address_of(*arguments[i]));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::int64_t variable = updates ? plan_.updates[i] : -1;
    const bool in_place = variable >= 0 && owned_alone(*arguments[static_cast<std::size_t>(variable)]);
    results[i] = in_place ? *arguments[static_cast<std::size_t>(variable)]
                          : Tensor::empty(plan_.graph.values[plan_.ends.results[i]]);
    (void)Writer::raw(results[i]);  // a new content begins
    put(plan_.ends.bases.results + i, address_of(results[i]));
  }
}

/// Sets the windows to the present addresses of their buffers.
void Workspace::point() {
  for (const Moving& m : moving_) {
    m.impl->storage = addresses_[m.base].storage;
    m.impl->first = addresses_[m.base].first + m.offset;
  }
}

void Workspace::run(bool updates) {
  bind(updates);
  run_in_place();
}

void Workspace::run_in_place() {
  point();
  if (profiling()) [[unlikely]]
    return run_profiled();
  for (const PlannedStep& s : plan_.program.steps) run_step(s, [this](int product) { call(product); });
}

/// Runs one step; `product` runs a product in the step of a kernel.
template <class F>
[[gnu::always_inline]] inline void Workspace::run_step(const PlannedStep& s, const F& product) {
  if (s.kernel < 0) {
    call(s.call);
  } else if (s.block_rows) {
    run_products(s);
  } else {
    for (const PlannedProduct& p : s.products) product(p.call);
    plan_.program.kernels[static_cast<std::size_t>(s.kernel)].run(bases_.data());
  }
}

void Workspace::try_in_place() {
  point();
  for (const PlannedStep& s : plan_.program.steps) try {
      run_step(s, [this](int product) { call(product); });
    } catch (const Error&) {  // it refuses such values
    }
}

[[gnu::noinline]] void Workspace::run_profiled() {
  auto name = plan_.names.of(plan_.report).begin();
  for (const PlannedStep& s : plan_.program.steps) {
    const ProfileEvent event(name->kernel.text(), name->layers);
    run_step(s, [this](int product) { call_product(product); });
    ++name;
  }
}

/// Runs a product in the step of a kernel, which a profile shows separately.
void Workspace::call_product(int index) {
  const PlannedCall& planned = plan_.program.calls[static_cast<std::size_t>(index)];
  const ProfileEvent event(planned.op->name, [&] { return planned.scope; });
  call(index);
}

namespace {

/// Copies the result of a view without a kernel, where its reader cannot follow a window.
void copy_windows(const PlannedCall& planned, const Tensor& x, std::span<Tensor> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Layout layout;
    if (!planned.op->view(x, out[i].spec(), planned.attrs, i, layout)) throw_no_view(*planned.op, x);
    copy_to(Writer::raw(out[i]), x.view(out[i].shape(), layout.strides, layout.offset));
  }
}

}  // namespace

void Workspace::call(int index) {
  const PlannedCall& planned = plan_.program.calls[static_cast<std::size_t>(index)];
  Call& c = calls_[static_cast<std::size_t>(index)];
  if (const PackedMatrix& weights = packed_[static_cast<std::size_t>(index)])
    return packed_product(c.in[0], weights, c.out[0]);
  if (!planned.op->eval) return copy_windows(planned, c.in[0], c.out);
  in_layer(planned.scope, [&] { planned.op->eval({c.pointers.data(), c.pointers.size()}, c.out, planned.attrs); });
}

/// Runs some rows of the products, then the kernel over them while they are in the caches; repeats for all rows.
void Workspace::run_products(const PlannedStep& s) {
  const Kernel& kernel = plan_.program.kernels[static_cast<std::size_t>(s.kernel)];
  for (std::int64_t row = 0, tile = 0; row < s.rows; row += s.block_rows, tile += s.block_tiles) {
    for (const PlannedProduct& p : s.products) {
      take_rows(p, row, std::min(s.block_rows, s.rows - row));
      call_product(p.call);
      bases_[p.base] = bases_[0] + p.offset - row * p.row_bytes;
      take_rows(p, -row, s.block_rows);
    }
    kernel.run(bases_.data(), tile, std::min(tile + s.block_tiles, kernel.tiling.tiles()));
  }
}

/// Moves the window on a product's first operand to the row `first`, and gives it and the result `rows` rows.
void Workspace::take_rows(const PlannedProduct& p, std::int64_t first, std::int64_t rows) {
  Call& c = calls_[static_cast<std::size_t>(p.call)];
  TensorImpl* from = c.in[0].impl();
  from->first += first * from->strides[0] * size_of(from->dtype);
  from->shape[0] = rows;
  c.out[0].impl()->shape[0] = rows;
}

std::unique_ptr<Workspace> WorkspacePool::take(const PlanBody& plan) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Workspace> w = std::move(idle_.back());
      idle_.pop_back();
      return w;
    }
    idle_.reserve(++made_);
  }
  return std::make_unique<Workspace>(plan);
}

void WorkspacePool::give_back(std::unique_ptr<Workspace> w) noexcept {
  for (Tensor& t : w->results) t = Tensor();
  for (Tensor& t : w->copies)
    if (t.defined()) t = Tensor();
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(w));  // there was room when it was borrowed
}

// ---- reports of plans -------------------------------------------------------------------------------------

namespace {

/// Writes the report of a plan.
class Reporter {
 public:
  Reporter(const Graph& g, const Fused& fused) : g_(g), fused_(fused) {}

  PlanReport run(const PlanEnds& ends) {
    PlanReport& r = report_;
    r.operations = g_.nodes.size();
    r.refusals = fused_.refusals;
    for (const Task& t : fused_.tasks) r.steps.push_back(t.group >= 0 ? describe_group(t) : describe_call(t));
    for (const PlanReport::Step& s : r.steps) r.bytes_moved += s.bytes;
    for (const ValueId v : ends.results) r.result_bytes += bytes_of(v);
    for (const Tensor& c : ends.constants) r.constant_bytes += (c.contiguous() ? c.numel() : 1) * size_of(c.dtype());
    return std::move(report_);
  }

 private:
  std::int64_t bytes_of(ValueId v) const { return g_.values[v].shape.numel() * size_of(g_.values[v].dtype); }

  PlanReport::Step describe_group(const Task& t) {
    const Group& group = fused_.groups[static_cast<std::size_t>(t.group)];
    PlanReport::Step s;
    s.kernel = true;
    ++report_.kernels;
    std::vector<std::pair<std::size_t, std::string_view>> names;
    std::vector<std::pair<std::size_t, Scope>> scopes;
    std::vector<ValueId> read;
    const std::vector<char> live = live_expressions(group);
    for (std::size_t i = 0; i < group.expressions.size(); ++i) {
      if (!live[i]) continue;
      const Expression& e = group.expressions[i];
      names.emplace_back(e.order, e.node ? e.node->op->name : "copy");
      if (e.node) scopes.emplace_back(e.order, e.node->scope);
      s.operations += e.node ? 1 : 0;
      for (const GroupOperand& o : e.operands)
        if (o.value != kNoValue && o.expression < 0) read.push_back(o.value);
    }
    for (const std::size_t node : t.products) name_layer(s, g_.nodes[node].scope);
    std::sort(scopes.begin(), scopes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [order, scope] : scopes) name_layer(s, scope);
    std::sort(names.begin(), names.end());
    for (const auto& [order, name] : names) s.what += (s.what.empty() ? "" : " ") + std::string(name);
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (const ValueId v : read) s.bytes += bytes_of(v);
    for (const std::size_t node : t.products) add_product(s, node);
    for (const GroupOutput& o : group.outputs) {
      const Expression& e = group.expressions[static_cast<std::size_t>(o.expression)];
      s.bytes += e.map.shape.numel() * size_of(e.dtype);
    }
    return s;
  }

  static void name_layer(PlanReport::Step& s, Scope scope) {
    if (!scope.empty() && std::find(s.layers.begin(), s.layers.end(), scope) == s.layers.end())
      s.layers.push_back(scope);
  }

  /// Adds a product that runs with a kernel: its result never leaves the caches.
  void add_product(PlanReport::Step& s, std::size_t node) {
    const Graph::Node& n = g_.nodes[node];
    s.what = std::string(n.op->name) + " " + s.what;
    s.operations += 1;
    ++report_.products;
    ++report_.epilogues;
    for (const ValueId v : n.in) s.bytes += bytes_of(v);
    s.bytes -= bytes_of(n.out[0]);
  }

  PlanReport::Step describe_call(const Task& t) {
    const Graph::Node& n = g_.nodes[t.position];
    PlanReport::Step s;
    s.what = n.op->name;
    s.operations = 1;
    name_layer(s, n.scope);
    ++(is_product(*n.op) ? report_.products : report_.others);
    for (const ValueId v : n.in) s.bytes += bytes_of(v);
    for (const ValueId v : n.out) s.bytes += bytes_of(v);
    return s;
  }

  const Graph& g_;
  const Fused& fused_;
  PlanReport report_;
};

}  // namespace

const std::vector<StepNames::Name>& StepNames::of(const PlanReport& report) const {
  std::call_once(made_, [&] {
    for (const PlanReport::Step& s : report.steps) {
      std::string layers;
      for (const Scope layer : s.layers) layers += (layers.empty() ? "" : ", ") + std::string(layer.path());
      names_.push_back({Label::of(s.what), Scope::of(layers)});
    }
  });
  return names_;
}

PlanReport describe_plan(const Graph& g, const Fused& fused, const PlanEnds& ends) {
  return Reporter(g, fused).run(ends);
}

}  // namespace detail

// ---- calls: arguments checked, variables assigned ---------------------------------------------------------

Plan::Plan(Graph graph, const PlanOptions& options) {
  graph.validate();
  body_ = detail::make_plan(std::move(graph), options);
}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

const PlanReport& Plan::report() const& { return body_->report; }
const Graph& Plan::graph() const& { return body_->graph; }

namespace {

[[noreturn]] void throw_argument(std::size_t i, const Spec& wanted, const Spec& got) {
  const std::string text = "plan: argument " + std::to_string(i) + " must be " + wanted.str() + ", got " + got.str();
  if (wanted.dtype != got.dtype) throw DtypeError(text);
  throw ShapeError(text);
}

/// Sets the i-th argument of a call; one that is not row-major is copied for the call.
void set_argument(detail::Workspace& w, std::size_t i, const Spec& spec, const Tensor& t) {
  if (t.shape() != spec.shape || t.dtype() != spec.dtype) throw_argument(i, spec, t.spec());
  if (t.is_abstract()) throw TraceError("plan: argument " + std::to_string(i) + " is a traced tensor");
  w.arguments[i] = &t;
  if (t.contiguous()) return;
  w.copies[i] = contiguous(t);
  w.arguments[i] = &w.copies[i];
}

void check_count(std::size_t wanted, std::size_t got) {
  if (wanted != got)
    throw ValueError("plan: " + std::to_string(wanted) + " arguments are needed, got " + std::to_string(got));
}

}  // namespace

Tensors Plan::evaluate(std::span<const Tensor* const> arguments) const {
  const Graph& g = graph();
  check_count(g.inputs.size() + g.reads.size(), arguments.size());
  const NewFrame frame;
  const detail::Borrowed w(*body_);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    set_argument(*w, i, g.values[i < g.inputs.size() ? g.inputs[i] : g.reads[i - g.inputs.size()].value],
                 *arguments[i]);
  w->run(false);
  Tensors ends;
  for (const std::size_t i : body_->ends.of) ends.push_back(w->results[i]);
  return ends;
}

Tensors Plan::run(std::span<const Tensor> inputs) const {
  return run(std::span<const Tensor* const>(OperandList(inputs)));
}

Tensors Plan::run(std::span<const Tensor* const> inputs) const {
  const Graph& g = graph();
  check_count(g.inputs.size(), inputs.size());
  const NewFrame frame;
  const detail::Borrowed w(*body_);
  for (std::size_t i = 0; i < inputs.size(); ++i) set_argument(*w, i, g.values[g.inputs[i]], *inputs[i]);
  for (std::size_t i = 0; i < g.reads.size(); ++i)
    set_argument(*w, inputs.size() + i, g.values[g.reads[i].value], g.variables[g.reads[i].variable].peek());
  w->run(true);
  for (std::size_t i = 0; i < g.writes.size(); ++i)
    g.variables[g.writes[i].variable].assign(w->results[body_->ends.of[g.outputs.size() + i]]);
  Tensors outputs;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) outputs.push_back(w->results[body_->ends.of[i]]);
  return outputs;
}

std::string PlanReport::str(bool layers) const {
  std::string s = std::to_string(operations) + " operations in " + std::to_string(steps.size()) +
                  " steps: " + std::to_string(kernels) + " fused kernels, " + std::to_string(products) + " products (" +
                  std::to_string(epilogues) + " in the step of a kernel), " + std::to_string(others) + " others; " +
                  std::to_string(bytes_moved) + " bytes moved; intermediates " + std::to_string(arena_bytes) +
                  " bytes (at least " + std::to_string(bound_bytes) + "), results " + std::to_string(result_bytes) +
                  ", constants " + std::to_string(constant_bytes) + "\n";
  for (const Step& step : steps) {
    s += std::string("  ") + (step.kernel ? "kernel: " : "alone:  ") + step.what + " (" + std::to_string(step.bytes) +
         " bytes)";
    for (std::size_t i = 0; layers && i < step.layers.size(); ++i)
      s += (i ? ", " : " in ") + std::string(step.layers[i].path());
    s += "\n";
  }
  for (const std::string& r : refusals) s += "  not fused: " + r + "\n";
  return s;
}

}  // namespace ferrite
