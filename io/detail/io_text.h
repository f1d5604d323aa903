#pragma once
/// Text of errors about files: quoted and shortened names, paths, shapes.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/tensor/error.h"

namespace ferrite::io::detail {

/// Throws IoError "<where>: <what>".
[[noreturn]] void refuse(std::string_view where, std::string_view what);

/// Throws IoError "<where>: <what>: <text of the errno value>".
[[noreturn]] void refuse_errno(std::string_view where, std::string_view what, int error);

/// A name between single quotes: bytes that are not printable as \xNN, long ones cut in the middle.
std::string quote(std::string_view name);

/// A path as errors show it: as given, but without control characters and never longer than 300 bytes.
std::string shown(const std::filesystem::path& path);

/// "[2, 3]".
std::string bracketed(std::span<const std::int64_t> extents);

/// "1 tensor", "2 tensors".
std::string counted(std::size_t n, std::string_view noun);

/// Position of the first byte that is not UTF-8 (surrogates, overlong forms and values above U+10FFFF are not).
std::optional<std::size_t> invalid_utf8(std::string_view text);

/// Appends a JSON string with its quotes, escaped as serde_json does: only `"`, `\` and control characters.
void append_json_string(std::string& out, std::string_view text);

}  // namespace ferrite::io::detail
