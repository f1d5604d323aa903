/// Layers with their options in a line.
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

}  // namespace ferrite::nn
