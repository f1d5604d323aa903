#pragma once
/// A table of hostile GGUF files, made in memory: the file, and how reading it must end.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "hostile_suite.h"

namespace hostile_gguf {

using hostile_suite::Case;
using hostile_suite::Verdict;

template <class T>
std::string le(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
inline std::string u32(std::uint32_t n) { return le(n); }
inline std::string u64(std::uint64_t n) { return le(n); }
inline std::string text(const std::string& s) { return u64(s.size()) + s; }

inline constexpr std::uint32_t kU32 = 4, kBool = 7, kString = 8, kList = 9;
inline constexpr std::uint32_t kF32 = 0, kQ80 = 8, kQ4K = 12;

inline std::string key(const std::string& name, std::uint32_t type, const std::string& value) {
  return text(name) + u32(type) + value;
}
inline std::string tensor(const std::string& name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                          std::uint64_t offset) {
  std::string out = text(name) + u32(static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t d : dims) out += u64(d);
  return out + u32(type) + u64(offset);
}

struct File {
  std::vector<std::string> keys, tensors;
  std::size_t data = 0;
  std::string head = "GGUF" + u32(3);
  std::size_t alignment = 32;

  std::string bytes() const {
    std::string out = head + u64(tensors.size()) + u64(keys.size());
    for (const std::string& k : keys) out += k;
    for (const std::string& t : tensors) out += t;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + std::string(data, '\0');
  }
};

/// Returns a file of one key and the tensor "a" of 8 f32.
inline File good() { return {{key("general.architecture", kString, text("x"))}, {tensor("a", {4, 2}, kF32, 0)}, 32}; }
inline std::string with_key(const std::string& k) {
  File f = good();
  f.keys.push_back(k);
  return f.bytes();
}
inline std::string with_tensor(const std::string& t, std::size_t data = 32) {
  File f = good();
  f.tensors = {t};
  f.data = data;
  return f.bytes();
}
inline std::string with_both(const std::string& a, const std::string& b, std::size_t data) {
  File f = good();
  f.tensors = {a, b};
  f.data = data;
  return f.bytes();
}
inline std::string counts(std::uint64_t tensors, std::uint64_t keys) {
  return "GGUF" + u32(3) + u64(tensors) + u64(keys) + std::string(64, '\0');
}
inline std::string many_keys(std::size_t n) {
  File f = good();
  f.keys.clear();
  for (std::size_t i = 0; i < n; ++i) f.keys.push_back(key(std::to_string(i), kBool, std::string(1, '\1')));
  return f.bytes();
}

inline std::vector<Case> of_heads() {
  using enum Verdict;
  const std::string g = good().bytes();
  return {
      {"good", g, legal, ""},
      {"version_2", "GGUF" + u32(2) + g.substr(8), legal, ""},
      {"empty", "", refused, "does not begin with 'GGUF'"},
      {"other_magic", "GGML" + g.substr(4), refused, "does not begin with 'GGUF'"},
      {"no_version", "GGUF\3", refused, "the version at byte 4 reaches beyond the end"},
      {"version_1", "GGUF" + u32(1) + g.substr(8), refused, "version 1; supported are 2 and 3"},
      {"version_4", "GGUF" + u32(4) + g.substr(8), refused, "version 4"},
      {"big_endian", "GGUF" + u32(0x03000000) + g.substr(8), refused, "big-endian"},
      {"no_counts", g.substr(0, 12), refused, "the number of tensors at byte 8 reaches beyond the end"},
      {"tensors_2_to_63", counts(1ULL << 63, 0), refused, "more than the file has room for: 9223372036854775808"},
      {"tensors_2_to_64_less_1", counts(~0ULL, 0), refused, "the number of tensors is more than"},
      {"keys_2_to_63", counts(0, 1ULL << 63), refused, "the number of keys is more than"},
      {"keys_4096", many_keys(4096), legal, ""},
      {"keys_4097", many_keys(4097), refused, "has 4097 keys, at most 4096 are read"},
  };
}

inline std::vector<Case> of_keys() {
  using enum Verdict;
  const auto list = [](std::uint32_t type, std::uint64_t n, const std::string& elements) {
    return with_key(key("l", kList, u32(type) + u64(n) + elements));
  };
  const auto alignment = [](std::uint32_t n) { return with_key(key("general.alignment", kU32, u32(n))); };
  return {
      {"key_twice", with_key(key("general.architecture", kU32, u32(1))), refused,
       "a key occurs twice: 'general.architecture'"},
      {"key_with_a_nul", with_key(key(std::string("a\0b", 3), kU32, u32(1))), refused, "a key holds a NUL"},
      {"key_no_utf8", with_key(key("\xff", kU32, u32(1))), refused, "a key is not UTF-8"},
      {"key_of_2_to_63", with_key(u64(1ULL << 63) + "abc"), refused, "a key at byte"},
      {"value_of_type_13", with_key(key("k", 13, u32(1))), refused, "'k' is of an unknown type: 13"},
      {"text_of_2_to_64_less_1", with_key(key("k", kString, u64(~0ULL))), refused, "a text at byte"},
      {"boolean_2", with_key(key("k", kBool, "\2")), refused, "a boolean of 'k' is neither 0 nor 1: 2"},
      {"list", list(kU32, 2, u32(1) + u32(2)), legal, ""},
      {"list_of_none", list(kU32, 0, ""), legal, ""},
      {"list_of_texts", list(kString, 2, text("") + text("b")), legal, ""},
      {"list_of_lists", list(kList, 1, u32(kU32) + u64(1) + u32(1)), refused, "'l' is a list of lists"},
      {"list_of_type_99", list(99, 1, u32(1)), refused, "'l' is of an unknown type: 99"},
      {"list_of_2_to_62", list(kU32, 1ULL << 62, ""), refused, "the length of a list is more than"},
      {"list_of_texts_2_to_61", list(kString, 1ULL << 61, ""), refused, "the length of a list is more than"},
      {"list_of_booleans_3", list(kBool, 1, "\3"), refused, "a boolean of 'l' is neither 0 nor 1: 3"},
      {"list_with_a_long_text", list(kString, 1, u64(1ULL << 40)), refused, "a text of a list at byte"},
      {"alignment_0", alignment(0), refused, "general.alignment is not a power of two: 0"},
      {"alignment_24", alignment(24), refused, "general.alignment is not a power of two: 24"},
      {"alignment_8", alignment(8), legal, ""},
      {"alignment_2_to_31", alignment(1U << 31), refused, "'a' at offset 0 reaches beyond the end"},
      {"alignment_a_text", with_key(key("general.alignment", kString, text("32"))), refused,
       "general.alignment is no u32"},
  };
}

inline std::vector<Case> of_tensors() {
  using enum Verdict;
  constexpr std::uint64_t kMost = ~0ULL;
  return {
      {"no_data", with_tensor(tensor("a", {4, 2}, kF32, 0), 31), refused,
       "'a' at offset 0 reaches beyond the end of the file: 32 bytes of 31"},
      {"offset_beyond", with_tensor(tensor("a", {1}, kF32, 64)), refused, "'a' at offset 64 reaches beyond the end"},
      {"offset_2_to_64_less_32", with_tensor(tensor("a", {1}, kF32, kMost - 31)), refused, "reaches beyond the end"},
      {"offset_unaligned", with_tensor(tensor("a", {1}, kF32, 4)), refused,
       "'a' at offset 4 is not aligned to 32 bytes"},
      {"overlap", with_both(tensor("a", {16}, kF32, 0), tensor("b", {8}, kF32, 32), 64), refused,
       "'b' at offset 32 overlaps 'a'"},
      {"same_bytes", with_both(tensor("a", {8}, kF32, 0), tensor("b", {8}, kF32, 0), 64), refused, "overlaps"},
      {"side_by_side", with_both(tensor("b", {8}, kF32, 32), tensor("a", {8}, kF32, 0), 64), legal, ""},
      {"empty_beside", with_both(tensor("a", {8}, kF32, 0), tensor("b", {0, 8}, kF32, 0), 32), legal, ""},
      {"name_twice", with_both(tensor("a", {8}, kF32, 0), tensor("a", {8}, kF32, 32), 64), refused,
       "a name occurs twice: 'a'"},
      {"name_with_a_nul", with_tensor(tensor(std::string("a\0", 2), {1}, kF32, 0)), refused,
       "the name of a tensor holds a NUL"},
      {"name_of_2_to_63", with_tensor(u64(1ULL << 63)), refused, "the name of a tensor at byte"},
      {"dimensions_9", with_tensor(tensor("a", std::vector<std::uint64_t>(9, 1), kF32, 0)), refused,
       "'a' has too many dimensions: 9, at most 8"},
      {"dimensions_2_to_32", with_tensor(text("a") + u32(~0U)), refused, "too many dimensions: 4294967295"},
      {"dimensions_8", with_tensor(tensor("a", std::vector<std::uint64_t>(8, 1), kF32, 0)), legal, ""},
      {"scalar", with_tensor(tensor("a", {}, kF32, 0)), legal, ""},
      {"extent_2_to_63", with_tensor(tensor("a", {1ULL << 63}, kF32, 0)), refused,
       "'a' has an extent above 2^63 - 1: 9223372036854775808"},
      {"extents_that_wrap", with_tensor(tensor("a", {1ULL << 32, 1ULL << 32}, kF32, 0)), refused,
       "'a' has more elements than can be counted: shape [4294967296, 4294967296]"},
      {"extents_that_wrap_beside_0", with_tensor(tensor("a", {1ULL << 62, 0, 4}, kF32, 0)), refused,
       "more elements than can be counted"},
      {"bytes_that_wrap", with_tensor(tensor("a", {1ULL << 62}, kF32, 0)), refused, "more bytes than can be counted"},
      {"rows_of_33", with_tensor(tensor("a", {33}, kQ80, 0), 68), refused,
       "'a' has rows of 33 elements, which are no whole blocks of 32: Q8_0"},
      {"rows_of_32_of_256", with_tensor(tensor("a", {32, 8}, kQ4K, 0), 144), refused, "no whole blocks of 256: Q4_K"},
      {"scalar_in_blocks", with_tensor(tensor("a", {}, kQ80, 0)), refused, "rows of 1 elements"},
      {"unsupported_type", with_tensor(tensor("a", {32}, 20, 0)), refused_later,
       "'a': unsupported type: IQ4_NL; supported are F32"},
      {"unknown_type", with_tensor(tensor("a", {32}, 1000, 0)), refused_later, "'a': unsupported type: type 1000"},
      {"unknown_type_of_many", with_tensor(tensor("a", {1ULL << 61}, 1000, 0)), refused_later, "type 1000"},
  };
}

inline std::vector<Case> all() {
  std::vector<Case> cases;
  for (const auto& part : {of_heads(), of_keys(), of_tensors()}) cases.insert(cases.end(), part.begin(), part.end());
  return cases;
}

}  // namespace hostile_gguf
