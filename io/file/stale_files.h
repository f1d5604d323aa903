#pragma once
/// Temporary files of saves: their names, and the removal of abandoned ones.
#include <filesystem>
#include <string>

namespace ferrite::io::detail {

/// ".<name>.tmp.", the name cut so that a temporary name stays below the 255 bytes that file systems allow.
std::string temporary_stem(const std::filesystem::path& target);
/// A name in the target's folder that no living process uses.
std::filesystem::path temporary_path(const std::filesystem::path& target);
/// Removes the temporary files of a target whose processes have died. Never throws: another save will try again.
void remove_stale(const std::filesystem::path& target) noexcept;

}  // namespace ferrite::io::detail
