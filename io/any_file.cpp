/// Opens a file of weights of any format, recognised by its first bytes, and recognises layers by the names and shapes
/// of a state_dict.
#include "ferrite/io/any_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <unordered_map>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/gguf.h"
#include "ferrite/io/json_weights.h"
#include "ferrite/io/numpy.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/torch.h"
#include "ferrite/io/zip/zip.h"

// ---- files ---------------------------------------------------------------------------------------------

namespace ferrite::io {

/// Safetensors has the length of its header in the first eight bytes, followed by '{'.
FileFormat file_format(std::span<const std::byte> head, std::uint64_t file_size) {
  const auto begins = [&](std::string_view magic) {
    return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
  };
  if (begins("\x93NUMPY")) return FileFormat::npy;
  if (begins("GGUF")) return FileFormat::gguf;
  if (detail::looks_like_zip(head)) return FileFormat::zip;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8 && i < head.size(); ++i) length |= static_cast<std::uint64_t>(head[i]) << (8 * i);
  const bool fits = head.size() > 8 && length <= file_size && length + 8 <= file_size;
  if (fits && head[8] == std::byte{'{'}) return FileFormat::safetensors;
  if (begins("\x80")) return FileFormat::legacy_torch;
  if (fits) return FileFormat::safetensors;
  for (const std::byte b : head) {
    const char c = static_cast<char>(b);
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    return c == '{' || c == '[' ? FileFormat::json : FileFormat::unknown;
  }
  return FileFormat::unknown;
}

namespace {

/// Returns whether the first member of an archive is named as NumPy's are. An archive without members is NumPy's, as
/// PyTorch's have a pickle.
bool is_npz(std::span<const std::byte> head) {
  if (detail::zip::number<std::uint32_t>(head, 0) == detail::zip::kEnd) return true;
  constexpr std::size_t kNameLength = 26, kName = 30;  // positions in a local header
  if (head.size() < kName) return false;
  const auto length = static_cast<std::size_t>(head[kNameLength]) | static_cast<std::size_t>(head[kNameLength + 1])
                                                                        << 8;
  if (head.size() < kName + length) return false;
  return std::string_view(reinterpret_cast<const char*>(head.data()) + kName, length).ends_with(".npy");
}

}  // namespace

TensorFile read_tensors(const std::filesystem::path& path, const ReadOptions& options) {
  std::array<std::byte, 512> bytes{};
  detail::InputFile file(path);
  const std::string& where = file.where();
  const std::uint64_t size = file.size();
  const std::span<std::byte> head =
      std::span(bytes).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), size)));
  file.read(head);
  switch (file_format(head, size)) {
    case FileFormat::safetensors: return read_safetensors(path, options);
    case FileFormat::legacy_torch: return read_torch(path, "", options);
    case FileFormat::zip: return is_npz(head) ? read_npz(path, options) : read_torch(path, "", options);
    case FileFormat::npy: return tensor_file_of({{"array", read_npy(path, Elements::as_stored)}}, where);
    case FileFormat::gguf: return read_gguf(path);
    case FileFormat::json: return read_json_weights(path);
    case FileFormat::unknown: break;
  }
  detail::refuse(where, "is in no format that is known here: safetensors, PyTorch's .pt, .npz, .npy, GGUF, JSON");
}

void write_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors, const Metadata& metadata) {
  const std::string ending = path.extension().string();
  if (ending == ".safetensors") return write_safetensors(path, tensors, metadata);
  if (ending == ".pt" || ending == ".pth") return write_torch(path, tensors);
  if (ending == ".npz") return write_npz(path, tensors);
  if (ending == ".gguf") return write_gguf(path, tensors, {metadata.begin(), metadata.end()});
  detail::refuse(detail::shown(path), "ends with " + detail::quote(ending) +
                                          ", whose ending names no format; use .safetensors, .pt, .pth, .npz or .gguf");
}

// ---- layers --------------------------------------------------------------------------------------------

namespace {

using Extents = std::vector<std::int64_t>;

/// The tensors with one prefix, by the last part of their names.
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

/// Returns the description of a recurrent layer, "GRU(input 12, hidden 64, ...)"; empty where the group is not one.
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
