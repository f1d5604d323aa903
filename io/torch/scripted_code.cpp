/// Reads what the sources of TorchScript declare of their classes.
#include "ferrite/io/torch/scripted_code.h"

#include <algorithm>
#include <optional>

#include "ferrite/io/detail/io_text.h"

namespace ferrite::io::detail {
namespace {

constexpr std::uint64_t kMostSource = 64'000'000;  ///< bytes of the source of a module's classes

/// What a table's node and its strings take beside their text.
constexpr std::size_t kEntry = 160;
constexpr std::size_t kPlace = 48;

/// The source line by line.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  std::optional<std::string_view> next() {
    if (text_.empty()) return std::nullopt;
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    const std::string_view line = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    return line;
  }

 private:
  std::string_view text_;
};

/// "Net" and "Module" of "class Net(Module):", "Pair" and "" of "class Pair:".
struct Head {
  std::string_view name, base;
};

std::optional<Head> head_of(std::string_view line) {
  constexpr std::string_view word = "class ";
  if (!line.starts_with(word) || !line.ends_with(':')) return std::nullopt;
  line = line.substr(word.size(), line.size() - word.size() - 1);
  const std::size_t open = line.find('(');
  if (open == std::string_view::npos) return Head{line, {}};
  if (!line.ends_with(')')) return std::nullopt;
  return Head{line.substr(0, open), line.substr(open + 1, line.size() - open - 2)};
}

/// What follows in a line that begins so.
std::optional<std::string_view> behind(std::string_view line, std::string_view front) {
  if (!line.starts_with(front)) return std::nullopt;
  return line.substr(front.size());
}

/// The next of `"weight", "bias", ]`; nothing at the bracket. Refuses anything else.
std::optional<std::string_view> take_name(std::string_view& list, std::string_view place) {
  if (list == "]") return std::nullopt;
  const std::size_t end = list.starts_with('"') ? list.find('"', 1) : std::string_view::npos;
  if (end == std::string_view::npos) refuse(place, "a list of parameters or buffers is damaged: " + quote(list));
  const std::string_view name = list.substr(1, end - 1);
  list.remove_prefix(end + 1);
  if (list.starts_with(", ")) list.remove_prefix(2);
  return name;
}

}  // namespace

void ScriptedCode::charge(std::size_t bytes) {
  if (bytes > left_)
    refuse(where_, "the classes of the code need more memory than a file of this size warrants: above " +
                       std::to_string(bytes) + " bytes");
  left_ -= bytes;
}

const ScriptedClass& ScriptedCode::of(const Pickle& pickle, PickleValue scripted_class) {
  static const ScriptedClass native;
  const auto found = by_place_.find(scripted_class.place());
  if (found != by_place_.end()) return *found->second;
  charge(kPlace);
  const auto [module, name] = pickle.class_name(scripted_class);
  const ScriptedClass& made = module.starts_with("__torch__.torch.classes") ? native : find(module, name);
  by_place_.emplace(scripted_class.place(), &made);
  return made;
}

const ScriptedClass& ScriptedCode::find(std::string_view module, std::string_view name) {
  const std::string whole = std::string(module) + "." + std::string(name);
  auto found = by_name_.find(whole);
  if (found == by_name_.end() && !read_.contains(module)) {
    read(module);
    found = by_name_.find(whole);
  }
  if (found == by_name_.end()) refuse(where_, "the code of the archive has no class " + quote(whole));
  return found->second;
}

void ScriptedCode::read(std::string_view module) {
  charge(kEntry + module.size());
  read_.emplace(module);
  std::string path(module);
  std::ranges::replace(path, '.', '/');
  path = folder_ + "code/" + path + ".py";
  const ZipEntry* entry = archive_.find(path);
  if (entry == nullptr) refuse(where_, "the code of a class is missing: the archive holds no " + quote(path));
  const ZipData data = archive_.read(*entry, kMostSource);
  const std::string place = where_ + ": " + quote(path);

  ScriptedClass* current = nullptr;
  const auto close = [&] {
    if (current != nullptr) std::ranges::sort(current->tensors);
  };
  Lines lines({reinterpret_cast<const char*>(data.bytes().data()), data.bytes().size()});
  while (const auto line = lines.next()) {
    if (const auto head = head_of(*line)) {
      close();
      charge(kEntry + module.size() + head->name.size());
      const auto [at, is_new] = by_name_.try_emplace(std::string(module) + "." + std::string(head->name));
      if (!is_new) refuse(place, "a class is there twice: " + quote(head->name));
      current = &at->second;
      current->is_module = head->base == "Module";
      continue;
    }
    if (current == nullptr) continue;
    if (line->starts_with("  def __setstate__(")) current->restores_itself = true;
    auto list = behind(*line, "  __parameters__ = [");
    if (const auto buffers = behind(*line, "  __buffers__ = [")) {
      current->lists_buffers = true;
      list = buffers;
    }
    if (!list) continue;
    while (const auto name = take_name(*list, place)) {
      charge(2 * sizeof(std::string) + name->size());
      current->tensors.emplace_back(*name);
    }
  }
  close();
}

}  // namespace ferrite::io::detail
