#include "ferrite/tensor/cell.h"

#include "ferrite/tensor/recorder.h"

namespace ferrite {

Cell::Cell(std::string name, Tensor value, CellKind kind) {
  if (!value) throw Error("cell '" + name + "': the first value is undefined");
  body_ = std::make_shared<Body>(Body{std::move(name), value.unmarked(), kind});
}

Tensor Cell::value() const {
  Tensor v = body().value;
  for (Recorder* r : detail::frame().recorders) r->read(*this, v);
  return v;
}

const Tensor& Cell::peek() const {
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

void Cell::throw_empty() { throw Error("cell: empty handle"); }

}  // namespace ferrite
