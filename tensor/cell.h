#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// What a cell holds: tapes differentiate with respect to parameters only.
enum class CellKind : std::uint8_t { parameter, buffer, state };

/// A shared handle to a named, mutable place for a tensor: the only thing in the library that changes.
/// Parameters, running statistics and optimiser state are cells. Reads and writes are told to the recorders, so
/// a traced training step takes them as inputs and outputs. Reading from several threads is safe; `assign` is
/// exclusive.
class Cell {
 public:
  Cell() = default;
  Cell(std::string name, Tensor value, CellKind kind);

  /// The value, as the recorders see it. Throws Error when the cell is empty or undefined.
  Tensor value() const;
  operator Tensor() const { return value(); }
  /// Gives the cell a new value of the same shape and dtype. Throws ShapeError, DtypeError; TraceError for a
  /// traced value outside its trace.
  void assign(const Tensor& value) const;

  /// The value without telling the recorders: for saving, loading and printing. Throws TraceError while a function is
  /// traced: its program would keep the value of that moment for ever.
  const Tensor& peek() const;
  const std::string& name() const { return body().name; }
  CellKind kind() const { return body().kind; }
  const Shape& shape() const { return body().value.shape(); }
  Dtype dtype() const { return body().value.dtype(); }
  std::int64_t numel() const { return body().value.numel(); }
  /// Identity: equal for handles to the same cell.
  const void* identity() const noexcept { return body_.get(); }
  bool operator==(const Cell& o) const noexcept { return body_ == o.body_; }
  explicit operator bool() const noexcept { return body_ != nullptr; }

 private:
  struct Body {
    std::string name;
    Tensor value;
    CellKind kind;
  };
  Body& body() const {
    if (!body_) [[unlikely]]
      throw_empty();
    return *body_;
  }
  [[noreturn]] static void throw_empty();

  std::shared_ptr<Body> body_;
};

/// How the layout of a parameter in files differs from that in memory.
enum class FileLayout : std::uint8_t {
  same,
  transposed,  ///< a matrix that PyTorch keeps as [out, in]; ours is [in, out], ready for the product
};

/// A trainable cell. Reading it under a Tape makes it a variable of that tape.
class Parameter : public Cell {
 public:
  Parameter() = default;
  Parameter(std::string name, Tensor value, FileLayout layout = FileLayout::same)
      : Cell(std::move(name), std::move(value), CellKind::parameter), layout_(layout) {}

  FileLayout layout() const { return layout_; }

 private:
  FileLayout layout_ = FileLayout::same;
};

/// A mutable cell that is saved but not trained (running statistics).
class Buffer : public Cell {
 public:
  Buffer() = default;
  Buffer(std::string name, Tensor value) : Cell(std::move(name), std::move(value), CellKind::buffer) {}
};

/// A mutable cell of an optimiser or a generator: moments, step counts, learning rates, draw counters.
class State : public Cell {
 public:
  State() = default;
  State(std::string name, Tensor value) : Cell(std::move(name), std::move(value), CellKind::state) {}
};

}  // namespace ferrite
