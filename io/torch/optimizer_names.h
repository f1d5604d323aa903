#pragma once
/// Where PyTorch holds what an optimiser's state variables hold.
#include <string>
#include <string_view>

#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::io::detail {

/// The state of one parameter in one slot as a file has it.
struct TorchSlot {
  std::string name;         ///< "exp_avg"
  bool transposed = false;  ///< against the variable
};

/// PyTorch's name of a slot for a parameter.
inline TorchSlot torch_slot(const nn::Optimizer& optimizer, const nn::StateSlot& slot, const Parameter& parameter) {
  TorchSlot found{slot.name, slot.share == nn::StateShare::own && parameter.layout() == FileLayout::transposed};
  if (optimizer.torch_name() == "SGD" && slot.name == "momentum") found.name = "momentum_buffer";
  // Rows of ours are columns of PyTorch's where the weight is transposed.
  if (found.transposed && slot.name == "row_var") found.name = "col_var";
  if (found.transposed && slot.name == "col_var") found.name = "row_var";
  return found;
}

/// Whether PyTorch has no such state: the first update of SGD's is told by its momentum.
inline bool only_ours(const nn::Optimizer& optimizer, const nn::StateSlot& slot) {
  return optimizer.torch_name() == "SGD" && slot.name == "step";
}

/// Throws ValueError for an optimiser that PyTorch does not have.
void check_torch_has(const nn::Optimizer& optimizer, std::string_view who);

}  // namespace ferrite::io::detail
