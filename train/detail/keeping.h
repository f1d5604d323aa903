#pragma once
/// Saving and restoring the values of a module's variables, and its modes.
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::train::detail {

/// Returns the values of the parameters, then those of the buffers, in the order of the module's lists.
inline std::vector<Tensor> values_of(const nn::Module& module) {
  std::vector<Tensor> all;
  for (const auto& p : module.named_parameters()) all.push_back(p.variable.peek());
  for (const auto& b : module.named_buffers()) all.push_back(b.variable.peek());
  return all;
}

/// Assigns values in the order of `values_of`.
inline void assign_values(const nn::Module& module, const std::vector<Tensor>& values) {
  auto at = values.begin();
  for (const auto& p : module.named_parameters()) p.variable.assign(*at++);
  for (const auto& b : module.named_buffers()) b.variable.assign(*at++);
}

/// Restores the modes of a module, training or evaluation, when it is destroyed.
class KeptModes {
 public:
  explicit KeptModes(const nn::Module& module) : module_(module), modes_(module.modes()) {}
  ~KeptModes() { module_.set_modes(modes_); }
  KeptModes(const KeptModes&) = delete;
  KeptModes& operator=(const KeptModes&) = delete;

 private:
  const nn::Module& module_;
  std::vector<bool> modes_;
};

}  // namespace ferrite::train::detail
