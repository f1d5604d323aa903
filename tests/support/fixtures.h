#pragma once
/// Access to the fixtures in tests/data.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "ferrite/io/safetensors.h"

namespace support {

/// Returns the path of a file that a script in tests/data/ made.
inline std::filesystem::path fixture_path(const std::string& name) {
  const char* folder = std::getenv("FERRITE_FIXTURES");
  const std::filesystem::path path = folder ? folder : std::string(FERRITE_SOURCE_DIR) + "/tests/data";
  return path / name;
}
inline ferrite::io::TensorFile fixture(const std::string& name) {
  return ferrite::io::read_safetensors(fixture_path(name));
}

}  // namespace support
