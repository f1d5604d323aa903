/// Reads and writes of one shard.
#include "ferrite/distributed/detail/shard_view.h"

#include <algorithm>

#include "ferrite/autograd/hooks.h"

namespace ferrite::mpi::detail {

void KnownVariables::add(const Variable& v) {
  if (!place.try_emplace(v.identity(), written.size()).second) return;
  written.push_back(v);
  counts.push_back(v.kind() == VariableKind::state && v.dtype() == Dtype::i64 && v.shape().rank() == 0);
}

ShardView::ShardView(const KnownVariables& known, const Tensors& start, Arrived arrived)
    : known_(known), values_(start), wrote_(start.size()), arrived_(std::move(arrived)) {}

void ShardView::read(const Variable& variable, Tensor& value) {
  if (const auto at = known_.place.find(variable.identity()); at != known_.place.end()) {
    value = values_[at->second];
    return;
  }
  const auto at = known_.parameter.find(variable.identity());
  if (at == known_.parameter.end() || !arrived_ || value.tape_id() == 0) return;
  const auto& listening = ferrite::detail::frame().recorders;
  if (std::none_of(listening.begin(), listening.end(), [&](const Recorder* r) { return r->holds(value); })) return;
  const std::size_t i = at->second;
  Tensor& hooked = hooked_[i];
  if (!hooked.defined()) {
    order_.push_back(i);
    hooked = hook_gradient(value, [this, i](const Tensor& g) {
      arrived_(i, g);
      return Tensor();
    });
  }
  value = hooked;
}

bool ShardView::write(const Variable& variable, const Tensor& value) {
  const auto at = known_.place.find(variable.identity());
  if (at == known_.place.end())
    throw ValueError("mpi: step: the loss writes '" + variable.name() +
                     "', which is no variable of the model; name it in DataParallelOptions::variables");
  values_[at->second] = value.unmarked();
  wrote_[at->second] = 1;
  return true;
}

}  // namespace ferrite::mpi::detail
