/// Composites as single applications: for recorders that ask for them as a whole, and those with gradients.
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::detail {
namespace {

/// Lets operations check and infer, and compute nothing. A composite is a function of its operands.
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
