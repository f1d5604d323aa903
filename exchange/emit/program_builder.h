#pragma once
/// The interface by which exporters write programs of any format, and the walk that writes a traced graph through it.
#include <functional>
#include <memory>
#include <span>

#include "ferrite/compile/graph.h"
#include "ferrite/exchange/emit/export_program.h"
#include "ferrite/tensor/attributes.h"

namespace ferrite::exchange::detail {

/// One application of a traced operation, with the values that its operands are in the program.
struct Application {
  const Primitive& op;
  const Values& in;
  const Attrs& attrs;
  const std::vector<Spec>& out;
  const std::vector<bool>& read;  ///< by result: whether anything depends on it

  /// The constants as the struct of the operation.
  template <class S>
  S as() const {
    return attrs.as<S>(op.name);
  }
  int axis() const { return as<ferrite::detail::AxisAttrs>().axis; }
  /// A constant of a struct that only the operation's own file sees; `otherwise` where it is not set.
  template <class T>
  T named(std::string_view name, T otherwise) const {
    attrs.each([&](std::string_view own, const AttrValue& value) {
      if (const T* v = std::get_if<T>(&value); v && own == name) otherwise = *v;
    });
    return otherwise;
  }
  /// A literal among the operands of a pointwise operation, or null.
  const Scalar* literal(std::size_t k) const { return ferrite::detail::literal_of(attrs, k); }
};

/// Writes an application and gives its results; none asks for another way. A result that nothing
/// depends on may stay without a value. At most one argument of a call in a lowering may write something: compilers
/// differ in the order of evaluation, and the program would.
template <class Builder>
using Lowering = Values (*)(Builder&, const Application&);

template <class Builder>
struct NamedLowering {
  std::string_view operation;
  Lowering<Builder> lower;
};

/// The lowering of an operation in a list, or null.
template <class Builder>
Lowering<Builder> find_lowering(std::span<const NamedLowering<Builder>> all, const Primitive& op) {
  const auto at = std::ranges::find(all, op.name, &NamedLowering<Builder>::operation);
  return at == all.end() ? nullptr : at->lower;
}

/// The facts about a format that shared code needs.
struct Format {
  std::string_view who;                     ///< the function that exports, which errors begin with
  std::string_view dialect;                 ///< the prefix of an instruction's name in errors
  std::span<const ExportRefusal> refusals;  ///< of operations that it cannot express
};

/// The refusal of an operation, or null.
const ExportRefusal* find_refusal(const Format& format, const Primitive& op);

/// Builds the instructions of a program. The names of its elementwise operations and comparisons are those of
/// StableHLO ("add", "maximum", "EQ"); a format with other names translates.
class ProgramBuilder {
 public:
  ProgramBuilder() = default;
  /// One whose values differ from those of another.
  explicit ProgramBuilder(const ProgramBuilder* other) : next_(other->next_) {}
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;
  virtual ~ProgramBuilder() = default;

  virtual const Format& format() const = 0;
  /// Tells whether the format can express an operation.
  virtual bool writes(const Primitive& op) const = 0;
  /// Writes an application and gives its results; none where it cannot be expressed with these types or constants.
  virtual Values write(const Application& a) = 0;
  /// A constant of the traced program. It belongs to the first that reads it, if that is known, so that an error can
  /// name that.
  virtual Value constant_of(const Tensor& tensor, const Graph::Node* reader);

  virtual Value constant(const Tensor& tensor) = 0;
  /// One value in every element.
  virtual Value filled(Scalar value, const Spec& spec) = 0;
  /// A constant that elementwise operations take together with x.
  virtual Value like(Scalar value, const Value& x) = 0;
  /// 0, 1, ... along the only axis: i64 [count].
  virtual Value counted(std::int64_t count) = 0;
  /// Of rank 0.
  Value scalar(Scalar value, Dtype dtype) { return filled(value, {{}, dtype}); }
  /// i64 [n].
  Value integers(const Integers& values);

  /// Operations on elements whose operands and result have one dtype.
  virtual Value elementwise(std::string_view op, const Values& operands) = 0;
  Value add(const Value& a, const Value& b) { return elementwise("add", {a, b}); }
  Value subtract(const Value& a, const Value& b) { return elementwise("subtract", {a, b}); }
  Value multiply(const Value& a, const Value& b) { return elementwise("multiply", {a, b}); }
  Value divide(const Value& a, const Value& b) { return elementwise("divide", {a, b}); }
  /// The rest of a division whose quotient is cut towards 0.
  virtual Value remainder(const Value& a, const Value& b) = 0;
  /// EQ, NE, LT, LE, GT, GE: bool.
  virtual Value compare(std::string_view direction, const Value& a, const Value& b) = 0;
  virtual Value is_nan(const Value& x) = 0;
  virtual Value select(const Value& condition, const Value& a, const Value& b) = 0;
  /// To another dtype by the rules of the format; x itself where it has that dtype.
  virtual Value convert(const Value& x, Dtype dtype) = 0;
  /// To another dtype by the rules of `cast`: what does not fit saturates, NaN gives 0, integers wrap.
  virtual Value cast(const Value& x, Dtype dtype) = 0;

  /// These give x itself where nothing changes. Repeats axes of extent 1 and new leading axes.
  virtual Value expand(const Value& x, const Shape& shape) = 0;
  virtual Value reshape(const Value& x, const Shape& shape) = 0;
  virtual Value transpose(const Value& x, const Shape& order) = 0;
  /// count elements from begin along an axis, step apart.
  virtual Value slice(const Value& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step = 1) = 0;
  virtual Value concatenate(const Values& parts, int axis) = 0;
  /// An axis of extent 1 more.
  virtual Value unsqueeze(const Value& x, int axis) = 0;
  /// One index along an axis, which is dropped.
  virtual Value picked(const Value& x, int axis, std::int64_t index) = 0;

  /// The extent of a value that is open: i64 [].
  virtual Value extent_of(const Value& x, int axis) = 0;
  /// The float in which numbers are computed from extents that a constant of that dtype is.
  virtual Dtype real_of_extents(Dtype dtype) const = 0;

  /// The origin of the instructions that are written from now on.
  const Origin& origin() const { return origin_; }
  void set_origin(const Origin& origin) { origin_ = origin; }
  /// Calls f; what it writes gets the origin of a node within the present one.
  template <class F>
  void inside(const Graph::Node& n, const F& f) {
    const Origin outer = origin_;
    origin_ = outer.of({n.op->name, n.scope});
    f();
    origin_ = outer;
  }

  /// A value that an instruction, or a block as its argument, is about to give.
  Value fresh(const Spec& spec) { return {(*next_)++, spec}; }
  Values emit(std::string_view op, const Values& operands, const std::vector<Spec>& results, Attributes attributes = {},
              TypeNotation types = TypeNotation::function);
  /// Any instruction with one result.
  Value emit_one(std::string_view op, const Values& operands, const Spec& result, Attributes attributes = {},
                 TypeNotation types = TypeNotation::function) {
    return emit(op, operands, {result}, std::move(attributes), types)[0];
  }
  /// An instruction as it is.
  void append(Instruction instruction) { block_->instructions.push_back(std::move(instruction)); }
  /// Calls `write`, whose instructions and results become those of a block.
  virtual void within(Block& block, const std::function<Values()>& write);

  /// What was written.
  std::vector<Instruction>& instructions() { return main_.instructions; }
  /// More than the largest id.
  int values() const { return *next_; }

 protected:
  /// A float as an integer: what does not fit saturates and NaN gives 0, which formats leave open, so only what fits is
  /// converted, `through` another integer.
  Value saturated(const Value& from, Dtype to, Dtype through);

 private:
  std::shared_ptr<int> next_ = std::make_shared<int>(0);
  Origin origin_{};
  Block main_{};
  Block* block_ = &main_;
};

/// Lowerings, in what every format has, of operations that formats lack or name differently.
std::span<const NamedLowering<ProgramBuilder>> common_lowerings();

/// Writes the part of a graph that its outputs and writes depend on. `given` are the values of inputs, variables read
/// and, where they have some, constants, by number; constants without a value are written. Gives the outputs, then what
/// is written to variables. `read` says which outputs are asked for, where not all are; the others may come without a
/// value. Throws ExportError.
Values lower_graph(ProgramBuilder& b, const Graph& graph, Values given, const std::vector<bool>& read = {});

/// Traces a function and writes it, applied to these values.
Values lower_traced(ProgramBuilder& b, const std::function<Tensors(const Tensors&)>& f, const Values& in,
                    const std::vector<bool>& read = {});

/// Writes an operation as its composition (`find_composition`) or as the reference of its record; gives no results
/// where it has neither.
Values lower_composition(ProgramBuilder& b, const Application& a);
bool has_composition(const Primitive& op);

/// The operands of a pointwise operation, in order: `constant(literal, dtype)` of literals, `operand(x)` of the others.
Values with_literals(const Application& a, const std::function<Value(Scalar, Dtype)>& constant,
                     const std::function<Value(const Value&)>& operand);

}  // namespace ferrite::exchange::detail
