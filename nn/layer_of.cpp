/// The one-line summaries of layers, and their dtypes.
#include "ferrite/nn/layer_of.h"

namespace ferrite::nn {

std::string detail::summary_of(const std::string& kind, std::string all, const Attrs& options, const Attrs& defaults) {
  options.each([&](std::string_view name, const AttrValue& value) {
    bool same = false;
    defaults.each([&](std::string_view other, const AttrValue& v) { same |= other == name && v == value; });
    if (!same) all += (all.empty() ? "" : ", ") + std::string(name) + "=" + attr_text(value);
  });
  return all.empty() ? kind : kind + "(" + all + ")";
}

Dtype detail::dtype_of(const Module& module) {
  for (const auto& p : module.named_parameters()) return p.variable.dtype();
  for (const auto& b : module.named_buffers())
    if (is_float(b.variable.dtype())) return b.variable.dtype();
  return Dtype::f32;
}

}  // namespace ferrite::nn
