#pragma once
/// Writes and reads files for the tests of saving.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "ferrite/io/atomic_file.h"
#include "ferrite/tensor/error.h"

namespace io_test {

inline std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void put(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline void save(const std::filesystem::path& path, const std::string& text) {
  ferrite::io::write_atomically(path, std::as_bytes(std::span(text)));
}

/// Returns a predicate on errors whose text holds this part.
inline auto says(const std::string& part) {
  return [part](const ferrite::IoError& error) {
    BOOST_TEST_INFO("the error says: " << error.what());
    BOOST_TEST(std::string(error.what()).find(part) != std::string::npos);
    return true;
  };
}

}  // namespace io_test
