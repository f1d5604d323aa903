/// The checks of pointwise operations on their operands, and composites as single applications: for recorders that ask
/// for them as a whole, and for composites with gradients.
#include "ferrite/tensor/pointwise.h"

#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::detail {

// ---- pointwise operations ---------------------------------------------------------------------------------

namespace {

[[noreturn]] void throw_types(const Primitive& op, Types types, Dtype got) {
  const char* wanted = types == Types::floats    ? "f32 or f64; cast it first"
                       : types == Types::boolean ? "bool"
                                                 : "a number";
  throw_dtype(op.name, "dtype " + std::string(name_of(got)) + " is not supported; it takes " + wanted);
}

void check_literals(const Primitive& op, const Attrs& attrs, Dtype dtype) {
  for (std::size_t j = 0; j < Literals::kMost; ++j)
    if (const Scalar* s = literal_of(attrs, j)) check_literal(op.name, *s, dtype);
}

}  // namespace

void infer_pointwise(const Primitive& op, Types types, Inputs in, const Attrs& attrs, Spec& out) {
  const Tensor& first = in[0];
  out.dtype = first.dtype();
  out.shape = first.shape();
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in[i].dtype() != out.dtype)
      throw_dtype(op.name,
                  "dtypes differ: " + first.spec().str() + " and " + in[i].spec().str() + "; cast one of them");
    if (in[i].shape() != out.shape) out.shape = broadcast(out.shape, in[i].shape(), op.name);
  }
  if (!accepts(types, out.dtype)) throw_types(op, types, out.dtype);
  if (static_cast<int>(in.size()) < op.arity) check_literals(op, attrs, out.dtype);
}

Tensor call_pointwise(const Primitive& op, std::initializer_list<const Operand*> operands) {
  InlineVector<const Tensor*, Literals::kMost> tensors;
  Literals literals;
  std::size_t j = 0;
  for (const Operand* o : operands) {
    if (o->is_literal()) {
      literals[j] = o->scalar();
    } else {
      tensors.push_back(&o->tensor());
    }
    ++j;
  }
  if (tensors.empty()) throw ValueError(std::string(op.name) + ": every operand is a literal; one must be a tensor");
  return op.apply({tensors.data(), tensors.size()}, literals)[0];
}

Tensors with_literals(std::size_t arity, Inputs in, const Attrs& attrs) {
  Tensors all;
  std::size_t next = 0;
  for (std::size_t j = 0; j < arity; ++j) {
    const Scalar* literal = literal_of(attrs, j);
    all.push_back(literal ? full({}, *literal, in[0].dtype()) : in[next++]);
  }
  return all;
}

// ---- composites -------------------------------------------------------------------------------------------

namespace {

/// Lets operations check and infer types without computing. A composite must be a function of its operands alone.
class TypesAlone final : public Recorder {
 public:
  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable& variable, Tensor&) override { refuse(variable, "reads"); }
  bool write(const Variable& variable, const Tensor&) override {
    refuse(variable, "writes");
    return false;
  }
  bool tracing() const override { return true; }

 private:
  static void refuse(const Variable& variable, const char* what) {
    throw TraceError(std::string("trace: a composite that is kept as one node ") + what + " the variable '" +
                     variable.name() + "'; give it as an operand");
  }
};

}  // namespace

Specs infer_composite(const Primitive& op, Inputs in, const Attrs& attrs) {
  TypesAlone types;
  const NewFrame frame(types);
  Tensors operands;
  for (const Tensor& x : in) operands.push_back(Tensor::abstract(x.spec()));
  Specs specs;
  for (const Tensor& y : op.reference(OperandList(operands), attrs)) specs.push_back(y.spec());
  return specs;
}

Tensors record_composite(const Primitive& op, Inputs in, const Attrs& attrs) {
  Tensors out;
  if (frame().tracing) {
    for (const Spec& s : infer_composite(op, in, attrs)) out.push_back(Tensor::abstract(s));
  } else {
    const Scope scope = frame().scope;
    const NewFrame hidden;
    const Scoped scoped(scope);
    out = op.unrecorded(in, attrs);
  }
  for (Recorder* r : frame().recorders) r->record(op, attrs, in, {out.data(), out.size()});
  return out;
}

Tensors apply_composite(const Primitive& op, Inputs in, const Attrs& attrs) {
  const Frame& f = frame();
  if (f.recorders.empty()) return op.unrecorded(in, attrs);
  return is_recorded_whole(f, op) ? record_composite(op, in, attrs) : op.reference(in, attrs);
}

}  // namespace ferrite::detail
