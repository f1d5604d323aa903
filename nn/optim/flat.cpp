/// Parameters as one vector of doubles.
#include "ferrite/nn/optim/detail/flat.h"

#include <string>
#include <unordered_set>

#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {

void check_flat(const char* who, const std::vector<Parameter>& parameters) {
  if (parameters.empty()) throw ValueError(std::string(who) + ": there are no parameters to train");
  std::unordered_set<const void*> seen;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].defined())
      throw ValueError(std::string(who) + ": parameter " + std::to_string(i) + " of the list is an empty handle");
    if (!seen.insert(parameters[i].identity()).second)
      throw ValueError(std::string(who) + ": the parameter '" + parameters[i].name() + "' is given twice");
  }
}

FlatVector flat_elements(const Tensor& x) { return contiguous(cast(x, Dtype::f64)).to_vector<double>(); }

FlatVector flat_position(const std::vector<Parameter>& parameters) {
  FlatVector x;
  for (const Parameter& p : parameters) {
    const FlatVector part = flat_elements(p.peek());
    x.insert(x.end(), part.begin(), part.end());
  }
  return x;
}

void set_flat_position(const std::vector<Parameter>& parameters, const FlatVector& x) {
  std::size_t at = 0;
  for (const Parameter& p : parameters) {
    const auto n = static_cast<std::size_t>(p.numel());
    p.assign(cast(Tensor::from(std::span(x).subspan(at, n), p.shape()), p.dtype()));
    at += n;
  }
}

}  // namespace ferrite::nn::detail
