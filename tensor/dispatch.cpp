/// The engine: the code that every application of an operation runs through.
#include "ferrite/tensor/anomaly.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {
namespace {

[[noreturn]] void throw_escaped(const Primitive& op, Inputs in) {
  std::size_t at = 0;
  while (!in[at].is_abstract()) ++at;
  throw TraceError(std::string(op.name) + ": a traced tensor " + in[at].spec().str() + " was used outside its trace");
}

Spec type_of(const Tensor& x) { return x.spec(); }
Spec type_of(const Spec& s) { return s; }

/// Throws the error for a storage type in a list of operands or of results.
template <class List>
[[noreturn]] void throw_storage_only(const Primitive& op, const List& list) {
  for (const auto& x : list) {
    const Spec s = type_of(x);
    if (!is_storage_only(s.dtype)) continue;
    const bool real = kind_of(s.dtype) == DtypeKind::floating;
    detail::throw_dtype(op.name, std::string(name_of(s.dtype)) + " is only stored, nothing is computed in it: " +
                                     s.str() + "; cast it to " + (real ? "f32" : "i32") + " first, and results back");
  }
  throw Error(std::string(op.name) + ": no type that is only stored");
}

/// The facts about the operands of an application, collected in one pass.
struct Operands {
  unsigned dtypes = 0;  ///< their values joined: storage types have their own bit
  bool abstract = false;
};

/// Checks the operands of an application: a few instructions for each.
[[gnu::always_inline]] inline Operands checked_operands(const Primitive& op, Inputs in) {
  Operands seen;
  for (const Tensor& x : in) {
    seen.dtypes |= static_cast<unsigned>(x.dtype());
    seen.abstract |= x.is_abstract();
  }
  if ((seen.dtypes & detail::kStorageOnlyBit) != 0 && !op.takes_storage_types) [[unlikely]]
    throw_storage_only(op, in);
  return seen;
}

void check_result(const Primitive& op, const Spec& s) {
  if (is_storage_only(s.dtype) && !op.takes_storage_types) [[unlikely]]
    throw_storage_only(op, Specs{s});
}

/// Makes a tensor of a result's type by make(spec). If it is too large, the error names the operation.
template <class Make>
Tensor make_result(const Primitive& op, const Spec& spec, Make make) {
  check_result(op, spec);
  try {
    return make(spec);
  } catch (const ShapeError&) {
    detail::throw_shape(op.name, "too large: " + spec.str());
  }
}

/// Makes a view of x; a view without elements begins at offset 0.
Tensor make_window(const Tensor& x, const Spec& spec, const detail::Layout& layout) {
  return x.view(spec.shape, layout.strides, spec.shape.numel() == 0 ? 0 : layout.offset);
}

/// Makes views where they exist; returns false where the kernel must do the work.
bool compute_views(const Primitive& op, const Tensor& x, const Specs& specs, const Attrs& attrs, Tensors& out) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    detail::Layout layout;
    if (!op.view(x, specs[i], attrs, i, layout)) return false;
    out.push_back(make_result(op, specs[i], [&](const Spec& s) { return make_window(x, s, layout); }));
  }
  return true;
}

/// Runs the kernel as an event of a profile and checks its results. In a separate function, so that it costs nothing
/// while no one is watching.
[[gnu::noinline]] void run_watched(const Primitive& op, Inputs in, Tensors& out, const Attrs& attrs) {
  {
    const detail::ProfileEvent event(op.name, detail::frame().scope);
    if (op.is_pointwise()) {
      detail::eval_pointwise(op, in, out[0], attrs);
    } else {
      op.eval(in, {out.data(), out.size()}, attrs);
    }
  }
  detail::check_for_anomalies(op, in, {out.data(), out.size()}, attrs);
}

Tensors compute(const Primitive& op, Inputs in, const Specs& specs, const Attrs& attrs) {
  Tensors out;
  if (op.view) {
    if (compute_views(op, in[0], specs, attrs, out)) return out;
    out.clear();
    if (!op.eval) detail::throw_no_view(op, in[0]);
  }
  out.reserve(specs.size());
  for (const Spec& s : specs) out.push_back(make_result(op, s, Tensor::empty));
  if (detail::profiling()) [[unlikely]] {
    run_watched(op, in, out, attrs);
    return out;
  }
  if (op.is_pointwise()) {
    detail::eval_pointwise(op, in, out[0], attrs);
  } else {
    op.eval(in, {out.data(), out.size()}, attrs);
  }
  return out;
}

Tensors abstract(const Primitive& op, const Specs& specs) {
  Tensors out;
  for (const Spec& s : specs) out.push_back(make_result(op, s, Tensor::abstract));
  return out;
}

}  // namespace

Specs Primitive::types(Inputs in, const Attrs& attrs) const {
  checked_operands(*this, in);
  Specs specs = infer(*this, in, attrs);
  for (const Spec& s : specs) check_result(*this, s);
  return specs;
}

Tensors Primitive::apply(Inputs in, const Attrs& attrs) const {
  const Operands seen = checked_operands(*this, in);  // 1. check: the only place that rejects types
  const Specs specs = infer(*this, in, attrs);        //    and shapes
  const detail::Frame& frame = detail::frame();
  if (seen.abstract && !frame.tracing) [[unlikely]]
    throw_escaped(*this, in);
  Tensors out = frame.tracing ? abstract(*this, specs) : compute(*this, in, specs, attrs);  // 2. compute
  if (!frame.recorders.empty())
    for (Recorder* r : frame.recorders) r->record(*this, attrs, in, {out.data(), out.size()});  // 3. notify
  return out;
}

Cost cost_of(const Primitive& op, std::span<const Spec> in, std::span<const Spec> out, const Attrs& attrs) {
  Cost cost;
  if (op.multiply_adds) cost.multiply_adds = op.multiply_adds(in, out, attrs);
  if (op.view) return cost;
  for (const std::span<const Spec> side : {in, out})
    for (const Spec& s : side) cost.bytes += s.shape.numel() * size_of(s.dtype);
  return cost;
}

const Tensor& Applied::undefined() {
  static const Tensor none;
  return none;
}

Tensor Vjp::grad_or_zeros(std::size_t i) const {
  return grads_[i].defined() ? grads_[i] : zeros(out_spec(i).shape, gradient_dtype(out_spec(i).dtype));
}

Tensor Jvp::tangent_or_zeros(std::size_t i) const {
  return tangents_[i].defined() ? tangents_[i] : zeros(in_spec(i).shape, gradient_dtype(in_spec(i).dtype));
}

namespace detail {

void check_literal(std::string_view where, Scalar literal, Dtype dtype) {
  if (literal.is_floating() && kind_of(dtype) != DtypeKind::floating)
    throw_dtype(where, "float literal " + literal.str() + " with a tensor of " + std::string(name_of(dtype)) +
                           "; cast the tensor to a float first");
  if (kind_of(dtype) != DtypeKind::integer) return;
  const std::int64_t bits = 8 * size_of(dtype), most = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  if (literal.integer() > most || literal.integer() < -most - 1)
    throw ValueError(std::string(where) + ": " + std::string(name_of(dtype)) + " cannot hold the literal " +
                     literal.str() + "; cast the tensor to i64 first");
}
void throw_no_view(const Primitive& op, const Tensor& x) {
  throw Error(std::string(op.name) + ": no view of " + x.spec().str() + " with these strides, and no copy");
}
void throw_shape(std::string_view where, const std::string& what) {
  throw ShapeError(std::string(where) + ": " + what);
}
void throw_dtype(std::string_view where, const std::string& what) {
  throw DtypeError(std::string(where) + ": " + what);
}
void throw_axis(std::string_view where, std::int64_t axis, int rank) {
  throw_shape(where, "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
}

}  // namespace detail
}  // namespace ferrite
