/// Activation functions in the form that other programs know.
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {
namespace {

/// Without the branch that keeps digits far below 0.
Tensors silu(const Composed&, const Tensors& in) { return {in[0] * sigmoid(in[0])}; }

}  // namespace

Compositions activation_compositions() {
  static constexpr NamedComposition list[] = {{"silu", silu}};
  return list;
}

}  // namespace ferrite::exchange::detail
