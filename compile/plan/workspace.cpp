/// One call of a plan: its tensors bound to buffers, its steps run.
#include <algorithm>

#include "ferrite/compile/plan/body.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {
Workspace::Workspace(const PlanBody& plan)
    : plan_(plan), bases_(plan.ends.bases.count), addresses_(plan.ends.bases.count) {
  arena_ = Tensor::empty({{plan.arena_bytes + kLineBytes}, Dtype::boolean});
  arena_.impl()->storage->rewritten = true;  // in every run: nothing that stands there may be packed
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

/// The windows borrow storage without counting: they let go of it before they end.
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

/// Takes the arguments and the results of this call: fresh ones, or variables that nobody else holds.
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

/// Points the windows at what they are windows of.
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

/// `product` runs one in the step of a kernel.
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

/// A product in the step of a kernel: a profile sees it apart from the kernel.
void Workspace::call_product(int index) {
  const PlannedCall& planned = plan_.program.calls[static_cast<std::size_t>(index)];
  const ProfileEvent event(planned.op->name, [&] { return planned.scope; });
  call(index);
}

namespace {

/// What a view without a kernel of its own shows, copied: where what reads it follows no window.
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

/// Some rows of the products, then the kernel over them while they are in the caches.
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

/// Moves the window on a product's first operand by some rows, and makes it and the result so many.
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

}  // namespace ferrite::detail
