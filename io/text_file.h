#pragma once
/// Files of text, read and written whole.
#include <filesystem>
#include <string>
#include <string_view>

#include "ferrite/tensor/language.h"

namespace ferrite::io {

/// All bytes of a file, as they are: neither ends of lines nor encodings change. Throws IoError for what is missing,
/// not readable or no regular file.
std::string read_text(const std::filesystem::path& path);

/// Writes a file so that an old one is replaced as a whole or not at all (AtomicFile). Throws IoError.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace ferrite::io
