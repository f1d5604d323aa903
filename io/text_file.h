#pragma once
/// Reading and writing whole text files.
#include <filesystem>
#include <string>
#include <string_view>

#include "ferrite/tensor/language.h"

namespace ferrite::io {

/// Returns all bytes of a file unchanged: neither line endings nor encodings are converted. Throws IoError for a file
/// that is missing, unreadable or not regular.
std::string read_text(const std::filesystem::path& path);

/// Writes a text file; an old one is replaced as a whole or not at all (AtomicFile). Throws IoError where it cannot be
/// written.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace ferrite::io
