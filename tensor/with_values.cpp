/// Variables with other values for the length of a call.
#include "ferrite/tensor/with_values.h"

namespace ferrite::detail {

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

}  // namespace ferrite::detail
