/// Layers from the names and shapes of a state_dict.
#include <map>
#include <unordered_map>

#include "ferrite/io/any_file.h"

namespace ferrite::io {
namespace {

using Extents = std::vector<std::int64_t>;

/// The tensors of one prefix, by the last part of their names.
struct Group {
  std::string prefix;
  std::map<std::string, Extents> members;

  const Extents* find(const std::string& name) const {
    const auto at = members.find(name);
    return at == members.end() ? nullptr : &at->second;
  }
};

std::vector<Group> grouped(const TensorFile& file) {
  std::vector<Group> groups;
  std::unordered_map<std::string, std::size_t> position;
  for (const std::string_view name : file.names()) {
    const std::size_t dot = name.rfind('.');
    const std::string prefix(dot == std::string_view::npos ? "" : name.substr(0, dot));
    const std::string member(dot == std::string_view::npos ? name : name.substr(dot + 1));
    const auto [at, fresh] = position.emplace(prefix, groups.size());
    if (fresh) groups.push_back({prefix, {}});
    groups[at->second].members[member] = file.info(name).shape;
  }
  return groups;
}

std::string text(std::int64_t n) { return std::to_string(n); }

const char* kind_of(std::int64_t gates) {
  return gates == 1 ? "RNN" : gates == 3 ? "GRU" : gates == 4 ? "LSTM" : nullptr;
}

/// "GRU(input 12, hidden 64, ...)"; empty where it is none.
std::string recurrent(const Group& g) {
  const Extents* ih = g.find("weight_ih_l0");
  const Extents* hh = g.find("weight_hh_l0");
  if (!ih || !hh || ih->size() != 2 || hh->size() != 2) return {};
  const Extents* hr = g.find("weight_hr_l0");
  const std::int64_t hidden = hr && hr->size() == 2 ? (*hr)[1] : (*hh)[1];
  if (hidden == 0 || (*hh)[0] % hidden != 0 || (*ih)[0] != (*hh)[0]) return {};
  const char* kind = kind_of((*hh)[0] / hidden);
  if (!kind) return {};
  std::int64_t layers = 1;
  while (g.find("weight_ih_l" + text(layers))) ++layers;
  std::string s = std::string(kind) + "(input " + text((*ih)[1]) + ", hidden " + text(hidden);
  if (layers > 1) s += ", layers " + text(layers);
  if (g.find("weight_ih_l0_reverse")) s += ", bidirectional";
  if (hr) s += ", projection " + text((*hh)[1]);
  if (!g.find("bias_ih_l0")) s += ", no bias";
  return s + ")";
}

std::string cell(const Group& g) {
  const Extents* ih = g.find("weight_ih");
  const Extents* hh = g.find("weight_hh");
  if (!ih || !hh || ih->size() != 2 || hh->size() != 2 || (*hh)[1] == 0 || (*hh)[0] % (*hh)[1] != 0) return {};
  const char* kind = kind_of((*hh)[0] / (*hh)[1]);
  if (!kind) return {};
  return std::string(kind) + " cell(input " + text((*ih)[1]) + ", hidden " + text((*hh)[1]) +
         (g.find("bias_ih") ? ")" : ", no bias)");
}

std::string other(const Group& g) {
  const Extents* w = g.find("weight");
  const Extents* b = g.find("bias");
  if (!w) return {};
  if (g.find("running_mean")) return "BatchNorm(" + text((*w)[0]) + ")";
  if (w->size() == 2 && b && b->size() == 1 && (*b)[0] == (*w)[0])
    return "Linear(in " + text((*w)[1]) + ", out " + text((*w)[0]) + ")";
  if (w->size() == 2 && !b)
    return "Embedding(" + text((*w)[0]) + ", " + text((*w)[1]) + ") or Linear(in " + text((*w)[1]) + ", out " +
           text((*w)[0]) + ", no bias)";
  if (w->size() == 1 && b && b->size() == 1) return "LayerNorm(" + text((*w)[0]) + ")";
  if (w->size() == 3)
    return "Conv1d(in " + text((*w)[1]) + ", out " + text((*w)[0]) + ", kernel " + text((*w)[2]) + ")";
  return {};
}

}  // namespace

std::vector<RecognisedLayer> recognise_layers(const TensorFile& file) {
  std::vector<RecognisedLayer> layers;
  for (const Group& g : grouped(file)) {
    for (const std::string& description : {recurrent(g), cell(g), other(g)})
      if (!description.empty()) layers.push_back({g.prefix, description});
  }
  return layers;
}

}  // namespace ferrite::io
