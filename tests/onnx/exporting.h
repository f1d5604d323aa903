#pragma once
/// Writes functions as ONNX in memory, and makes numbers for them.
#include <functional>
#include <string>
#include <vector>

#include "ferrite/exchange/onnx_export.h"
#include "ferrite/tensor/ops.h"

namespace exporting {

using Function = std::function<ferrite::Tensors(const ferrite::Tensors&)>;

inline std::string exported(const Function& f, const std::vector<ferrite::Spec>& specs,
                            const ferrite::onnx::ExportOptions& options = {}) {
  return ferrite::onnx::to_onnx(f, specs, options);
}
inline ferrite::Tensor numbers(const ferrite::Shape& shape, std::uint64_t seed = 3) {
  return ferrite::uniform(shape, {.seed = seed}, -1, 1);
}

}  // namespace exporting
