#pragma once
/// Runs a function with other values of variables.
#include <vector>

#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/variable.h"

namespace ferrite {

/// A variable and the value that `with_values` gives it in place of its own.
struct ValueOf {
  Variable variable;
  Tensor value;
};

namespace detail {

/// Provides other values of variables while it is among the recorders of a frame.
class OtherValues final : public Recorder {
 public:
  explicit OtherValues(std::vector<ValueOf> values);
  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable& variable, Tensor& value) override;
  bool write(const Variable& variable, const Tensor& value) override;
  bool keeps_composites() const override { return true; }

 private:
  std::vector<ValueOf> values_;
};

}  // namespace detail

/// Returns the result of f, which runs with other values of variables, as torch.func.functional_call; the variables
/// keep their own. Gradients flow to what the values were computed from. Throws Error for an empty handle or an
/// undefined value, ShapeError and DtypeError for a value of another type than its variable; f throws ValueError where
/// it assigns to one of them.
///
///   const Tensor y = with_values({{layer.weight, layer.weight - 0.1 * gradient}}, [&] { return layer(x); });
template <class F>
auto with_values(std::vector<ValueOf> values, const F& f) {
  detail::OtherValues others(std::move(values));
  const Recording recording(others);
  return f();
}

}  // namespace ferrite
