#pragma once
/// A good safetensors file, and the check that one is refused.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "ferrite/io/safetensors.h"
#include "hostile_safetensors.h"
#include "saving.h"

namespace io_test {

inline std::string good() { return hostile::file_of(hostile::kGood, std::string(16, '\0')); }

inline void check_refused(const std::filesystem::path& path, const std::string& part) {
  BOOST_CHECK_EXCEPTION(ferrite::io::read_safetensors(path), ferrite::IoError, [&](const ferrite::IoError& error) {
    const std::string text = error.what();
    BOOST_TEST_INFO("the error says: " << text);
    BOOST_TEST(text.find(part) != std::string::npos);
    BOOST_TEST(text.size() < 500u);
    return true;
  });
}

}  // namespace io_test
