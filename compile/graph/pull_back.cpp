#include "ferrite/compile/graph/pull_back.h"

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {

Tensors pull_back(Tape& tape, const Tensors& results, const std::vector<Tensor>& cotangents,
                  const std::vector<std::size_t>& which, std::span<const Tensor> variables) {
  if (which.size() == 1) return lenient_grad(tape, results[which[0]], variables, {}, cotangents[0]);
  Tensor total;
  for (std::size_t k = 0; k < which.size(); ++k) {
    const Tensor part = sum(cast(results[which[k]], cotangents[k].dtype()) * cotangents[k]);
    total = total.defined() ? total + part : part;
  }
  return lenient_grad(tape, total, variables);
}

}  // namespace ferrite::detail
