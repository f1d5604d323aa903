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

/// What a variable holds: tapes differentiate with respect to parameters only.
enum class VariableKind : std::uint8_t { parameter, buffer, state };

/// A shared handle to a named, mutable place for a tensor: the only thing in the library that changes.
/// Parameters, running statistics and optimiser state are variables. Reads and writes are told to the recorders, so
/// a traced training step takes them as inputs and outputs. Reading from several threads is safe; `assign` is
/// exclusive.
class Variable {
 public:
  Variable() = default;
  Variable(std::string name, Tensor value, VariableKind kind);
  /// How a variable gets its first value: from the seed of a model and the variable's full name in it.
  using Draw = std::function<Tensor(std::string_view full_name, std::uint64_t seed)>;
  /// A cell that is declared and has no value yet: `draw`, `assign` or a file gives it one. Until it is drawn its name
  /// follows the modules that adopt it.
  Variable(std::string name, const Spec& spec, Draw draw, VariableKind kind);
  Variable(const Variable& o) : body_(o.resolved()) {}
  Variable(Variable&&) noexcept = default;
  /// The handle stands for the other variable from now on; one that a module registered is tied instead: see `tie`.
  Variable& operator=(const Variable& o);
  Variable& operator=(Variable&& o);
  ~Variable() = default;

  /// The value, as the recorders see it. Throws Error when the handle is empty or the variable has no value yet.
  Tensor value() const;
  operator Tensor() const { return value(); }
  /// Gives the variable a new value of the same shape and dtype. Throws ShapeError, DtypeError; TraceError for a
  /// traced value outside its trace.
  void assign(const Tensor& value) const;
  /// Makes this variable and `other` one, whose value and name are those of `other`: every handle to this variable, in
  /// modules and elsewhere, becomes one to that. Modules keep both names for it; it is counted, trained and saved once,
  /// and files that hold it under both names (PyTorch's do) load. For good, and exclusive like `assign`; copies of a
  /// module are tied alike. Throws ValueError for another kind, ShapeError, DtypeError, Error for an empty handle;
  /// nothing has changed then.
  ///
  ///   b.weight.tie(a.weight);
  void tie(const Variable& other) const;

  /// The value without telling the recorders: for saving, loading and printing. Throws TraceError while a function is
  /// traced: its program would keep the value of that moment for ever.
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
  /// Whether it has a value.
  bool drawn() const { return body().value.defined(); }
  /// Identity: equal for handles to the same variable.
  const void* identity() const noexcept { return resolved().get(); }
  bool operator==(const Variable& o) const noexcept { return identity() == o.identity(); }
  /// False for an empty handle. There is no conversion to bool: see Tensor::defined.
  bool defined() const noexcept { return body_ != nullptr; }

  // ---- for modules, optimisers and recorders -------------------------------------------------------------

  /// What a seed makes of a variable that was declared: its full name, and its first value unless it has one. Else
  /// nothing.
  void draw(std::string_view full_name, std::uint64_t seed) const;
  /// The name in a module that adopts it, where no seed has fixed it yet.
  void rename(std::string_view name) const;
  /// Marks the handle that a module registers: assigning another variable to it ties, so that what the module holds and
  /// what it registered stay the same. Copies of the handle are not marked.
  void mark_registered() noexcept { registered_ = true; }
  /// Variables are numbered in the order in which they are made: this one's number, and the last one that there is.
  std::uint64_t number() const { return body().number; }
  static std::uint64_t made();
  /// Whether the variable that this handle stood for was tied to another one since.
  bool tied() const noexcept { return body_ && body_->tied_to; }

 protected:
  /// Whether assigning `o` to this handle ties.
  bool ties_to(const Variable& o) const noexcept { return registered_ && body_ && !o.registered_; }

 private:
  static std::uint64_t next_number();
  struct Body {
    std::string name;
    Tensor value;  ///< undefined before the first one
    VariableKind kind;
    bool named = true;  ///< for good
    Spec declared{};    ///< of a variable without a value
    Draw draw{};
    std::shared_ptr<Body> tied_to{};  ///< stands for this one
    std::uint64_t number = next_number();

    const Shape& shape() const { return value.defined() ? value.shape() : declared.shape; }
    Dtype dtype() const { return value.defined() ? value.dtype() : declared.dtype; }
    Spec spec() const { return {shape(), dtype()}; }
    [[noreturn]] void throw_undrawn() const;
  };
  friend const Tensor& detail::held_by(const Variable& variable);
  /// The value, where it is known that nothing is being traced.
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

/// How the layout of a parameter in files differs from that in memory.
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
  /// As Variable::tie. Throws ValueError, too, when one is transposed in files and the other is not.
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
