#pragma once
/// Pickles and checkpoints put together by hand, opcode by opcode.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/io/zip/zip.h"

namespace torch_builder {

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 255);
  return out;
}

inline std::string repeated(std::string_view text, std::size_t n) {
  std::string out;
  out.reserve(text.size() * n);
  for (std::size_t i = 0; i < n; ++i) out += text;
  return out;
}

/// Returns the opcode BINUNICODE with its text.
inline std::string text(std::string_view s) { return "X" + little_endian(s.size(), 4) + std::string(s); }
/// Returns the opcode LONG1 of 8 bytes.
inline std::string integer(std::int64_t value) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}
/// Returns the opcode LONG1 of 9 bytes, for numbers up to 2^64 - 1.
inline std::string wide_integer(std::uint64_t value) { return "\x8a\x09" + little_endian(value, 8) + '\0'; }
inline std::string tuple(const std::string& items) { return "(" + items + "t"; }
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string call(const std::string& function, const std::string& arguments) {
  return function + tuple(arguments) + "R";
}

inline const std::string kHooks = global("collections", "OrderedDict") + ")R";
inline const std::string kFloatStorage = global("torch", "FloatStorage");
inline const std::string kRebuild = global("torch._utils", "_rebuild_tensor_v2");

/// A tensor and its description, to be changed in one place.
struct TensorParts {
  std::string tag = text("storage");
  std::string storage_class = kFloatStorage;
  std::string key = text("0");
  std::string location = text("cpu");
  std::string numel = integer(4);
  std::string offset = integer(0);
  std::string size = tuple(integer(2) + integer(2));
  std::string stride = tuple(integer(2) + integer(1));
  std::string rest = "\x89" + kHooks;
  std::string function = kRebuild;

  std::string storage() const { return tuple(tag + storage_class + key + location + numel) + "Q"; }
  std::string str() const { return call(function, storage() + offset + size + stride + rest); }
};

/// Returns a sound tensor [2, 2].
inline std::string good_tensor() { return TensorParts().str(); }

/// Returns PROTO 2, the value, STOP.
inline std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }
/// Returns a pickle of {"a": value}.
inline std::string named(const std::string& value) { return pickle("}" + text("a") + value + "s"); }

using Members = std::vector<std::pair<std::string, std::string>>;

inline std::string zip(const Members& members) {
  ferrite::io::detail::ZipWriter writer(64);
  for (const auto& [name, content] : members) writer.add(name, std::as_bytes(std::span(content)));
  const std::vector<std::byte> bytes = writer.finish();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string floats(std::size_t n) { return repeated(std::string("\0\0\x80\x3f", 4), n); }

/// Returns a checkpoint of a pickle and a storage "0" of four ones.
inline std::string checkpoint(const std::string& data_pkl, const std::string& storage = floats(4)) {
  return zip({{"a/data.pkl", data_pkl}, {"a/byteorder", "little"}, {"a/data/0", storage}, {"a/version", "3\n"}});
}

/// Returns what torch.jit.save writes: a pickle whose classes the sources declare.
inline std::string scripted(const std::string& value, const std::string& code, const std::string& storage = floats(4)) {
  return zip({{"a/data.pkl", pickle(value)},
              {"a/code/__torch__.py", code},
              {"a/constants.pkl", pickle(")")},
              {"a/data/0", storage},
              {"a/version", "3\n"}});
}
/// Returns an instance of a class "__torch__.<name>" with these attributes.
inline std::string instance(const std::string& name, const std::string& attributes) {
  return global("__torch__", name) + ")\x81}(" + attributes + "ub";
}
/// Returns the source of a module's class.
inline std::string module_class(const std::string& name, const std::string& parameters, const std::string& rest = "") {
  return "class " + name + "(Module):\n  __parameters__ = [" + parameters + "]\n  __buffers__ = []\n" + rest;
}

/// Returns the format before 1.6: the object, the keys of its storages, and the storages.
inline std::string legacy(const std::string& object, const std::string& keys = pickle("]" + text("0") + "a"),
                          const std::string& storages = little_endian(4, 8) + floats(4),
                          const std::string& version = pickle(integer(1001)), const std::string& system = pickle("}")) {
  const std::string magic = pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19");
  return magic + version + system + object + keys + storages;
}

}  // namespace torch_builder
