#pragma once
/// The interface by which exporters write programs of any format, and the walk that writes a traced graph through it.
#include <functional>
#include <memory>
#include <span>

#include "ferrite/compile/graph.h"
#include "ferrite/exchange/emit/export_program.h"
#include "ferrite/tensor/attributes.h"

namespace ferrite::exchange::detail {

/// One application of a traced operation, with its operands as values of the program.
struct Application {
  const Primitive& op;
  const Values& in;
  const Attrs& attrs;
  const std::vector<Spec>& out;
  const std::vector<bool>& read;  ///< whether anything depends on each result

  /// Returns the constants as the struct of the operation.
  template <class S>
  S as() const {
    return attrs.as<S>(op.name);
  }
  int axis() const { return as<ferrite::detail::AxisAttrs>().axis; }
  /// Returns a constant of a struct that only the operation's own file sees, or `otherwise` where it is not set.
  template <class T>
  T named(std::string_view name, T otherwise) const {
    attrs.each([&](std::string_view own, const AttrValue& value) {
      if (const T* v = std::get_if<T>(&value); v && own == name) otherwise = *v;
    });
    return otherwise;
  }
  /// Returns operand k of a pointwise operation if it is a literal, or null.
  const Scalar* literal(std::size_t k) const { return ferrite::detail::literal_of(attrs, k); }
};

/// A function that writes an application and returns its results, or none where it cannot write it. A result that
/// nothing depends on may stay without a value. At most one argument of a call in a lowering may write something:
/// compilers differ in the order of evaluation, and the program would differ with it.
template <class Builder>
using Lowering = Values (*)(Builder&, const Application&);

template <class Builder>
struct NamedLowering {
  std::string_view operation;
  Lowering<Builder> lower;
};

/// Returns the lowering of an operation in a list, or null.
template <class Builder>
Lowering<Builder> find_lowering(std::span<const NamedLowering<Builder>> all, const Primitive& op) {
  const auto at = std::ranges::find(all, op.name, &NamedLowering<Builder>::operation);
  return at == all.end() ? nullptr : at->lower;
}

/// The facts about a format that shared code needs.
struct Format {
  std::string_view who;                     ///< the exporting function, with which errors begin
  std::string_view dialect;                 ///< the prefix of an instruction's name in errors
  std::span<const ExportRefusal> refusals;  ///< operations that the format cannot express
};

/// Returns the refusal of an operation, or null.
const ExportRefusal* find_refusal(const Format& format, const Primitive& op);

/// Builds the instructions of a program. The names of its elementwise operations and comparisons are those of
/// StableHLO ("add", "maximum", "EQ"); a format with other names translates.
class ProgramBuilder {
 public:
  ProgramBuilder() = default;
  /// Makes a builder whose values differ from those of another one.
  explicit ProgramBuilder(const ProgramBuilder* other) : next_(other->next_) {}
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;
  virtual ~ProgramBuilder() = default;

  virtual const Format& format() const = 0;
  /// Returns whether the format can express an operation.
  virtual bool writes(const Primitive& op) const = 0;
  /// Writes an application and returns its results; none where these types or constants cannot be expressed.
  virtual Values write(const Application& a) = 0;
  /// Writes a constant of the traced program. Its origin is its first reader, if that is known, so that an error can
  /// name it.
  virtual Value constant_of(const Tensor& tensor, const Graph::Node* reader);

  virtual Value constant(const Tensor& tensor) = 0;
  /// Writes a value whose elements are all `value`.
  virtual Value filled(Scalar value, const Spec& spec) = 0;
  /// Writes a constant that elementwise operations take together with x.
  virtual Value like(Scalar value, const Value& x) = 0;
  /// Writes 0, 1, ..., count - 1 as i64 [count].
  virtual Value counted(std::int64_t count) = 0;
  /// Writes a constant of rank 0.
  Value scalar(Scalar value, Dtype dtype) { return filled(value, {{}, dtype}); }
  /// Writes n integers as a constant i64 [n].
  Value integers(const Integers& values);

  /// Writes an elementwise operation whose operands and result have one dtype.
  virtual Value elementwise(std::string_view op, const Values& operands) = 0;
  Value add(const Value& a, const Value& b) { return elementwise("add", {a, b}); }
  Value subtract(const Value& a, const Value& b) { return elementwise("subtract", {a, b}); }
  Value multiply(const Value& a, const Value& b) { return elementwise("multiply", {a, b}); }
  Value divide(const Value& a, const Value& b) { return elementwise("divide", {a, b}); }
  /// Writes the remainder of a division whose quotient is rounded towards 0.
  virtual Value remainder(const Value& a, const Value& b) = 0;
  /// Writes a comparison, EQ, NE, LT, LE, GT or GE, whose result is bool.
  virtual Value compare(std::string_view direction, const Value& a, const Value& b) = 0;
  virtual Value is_nan(const Value& x) = 0;
  virtual Value select(const Value& condition, const Value& a, const Value& b) = 0;
  /// Converts x to another dtype by the rules of the format; returns x itself where it has that dtype.
  virtual Value convert(const Value& x, Dtype dtype) = 0;
  /// Converts x to another dtype by the rules of the operation `cast`: floats that do not fit saturate, NaN gives 0,
  /// integers wrap.
  virtual Value cast(const Value& x, Dtype dtype) = 0;

  /// Repeats axes of extent 1 and new leading axes. This and the next ones return x itself where nothing changes.
  virtual Value expand(const Value& x, const Shape& shape) = 0;
  virtual Value reshape(const Value& x, const Shape& shape) = 0;
  virtual Value transpose(const Value& x, const Shape& order) = 0;
  /// Takes `count` elements along an axis, `step` apart, from `begin` on.
  virtual Value slice(const Value& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step = 1) = 0;
  virtual Value concatenate(const Values& parts, int axis) = 0;
  /// Inserts an axis of extent 1.
  virtual Value unsqueeze(const Value& x, int axis) = 0;
  /// Takes one index along an axis, which is dropped.
  virtual Value picked(const Value& x, int axis, std::int64_t index) = 0;

  /// Returns an open extent of a value as i64 [].
  virtual Value extent_of(const Value& x, int axis) = 0;
  /// Returns the dtype in which constants of a float dtype are computed from extents.
  virtual Dtype real_of_extents(Dtype dtype) const = 0;

  /// Returns the origin of the instructions that are written from now on.
  const Origin& origin() const { return origin_; }
  void set_origin(const Origin& origin) { origin_ = origin; }
  /// Calls f, whose instructions get the origin of a node within the present one.
  template <class F>
  void inside(const Graph::Node& n, const F& f) {
    const Origin outer = origin_;
    origin_ = outer.of({n.op->name, n.scope});
    f();
    origin_ = outer;
  }

  /// Returns a new value, the result of an instruction or an argument of a block.
  Value fresh(const Spec& spec) { return {(*next_)++, spec}; }
  Values emit(std::string_view op, const Values& operands, const std::vector<Spec>& results, Attributes attributes = {},
              TypeNotation types = TypeNotation::function);
  /// Writes an instruction with one result, which it returns.
  Value emit_one(std::string_view op, const Values& operands, const Spec& result, Attributes attributes = {},
                 TypeNotation types = TypeNotation::function) {
    return emit(op, operands, {result}, std::move(attributes), types)[0];
  }
  /// Appends an instruction unchanged.
  void append(Instruction instruction) { block_->instructions.push_back(std::move(instruction)); }
  /// Calls `write`, whose instructions and results become those of a block.
  virtual void within(Block& block, const std::function<Values()>& write);

  /// Returns the instructions written so far, outside of blocks.
  std::vector<Instruction>& instructions() { return main_.instructions; }
  /// Returns a number above the ids of all values.
  int values() const { return *next_; }

 protected:
  /// Converts a float to an integer: what does not fit saturates and NaN gives 0. Formats leave these cases undefined,
  /// so only values that fit are converted, by way of the integer dtype `through`.
  Value saturated(const Value& from, Dtype to, Dtype through);

 private:
  std::shared_ptr<int> next_ = std::make_shared<int>(0);
  Origin origin_{};
  Block main_{};
  Block* block_ = &main_;
};

/// Returns lowerings to operations that every format has, for operations that formats lack or name differently.
std::span<const NamedLowering<ProgramBuilder>> common_lowerings();

/// Writes the part of a graph that its outputs and writes depend on. `given` are the values of inputs, of variables
/// that are read and, where they have some, of constants, by number; constants without a value are written. Returns the
/// outputs, then the new values of variables. `read` says which outputs are needed, where not all are; the others may
/// lack a value. Throws ExportError.
Values lower_graph(ProgramBuilder& b, const Graph& graph, Values given, const std::vector<bool>& read = {});

/// Traces a function and writes its application to the values `in`.
Values lower_traced(ProgramBuilder& b, const std::function<Tensors(const Tensors&)>& f, const Values& in,
                    const std::vector<bool>& read = {});

/// Writes an operation as its composition (`find_composition`) or as the reference of its record; returns no results
/// where it has neither.
Values lower_composition(ProgramBuilder& b, const Application& a);
bool has_composition(const Primitive& op);

/// Returns the operands of a pointwise operation in order: `constant(literal, dtype)` for a literal, else `operand(x)`.
Values with_literals(const Application& a, const std::function<Value(Scalar, Dtype)>& constant,
                     const std::function<Value(const Value&)>& operand);

}  // namespace ferrite::exchange::detail
