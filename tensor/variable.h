#pragma once
/// Variables: parameters, buffers and states, the only mutable places for tensors.
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

class Variable;

namespace detail {
const Tensor& held_by(const Variable& variable);
}

/// The kind of a variable: a parameter is trained, the only kind that tapes differentiate by; a buffer (running
/// statistics) is saved with its model; a state belongs to an optimiser or a generator.
enum class VariableKind : std::uint8_t { parameter, buffer, state };

/// A shared handle to a named, mutable place for a tensor: the only thing in the library that changes. Parameters,
/// running statistics and optimiser state are variables. Reads and writes are reported to the recorders, so a traced
/// training step takes variables as inputs and outputs. Reading from several threads is safe; `assign` is exclusive.
class Variable {
 public:
  Variable() = default;
  Variable(std::string name, Tensor value, VariableKind kind);
  /// Computes the first value of a variable from the variable's full name and the seed of its model.
  using Draw = std::function<Tensor(std::string_view full_name, std::uint64_t seed)>;
  /// Declares a variable that has no value yet: `draw`, `assign` or a file provides it. Until it is drawn its name
  /// follows the modules that adopt it.
  Variable(std::string name, const Spec& spec, Draw draw, VariableKind kind);
  Variable(const Variable& o) : body_(o.resolved()) {}
  Variable(Variable&&) noexcept = default;
  /// Makes the handle refer to the other variable; if a module registered the handle, ties the variables instead: see
  /// `tie`.
  Variable& operator=(const Variable& o);
  Variable& operator=(Variable&& o);
  ~Variable() = default;

  /// Returns the value, as the recorders see it. Throws Error when the handle is empty or the variable has no value
  /// yet.
  Tensor value() const;
  operator Tensor() const { return value(); }
  /// Sets a new value of the same shape and dtype. Throws ShapeError, DtypeError; TraceError for a traced value outside
  /// its trace.
  void assign(const Tensor& value) const;
  /// Makes this variable and `other` one, whose value and name are those of `other`: every handle to this variable, in
  /// modules and elsewhere, then refers to `other`. Modules keep both names for it; it is counted, trained and saved
  /// once, and files that hold it under both names (PyTorch's do) load. Permanent, and exclusive like `assign`; copies
  /// of a module are tied too. Throws ValueError for another kind, ShapeError, DtypeError, and Error for an empty
  /// handle; then nothing has changed.
  ///
  ///   b.weight.tie(a.weight);
  void tie(const Variable& other) const;

  /// Returns the value without reporting to the recorders: for saving, loading and printing. Throws TraceError while a
  /// function is traced, since its program would keep the present value forever.
  const Tensor& peek() const&;
  Tensor peek() const&& { return peek(); }
  const std::string& name() const& { return body().name; }
  std::string name() const&& { return body().name; }
  VariableKind kind() const { return body().kind; }
  const Shape& shape() const& { return body().shape(); }
  Shape shape() const&& { return body().shape(); }
  Dtype dtype() const { return body().dtype(); }
  std::int64_t numel() const { return shape().numel(); }
  Spec spec() const { return {shape(), dtype()}; }
  /// Returns whether the variable has a value, drawn or assigned.
  bool drawn() const { return body().value.defined(); }
  /// Returns the identity of the variable: equal for handles to the same one.
  const void* identity() const noexcept { return resolved().get(); }
  bool operator==(const Variable& o) const noexcept { return identity() == o.identity(); }
  /// Returns false for an empty handle. There is no conversion to bool: see Tensor::defined.
  bool defined() const noexcept { return body_ != nullptr; }

  // ---- for modules, optimisers and recorders -------------------------------------------------------------

  /// Initialises a variable that was declared: sets its full name, and its first value unless it has one. Does nothing
  /// for other variables.
  void draw(std::string_view full_name, std::uint64_t seed) const;
  /// Sets the name that a module gives to the variable that it adopts, unless `draw` has fixed the name already.
  void rename(std::string_view name) const;
  /// Marks the handle that a module registers: assigning another variable to it ties the two, so that the module's
  /// member and its registered variable stay the same. Copies of the handle are not marked.
  void mark_registered() noexcept { registered_ = true; }
  /// Returns the number of this variable: variables are numbered in the order in which they are made. `made` is the
  /// latest.
  std::uint64_t number() const { return body().number; }
  static std::uint64_t made();
  /// Returns whether the variable that this handle was made for has since been tied to another one, to which the
  /// handle now refers. False for copies of the handle that are made after that.
  bool tied() const noexcept { return body_ && body_->tied_to; }

 protected:
  /// Returns whether assigning `o` to this handle ties the variables.
  bool ties_to(const Variable& o) const noexcept { return registered_ && body_ && !o.registered_; }

 private:
  static std::uint64_t next_number();
  struct Body {
    std::string name;
    Tensor value;  ///< the present value; undefined until `draw`, `assign` or a file gives one
    VariableKind kind;
    bool named = true;  ///< whether the name is final
    Spec declared{};    ///< type of a variable without a value
    Draw draw{};
    std::shared_ptr<Body> tied_to{};  ///< the variable that replaces this one
    std::uint64_t number = next_number();

    const Shape& shape() const { return value.defined() ? value.shape() : declared.shape; }
    Dtype dtype() const { return value.defined() ? value.dtype() : declared.dtype; }
    Spec spec() const { return {shape(), dtype()}; }
    [[noreturn]] void throw_undrawn() const;
  };
  friend const Tensor& detail::held_by(const Variable& variable);
  /// Returns the value. For use where nothing is being traced.
  const Tensor& held() const { return body().value; }

  const std::shared_ptr<Body>& resolved() const noexcept {
    const std::shared_ptr<Body>* at = &body_;
    while (*at && (*at)->tied_to) at = &(*at)->tied_to;
    return *at;
  }
  Body& body() const {
    Body* b = resolved().get();
    if (!b) [[unlikely]]
      throw_empty();
    return *b;
  }
  [[noreturn]] static void throw_empty();

  std::shared_ptr<Body> body_;
  bool registered_ = false;
};

/// The layout of a parameter in files, relative to that in memory.
enum class FileLayout : std::uint8_t {
  same,
  transposed,  ///< a matrix that PyTorch keeps as [out, in]; ours is [in, out], ready for the product
};

/// A trainable variable. Reading it under a Tape makes it a variable of that tape.
class Parameter : public Variable {
 public:
  Parameter() = default;
  Parameter(std::string name, Tensor value, FileLayout layout = FileLayout::same)
      : Variable(std::move(name), std::move(value), VariableKind::parameter), layout_(layout) {}
  Parameter(std::string name, const Spec& spec, Draw draw, FileLayout layout = FileLayout::same)
      : Variable(std::move(name), spec, std::move(draw), VariableKind::parameter), layout_(layout) {}
  Parameter(const Parameter&) = default;
  Parameter(Parameter&&) noexcept = default;
  Parameter& operator=(const Parameter& o);
  Parameter& operator=(Parameter&& o);
  ~Parameter() = default;

  FileLayout layout() const { return layout_; }
  /// Ties as Variable::tie does. Also throws ValueError when one is transposed in files and the other is not.
  void tie(const Parameter& other) const;

 private:
  FileLayout layout_ = FileLayout::same;
};

/// A mutable variable that is saved but not trained (running statistics).
class Buffer : public Variable {
 public:
  Buffer() = default;
  Buffer(std::string name, Tensor value) : Variable(std::move(name), std::move(value), VariableKind::buffer) {}
  Buffer(std::string name, const Spec& spec, Draw draw)
      : Variable(std::move(name), spec, std::move(draw), VariableKind::buffer) {}
};

/// A mutable variable of an optimiser or a generator: moments, step counts, learning rates, draw counters.
class State : public Variable {
 public:
  State() = default;
  State(std::string name, Tensor value) : Variable(std::move(name), std::move(value), VariableKind::state) {}
  State(std::string name, const Spec& spec, Draw draw)
      : Variable(std::move(name), spec, std::move(draw), VariableKind::state) {}
};

}  // namespace ferrite
