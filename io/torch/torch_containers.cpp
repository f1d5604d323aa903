/// Reads the containers of PyTorch's files: zip archives, including TorchScript's, and the sequences of pickles from
/// before version 1.6.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch/pickle.h"
#include "ferrite/io/torch/torch_index.h"
#include "ferrite/io/zip/zip.h"

namespace ferrite::io::detail {

/// The declarations of a TorchScript class.
struct ScriptedClass {
  bool is_module = false;
  bool restores_itself = false;      ///< whether it has its own __setstate__
  bool lists_buffers = false;        ///< whether it has `__buffers__`, which old versions lack
  std::vector<std::string> tensors;  ///< its parameters and buffers, sorted by name
};

/// The classes of an archive, read when they are asked for. Only these lines of their sources are read:
///
///     class Net(Module):
///       __parameters__ = ["weight", "bias", ]
///       __buffers__ = ["mean", ]
///       def __setstate__(self, ...
class ScriptedCode {
 public:
  /// The class "__torch__.models", "Net" has its source at <folder>code/__torch__/models.py. The declarations kept from
  /// all sources take at most `most_bytes`. The archive must outlive this.
  ScriptedCode(const ZipArchive& archive, std::string folder, std::string_view where, std::size_t most_bytes)
      : archive_(archive), folder_(std::move(folder)), where_(where), left_(most_bytes) {}

  /// Returns the declarations of a class. Throws IoError where the archive does not have it, or where a source cannot
  /// be understood. PyTorch's own C++ classes, torch.classes, have no source and are not modules.
  const ScriptedClass& of(const Pickle& pickle, PickleValue scripted_class);

 private:
  const ScriptedClass& find(std::string_view module, std::string_view name);
  void read(std::string_view module);
  void charge(std::size_t bytes);

  const ZipArchive& archive_;
  std::string folder_;
  std::string where_;
  std::size_t left_;
  std::unordered_map<std::uint32_t, const ScriptedClass*> by_place_;  ///< classes by their place in the pickle
  std::set<std::string, std::less<>> read_;                           ///< names of modules whose source was read
  std::map<std::string, ScriptedClass, std::less<>> by_name_;         ///< classes by name, "__torch__.models.Net"
};

// ---- what the sources of TorchScript declare of their classes ------------------------------------------

namespace {

constexpr std::uint64_t kMostSource = 64'000'000;  ///< largest source of a Python module, in bytes

/// Number of bytes that a table's node and its strings take in addition to their text.
constexpr std::size_t kEntry = 160;
constexpr std::size_t kPlace = 48;

/// Reads the source line by line.
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

/// The name and base of a class: "Net" and "Module" in "class Net(Module):", "Pair" and "" in "class Pair:".
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

/// Returns the rest of a line that begins with `front`, or nothing.
std::optional<std::string_view> behind(std::string_view line, std::string_view front) {
  if (!line.starts_with(front)) return std::nullopt;
  return line.substr(front.size());
}

/// Takes the next name from `"weight", "bias", ]`; returns nothing at the bracket. Refuses anything else.
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

// ---- the modules of TorchScript ------------------------------------------------------------------------

namespace {

using Kind = PickleKind;

bool is_module(const Pickle& pickle, ScriptedCode& code, PickleValue value) {
  return value.kind() == Kind::instance && code.of(pickle, pickle.class_of(value)).is_module;
}

/// Walks over a module and its submodules.
class ModuleFlattener : IndexBuilder {
 public:
  ModuleFlattener(const Pickle& pickle, ScriptedCode& code, std::string_view where)
      : IndexBuilder(pickle, where), code_(code) {}

  TorchIndex run(PickleValue root) {
    if (is_tensor(pickle_, root)) {
      name_ = kBareName;
      add_tensor(root);
    } else if (is_module(pickle_, code_, root)) {
      walk(root);
    } else {
      refuse(where_, "holds no module: it is " + std::string(with_article(root.kind())));
    }
    return finish();
  }

 private:
  /// A module on the path from the root.
  struct Frame {
    PickleValue module;
    const ScriptedClass* made_of;
    Pickle::Items attributes;
    std::size_t name_size;  ///< length of the module's own name
    std::size_t found = 0;  ///< number of parameters and buffers found
  };

  void enter(PickleValue module) {
    check_level(frames_.size());
    for (const Frame& frame : frames_)
      if (frame.module == module) fail("contains itself");
    const ScriptedClass& made_of = code_.of(pickle_, pickle_.class_of(module));
    if (made_of.restores_itself)
      fail(
          "a module that restores itself with its own code, __setstate__; save the weights: "
          "torch.save(model.state_dict(), path)");
    const PickleValue state = pickle_.state_of(module);
    if (state.kind() != Kind::dictionary)
      fail("the state of a module is no dictionary: " + std::string(with_article(state.kind())));
    frames_.push_back({module, &made_of, pickle_.items(state), name_.size()});
  }

  void walk(PickleValue root) {
    enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      name_.resize(frame.name_size);
      const auto key = frame.attributes.next();
      if (!key) {
        leave(frame);
        continue;
      }
      if (key->kind() != Kind::text)
        fail("the name of an attribute is no string: " + std::string(with_article(key->kind())));
      const std::string_view attribute = pickle_.text(*key);
      if (frames_.size() > 1) name_ += '.';
      name_ += attribute;
      visit(frame, attribute, *frame.attributes.next());  // a dictionary holds pairs
    }
  }

  void visit(Frame& frame, std::string_view attribute, PickleValue value) {
    count_visit();
    const ScriptedClass& made_of = *frame.made_of;
    const bool tensor = is_tensor(pickle_, value);
    if (std::ranges::binary_search(made_of.tensors, attribute)) {
      ++frame.found;
      if (!tensor && value.kind() != Kind::none)
        fail("a parameter or buffer is neither a tensor nor None: " + std::string(with_article(value.kind())));
      if (tensor) add_tensor(value);
    } else if (tensor && !made_of.lists_buffers) {
      add_tensor(value);
    } else if (is_module(pickle_, code_, value)) {
      enter(value);
    }
  }

  void leave(const Frame& frame) {
    if (frame.found < frame.made_of->tensors.size())
      fail("lacks parameters or buffers of its class: it has " + std::to_string(frame.found) + " of " +
           std::to_string(frame.made_of->tensors.size()));
    frames_.pop_back();
  }

  ScriptedCode& code_;
  std::vector<Frame> frames_;
};

/// Returns the attribute of a module with a name, or nothing.
std::optional<PickleValue> attribute_of(const Pickle& pickle, PickleValue module, std::string_view name) {
  const PickleValue state = pickle.state_of(module);
  if (state.kind() != Kind::dictionary) return std::nullopt;
  Pickle::Items items = pickle.items(state);
  while (const auto key = items.next()) {
    const auto value = items.next();
    if (key->kind() == Kind::text && pickle.text(*key) == name) return value;
  }
  return std::nullopt;
}

}  // namespace

TorchIndex flatten_module(const Pickle& pickle, ScriptedCode& code, std::string_view key, std::string_view where) {
  PickleValue part = pickle.root();
  for (std::string_view path = key; !path.empty();) {
    const std::string_view name = path.substr(0, path.find('.'));
    const auto next = is_module(pickle, code, part) ? attribute_of(pickle, part, name) : std::nullopt;
    if (!next) refuse(where, "the module has no part of this name: " + quote(key));
    part = *next;
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return ModuleFlattener(pickle, code, where).run(part);
}

// ---- zip archives --------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kFreeCode = std::size_t{1} << 17;
constexpr std::uint64_t kMostNote = 64;  ///< largest size of `version` and `byteorder` in bytes

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

/// Returns the folder that holds everything, with its slash.
std::string folder_of(const ZipArchive& archive, std::string_view where) {
  constexpr std::string_view pickle = "data.pkl";
  std::string_view folder;
  int found = 0;
  for (const ZipEntry& entry : archive.entries()) {
    const std::string_view name = entry.name;
    const std::size_t slash = name.find('/');
    if (slash == std::string_view::npos || name.substr(slash + 1) != pickle) continue;
    folder = name.substr(0, slash + 1);
    ++found;
  }
  if (found > 1) refuse(where, "holds more than one checkpoint: " + counted(static_cast<std::size_t>(found), pickle));
  if (found == 0)
    refuse(where, archive.find(pickle) != nullptr
                      ? "'data.pkl' is in no folder of the archive: PyTorch puts it into one"
                      : "no checkpoint of PyTorch: the zip archive holds no '<folder>/data.pkl'");
  return std::string(folder);
}

/// Returns whether torch.jit.save wrote the archive.
bool is_scripted(const ZipArchive& archive, const std::string& folder) {
  const std::string code = folder + "code/";
  return archive.find(folder + "constants.pkl") != nullptr ||
         std::ranges::any_of(archive.entries(), [&](const ZipEntry& entry) { return entry.name.starts_with(code); });
}

/// Reads the members `version` and `byteorder`. Returns the byte order.
ByteOrder read_notes(const ZipArchive& archive, const std::string& folder, std::string_view where) {
  const ZipEntry* version = archive.find(folder + "version");
  if (version == nullptr) refuse(where, "the archive holds no " + quote(folder + "version"));
  const ZipData data = archive.read(*version, kMostNote);
  const std::string_view number = trimmed(text_of(data.bytes()));
  if (number.empty() || number.size() > 2 || !std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }))
    refuse(where, "the archive's version is no number: " + quote(number));
  const ZipEntry* order = archive.find(folder + "byteorder");
  if (order == nullptr) return ByteOrder::little;
  const ZipData order_data = archive.read(*order, kMostNote);
  const std::string_view word = trimmed(text_of(order_data.bytes()));
  if (word != "little" && word != "big") refuse(where, "the byte order is neither little nor big: " + quote(word));
  return word == "big" ? ByteOrder::big : ByteOrder::little;
}

/// Finds the storages of the tensors; those that are not compressed are checked now, once each.
class Records {
 public:
  Records(std::unique_ptr<ZipArchive> archive, std::string folder, std::string_view where)
      : archive_(std::move(archive)), folder_(std::move(folder) + "data/"), where_(where) {
    checked_.resize(archive_->entries().size());
  }

  void resolve(TorchIndex& index) {
    for (TorchTensor& tensor : index.tensors) {
      const std::string name = folder_ + std::string(index.text(tensor.key));
      const std::string place = where_ + ": " + quote(index.text(tensor.name));
      const ZipEntry* entry = archive_->find(name);
      if (entry == nullptr) refuse(place, "the storage is missing: the archive holds no " + quote(name));
      if (entry->size < tensor.storage_bytes || entry->size - tensor.storage_bytes >= tensor.unit)
        refuse(place, "the storage is not as large as the pickle says: " + counted(entry->size, "byte") + ", not " +
                          std::to_string(tensor.storage_bytes));
      const auto number = static_cast<std::size_t>(entry - archive_->entries().data());
      tensor.record = entry->deflated ? number : entry->begin;
      tensor.packed = entry->deflated;
      packed_ = packed_ || entry->deflated;
      if (!entry->deflated && !checked_[number]) archive_->read(*entry, entry->size);
      checked_[number] = true;
    }
  }

  /// Returns the archive, if tensors will need it, or null.
  std::unique_ptr<ZipArchive> release() { return packed_ ? std::move(archive_) : nullptr; }

 private:
  std::unique_ptr<ZipArchive> archive_;
  std::string folder_;
  std::string where_;
  std::vector<bool> checked_;
  bool packed_ = false;
};

TorchIndex read_pickle_of(const ZipArchive& archive, const std::string& folder, std::string_view key,
                          std::string_view where) {
  const ZipData data = archive.read(*archive.find(folder + "data.pkl"), kMostPickleBytes);
  const bool scripted = is_scripted(archive, folder);
  const Pickle pickle = read_pickle(data.bytes(), where, scripted ? PickleClasses::scripted : PickleClasses::none);
  if (pickle.size() != data.bytes().size())
    refuse(where,
           "something follows the pickle in 'data.pkl': " + counted(data.bytes().size() - pickle.size(), "byte"));
  for (const PickleValue id : pickle.persistent_ids()) storage_of(pickle, id, where);
  if (!scripted) return flatten(pickle, key, where);
  ScriptedCode code(archive, folder, where, kFreeCode + 4 * pickle.size());
  return flatten_module(pickle, code, key, where);
}

}  // namespace

TorchContents read_torch_zip(std::span<const std::byte> bytes, std::string_view key, std::string_view where,
                             const ReadOptions& options) {
  auto archive = std::make_unique<ZipArchive>(bytes, where, options.most_inflated);
  const std::string folder = folder_of(*archive, where);
  TorchContents contents;
  contents.order = read_notes(*archive, folder, where);
  contents.index = read_pickle_of(*archive, folder, key, where);
  Records records(std::move(archive), folder, where);
  records.resolve(contents.index);
  contents.archive = records.release();
  return contents;
}

// ---- sequences of pickles --------------------------------------------------------------------------------

namespace {

/// The bytes of the first value of a file, LONG1 of 0x1950a86a20f9469cfc6c.
constexpr std::array<unsigned char, 12> kMagic = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                                  0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
constexpr std::int64_t kProtocolVersion = 1001;

/// A storage that the pickle names, and its position in the file.
struct Place {
  std::string_view key;
  std::uint64_t bytes = 0;
  std::uint64_t unit = 1;
  std::uint64_t begin = 0;  ///< position in the file; 0: not found yet
};

class LegacyReader {
 public:
  LegacyReader(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  TorchContents read(std::string_view key) {
    next_pickle();  // the magic number, which was checked already
    check_version();
    check_system();
    const Pickle object = next_pickle();
    collect(object);
    TorchContents contents;
    contents.index = flatten(object, key, where_);
    locate(next_pickle());
    if (at_ != bytes_.size()) refuse(where_, "something follows the storages: " + counted(bytes_.size() - at_, "byte"));
    for (TorchTensor& tensor : contents.index.tensors) tensor.record = find(contents.index.text(tensor.key)).begin;
    return contents;
  }

 private:
  Pickle next_pickle() {
    Pickle pickle = read_pickle(bytes_.subspan(at_), where_);
    at_ += pickle.size();
    return pickle;
  }

  void check_version() {
    const Pickle version = next_pickle();
    const auto number = version.root().kind() == Kind::integer ? version.integer(version.root()) : std::nullopt;
    if (number != kProtocolVersion)
      refuse(where_, "the format's version is not 1001: " + (number ? std::to_string(*number) : "no integer"));
  }

  void check_system() {
    const Pickle system = next_pickle();
    if (system.root().kind() != Kind::dictionary) refuse(where_, "the description of the system is no dictionary");
    Pickle::Items items = system.items(system.root());
    while (const auto key = items.next()) {
      const auto value = items.next();
      if (key->kind() != Kind::text || system.text(*key) != "little_endian") continue;
      if (value->kind() != Kind::boolean || !system.boolean(*value))
        refuse(where_, "the byte order is not little; load and save it on a little-endian machine");
    }
  }

  /// Collects the storages that the pickle names, once each.
  void collect(const Pickle& pickle) {
    places_.reserve(pickle.persistent_ids().size());
    for (const PickleValue id : pickle.persistent_ids()) {
      const TorchStorage storage = storage_of(pickle, id, where_);
      places_.push_back({storage.key, storage.bytes, storage.unit, 0});
    }
    std::ranges::stable_sort(places_, {}, &Place::key);
    for (std::size_t i = 1; i < places_.size(); ++i) {
      const Place& a = places_[i - 1];
      const Place& b = places_[i];
      if (a.key == b.key && (a.bytes != b.bytes || a.unit != b.unit))
        refuse(where_, "a storage is named with two sizes: " + quote(a.key) + ", " + counted(a.bytes, "byte") +
                           " and " + std::to_string(b.bytes));
    }
    const auto same = [](const Place& a, const Place& b) { return a.key == b.key; };
    places_.erase(std::unique(places_.begin(), places_.end(), same), places_.end());
  }

  Place& find(std::string_view key) {
    const auto found = std::ranges::lower_bound(places_, key, {}, &Place::key);
    if (found == places_.end() || found->key != key)
      refuse(where_, "a storage of the list is used nowhere: " + quote(key));
    return *found;
  }

  /// Finds the storages in the file, where each key's number of elements and elements follow in the order of `keys`.
  void locate(const Pickle& keys) {
    if (keys.root().kind() != Kind::list) refuse(where_, "the list of storages is " + with(keys.root()));
    Pickle::Items items = keys.items(keys.root());
    while (const auto key = items.next()) {
      if (key->kind() != Kind::text) refuse(where_, "the key of a storage is " + with(*key));
      read_storage(find(keys.text(*key)));
    }
    for (const Place& place : places_)
      if (place.begin == 0) refuse(where_, "the storage is missing: " + quote(place.key));
  }

  void read_storage(Place& place) {
    if (place.begin != 0) refuse(where_, "a storage is there twice: " + quote(place.key));
    std::uint64_t elements = 0;
    if (bytes_.size() - at_ < sizeof(elements)) refuse(where_, "the file is cut short before " + quote(place.key));
    std::memcpy(&elements, bytes_.data() + at_, sizeof(elements));
    at_ += sizeof(elements);
    if (elements != place.bytes / place.unit)
      refuse(where_, "the storage is not as large as the pickle says: " + quote(place.key) + ", " +
                         std::to_string(elements) + " elements, not " + std::to_string(place.bytes / place.unit));
    if (place.bytes > bytes_.size() - at_)
      refuse(where_, "the file is cut short in the storage " + quote(place.key) + ": " + counted(place.bytes, "byte") +
                         " wanted, " + std::to_string(bytes_.size() - at_) + " are left");
    place.begin = at_;
    at_ += static_cast<std::size_t>(place.bytes);
  }

  static std::string with(PickleValue value) { return std::string(with_article(value.kind())); }

  std::span<const std::byte> bytes_;
  std::string where_;
  std::size_t at_ = 0;
  std::vector<Place> places_;  ///< storages sorted by their keys
};

}  // namespace

bool looks_like_legacy(std::span<const std::byte> bytes) {
  const std::span<const std::byte> front = bytes.first(std::min<std::size_t>(bytes.size(), 32));
  const auto same = [](std::byte a, unsigned char b) { return std::to_integer<unsigned char>(a) == b; };
  return !front.empty() && front[0] == std::byte{0x80} &&
         std::search(front.begin(), front.end(), kMagic.begin(), kMagic.end(), same) != front.end();
}

TorchContents read_torch_legacy(std::span<const std::byte> bytes, std::string_view key, std::string_view where) {
  return LegacyReader(bytes, where).read(key);
}

}  // namespace ferrite::io::detail
