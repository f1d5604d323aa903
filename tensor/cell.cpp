#include "ferrite/tensor/cell.h"

#include "ferrite/tensor/recorder.h"

namespace ferrite {

Cell::Cell(std::string name, Tensor value, CellKind kind) {
  if (!value.defined()) throw Error("cell '" + name + "': the first value is undefined");
  body_ = std::make_shared<Body>(Body{std::move(name), value.unmarked(), kind});
}

Tensor Cell::value() const {
  Tensor v = body().value;
  for (Recorder* r : detail::frame().recorders) r->read(*this, v);
  return v;
}

const Tensor& Cell::peek() const& {
  if (detail::frame().tracing)
    throw TraceError("peek: '" + body().name + "' would be read past the program that is traced; use value()");
  return body().value;
}

void Cell::assign(const Tensor& value) const {
  Body& b = body();
  if (value.dtype() != b.value.dtype())
    throw DtypeError("assign: '" + b.name + "' holds " + b.value.spec().str() + ", got " + value.spec().str());
  if (value.shape() != b.value.shape())
    throw ShapeError("assign: '" + b.name + "' has shape " + b.value.shape().str() + ", got " + value.shape().str());
  bool kept = false;
  for (Recorder* r : detail::frame().recorders) kept |= r->write(*this, value);
  if (kept) return;
  if (value.is_abstract()) throw TraceError("assign: '" + b.name + "' was given a traced value outside its trace");
  b.value = value.unmarked();
}

Cell& Cell::operator=(const Cell& o) {
  if (&o != this) *this = Cell(o);
  return *this;
}

/// From one registered handle to another, a module is moved.
Cell& Cell::operator=(Cell&& o) {
  if (ties_to(o)) {
    tie(o);
  } else {
    body_ = std::move(o.body_);
    registered_ = o.registered_;
  }
  return *this;
}

void Cell::tie(const Cell& other) const {
  Body& mine = body();
  const std::shared_ptr<Body>& theirs = other.resolved();
  if (!theirs) throw Error("tie: '" + mine.name + "' was given an empty handle");
  if (&mine == theirs.get()) return;
  const auto both = [&](const std::string& what) {
    return "tie: '" + mine.name + "' and '" + theirs->name + "'" + what;
  };
  if (mine.kind != theirs->kind) throw ValueError(both(" are cells of different kinds"));
  if (mine.value.dtype() != theirs->value.dtype())
    throw DtypeError(both(" hold " + mine.value.spec().str() + " and " + theirs->value.spec().str()));
  if (mine.value.shape() != theirs->value.shape())
    throw ShapeError(both(" have shapes " + mine.value.shape().str() + " and " + theirs->value.shape().str()));
  mine.value = Tensor();
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
    Cell::operator=(std::move(o));
    layout_ = o.layout_;
  }
  return *this;
}

void Parameter::tie(const Parameter& other) const {
  if (defined() && other.defined() && layout() != other.layout())
    throw ValueError("tie: of '" + name() + "' and '" + other.name() + "' one is transposed in files");
  Cell::tie(other);
}

void Cell::throw_empty() { throw Error("cell: empty handle"); }

}  // namespace ferrite
