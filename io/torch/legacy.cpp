/// Reads PyTorch's files from before version 1.6: a sequence of pickles.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch/container.h"

namespace ferrite::io::detail {
namespace {

using Kind = PickleKind;

/// LONG1 of 0x1950a86a20f9469cfc6c, the first value of a file.
constexpr std::array<unsigned char, 12> kMagic = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                                  0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
constexpr std::int64_t kProtocolVersion = 1001;

/// A storage that the pickle names, and where it is in the file.
struct Place {
  std::string_view key;
  std::uint64_t bytes = 0;
  std::uint64_t unit = 1;
  std::uint64_t begin = 0;  ///< 0: not met yet
};

class LegacyReader {
 public:
  LegacyReader(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  TorchContents read(std::string_view key) {
    next_pickle();  // the magic number, seen already
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

  /// The storages that the pickle names, each once.
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

  /// Walks over the list of keys; for each, the number of elements and the elements follow.
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
  std::vector<Place> places_;  ///< in the order of their keys
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
