/// Variables: reading, assigning, drawing and tying; other values for the length of a call.
#include "ferrite/tensor/variable.h"

#include <atomic>

#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/with_values.h"

namespace ferrite {
namespace {

std::atomic<std::uint64_t> last_number{0};

/// Throws DtypeError for a parameter of a storage type: optimisers compute with parameters. Buffers and states may have
/// one.
void check_kind(const std::string& name, const Spec& spec, VariableKind kind) {
  if (kind == VariableKind::parameter && is_storage_only(spec.dtype))
    throw DtypeError("parameter '" + name + "': " + std::string(name_of(spec.dtype)) +
                     " is only stored, nothing is computed in it: " + spec.str() + "; cast it first");
}

}  // namespace

std::uint64_t Variable::made() { return last_number.load(std::memory_order_relaxed); }
std::uint64_t Variable::next_number() { return last_number.fetch_add(1, std::memory_order_relaxed) + 1; }

Variable::Variable(std::string name, Tensor value, VariableKind kind) {
  if (!value.defined()) throw Error("variable '" + name + "': the first value is undefined");
  check_kind(name, value.spec(), kind);
  body_ = std::make_shared<Body>(Body{std::move(name), value.unmarked(), kind});
}

Variable::Variable(std::string name, const Spec& spec, Draw draw, VariableKind kind) {
  if (!draw) throw ValueError("variable '" + name + "': the function that draws its first value is null");
  check_kind(name, spec, kind);
  body_ = std::make_shared<Body>(Body{std::move(name), Tensor(), kind, false, spec, std::move(draw)});
}

Tensor Variable::value() const {
  const Body& b = body();
  const detail::Frame& frame = detail::frame();
  Tensor v = b.value;
  if (!v.defined()) [[unlikely]] {
    if (!frame.tracing) b.throw_undrawn();
    v = Tensor::abstract(b.declared);
  }
  for (Recorder* r : frame.recorders) r->read(*this, v);
  return v;
}

const Tensor& Variable::peek() const& {
  const Body& b = body();
  if (detail::frame().tracing)
    throw TraceError("peek: '" + b.name + "' would be read past the program that is traced; use value()");
  if (!b.value.defined()) [[unlikely]]
    b.throw_undrawn();
  return b.value;
}

void Variable::assign(const Tensor& value) const {
  Body& b = body();
  if (value.dtype() != b.dtype())
    throw DtypeError("assign: '" + b.name + "' holds " + b.spec().str() + ", got " + value.spec().str());
  if (value.shape() != b.shape())
    throw ShapeError("assign: '" + b.name + "' has shape " + b.shape().str() + ", got " + value.shape().str());
  bool kept = false;
  for (Recorder* r : detail::frame().recorders) kept |= r->write(*this, value);
  if (kept) return;
  if (value.is_abstract()) throw TraceError("assign: '" + b.name + "' was given a traced value outside its trace");
  b.value = value.unmarked();
}

void Variable::draw(std::string_view full_name, std::uint64_t seed) const {
  Body& b = body();
  if (b.named) return;
  if (!b.value.defined()) {
    const NewFrame frame;
    const Tensor first = b.draw(full_name, seed);
    if (first.spec() != b.declared)
      throw ShapeError("draw: '" + std::string(full_name) + "' is " + b.declared.str() + ", its first value " +
                       first.spec().str());
    b.value = first.unmarked();
  }
  b.name = full_name;
  b.named = true;
  b.draw = nullptr;
}

void Variable::rename(std::string_view name) const {
  Body& b = body();
  if (!b.named) b.name = name;
}

void Variable::Body::throw_undrawn() const {
  throw Error(
      "'" + name +
      "' has no value yet: its layer was made without a seed; give the layer one (nn::Init{.seed = 0}), adopt it "
      "in a module that has one, or load or assign the value");
}

Variable& Variable::operator=(const Variable& o) {
  if (&o != this) *this = Variable(o);
  return *this;
}

/// Ties, or moves the handle. The mark moves along: when a module is moved, its handles stay registered.
Variable& Variable::operator=(Variable&& o) {
  if (ties_to(o)) {
    tie(o);
  } else {
    body_ = std::move(o.body_);
    registered_ = o.registered_;
  }
  return *this;
}

void Variable::tie(const Variable& other) const {
  Body& mine = body();
  const std::shared_ptr<Body>& theirs = other.resolved();
  if (!theirs) throw Error("tie: '" + mine.name + "' was given an empty handle");
  if (&mine == theirs.get()) return;
  const auto both = [&](const std::string& what) {
    return "tie: '" + mine.name + "' and '" + theirs->name + "'" + what;
  };
  if (mine.kind != theirs->kind) throw ValueError(both(" are variables of different kinds"));
  if (mine.dtype() != theirs->dtype())
    throw DtypeError(both(" hold " + mine.spec().str() + " and " + theirs->spec().str()));
  if (mine.shape() != theirs->shape())
    throw ShapeError(both(" have shapes " + mine.shape().str() + " and " + theirs->shape().str()));
  mine.value = Tensor();
  mine.draw = nullptr;
  mine.tied_to = theirs;
}

Parameter& Parameter::operator=(const Parameter& o) {
  if (&o != this) *this = Parameter(o);
  return *this;
}

Parameter& Parameter::operator=(Parameter&& o) {
  if (ties_to(o)) {
    tie(o);
  } else {
    Variable::operator=(std::move(o));
    layout_ = o.layout_;
  }
  return *this;
}

void Parameter::tie(const Parameter& other) const {
  if (defined() && other.defined() && layout() != other.layout())
    throw ValueError("tie: of '" + name() + "' and '" + other.name() + "' one is transposed in files");
  Variable::tie(other);
}

void Variable::throw_empty() { throw Error("variable: empty handle"); }

// ---- other values for the length of a call -----------------------------------------------------------------

namespace detail {

OtherValues::OtherValues(std::vector<ValueOf> values) : values_(std::move(values)) {
  for (const auto& [variable, value] : values_) {
    const Spec wanted = variable.spec();
    const std::string where = "with_values: '" + variable.name() + "' is " + wanted.str();
    if (!value.defined()) throw Error(where + ", its other value is undefined");
    if (value.dtype() != wanted.dtype) throw DtypeError(where + ", its other value " + value.spec().str());
    if (value.shape() != wanted.shape) throw ShapeError(where + ", its other value " + value.spec().str());
  }
}

void OtherValues::read(const Variable& variable, Tensor& value) {
  for (const ValueOf& v : values_)
    if (v.variable == variable) value = v.value;
}

bool OtherValues::write(const Variable& variable, const Tensor&) {
  for (const ValueOf& v : values_)
    if (v.variable == variable)
      throw ValueError("with_values: '" + variable.name() +
                       "' has another value for the length of a call, which assigns to it; leave it out, or give the "
                       "call a copy of the model");
  return false;
}

}  // namespace detail
}  // namespace ferrite
