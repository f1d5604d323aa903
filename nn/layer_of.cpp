/// Layers with their options in a line.
#include "ferrite/nn/layer_of.h"

#include <sstream>

namespace ferrite::nn {
namespace {

struct Text {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return Scalar(v).str(); }
  std::string operator()(Dtype v) const { return std::string(name_of(v)); }
  std::string operator()(const Label& v) const { return std::string(v.text()); }
  std::string operator()(const auto& v) const { return v.str(); }
};

}  // namespace

std::string detail::summary_of(const std::string& kind, std::string all, const Attrs& options, const Attrs& defaults) {
  options.each([&](std::string_view name, const AttrValue& value) {
    bool same = false;
    defaults.each([&](std::string_view other, const AttrValue& v) { same |= other == name && v == value; });
    if (!same) all += (all.empty() ? "" : ", ") + std::string(name) + "=" + std::visit(Text(), value);
  });
  return all.empty() ? kind : kind + "(" + all + ")";
}

}  // namespace ferrite::nn
