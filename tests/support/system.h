#pragma once
/// What tests ask of the system, implemented for POSIX and Windows in system.cpp. Tests in sources called
/// *_posix_test.cpp, which fork, or make links, FIFOs and permissions, are left out on Windows; no other test asks
/// which system it runs on.
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace support {

/// Returns the path of a device without data.
std::string null_device();

void set_environment(const std::string& name, const std::string& value);
void unset_environment(const std::string& name);

/// Returns whole pages of zeros that can be written, `bytes` of them, followed by a page that cannot be read.
std::shared_ptr<std::byte> pages_before_a_hole(std::size_t bytes);
/// Makes every later write to these pages end the process.
void forbid_writing(std::byte* pages, std::size_t bytes);

/// A limit of this process while the object lives, or until `end`: on the number of its open files, or on the bytes of
/// a file that it writes, beyond which a write fails. Windows has neither.
class Limit {
 public:
  enum class Of : std::uint8_t { open_files, file_bytes };
  Limit(Of what, std::uint64_t most);
  ~Limit() { end(); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  void end();

 private:
  Of of_;
  std::uint64_t before_ = 0;
};
/// Preconditions of a test: that this system has limits, and symbolic links that every user may make.
boost::test_tools::assertion_result has_limits(boost::unit_test::test_unit_id);
boost::test_tools::assertion_result has_links(boost::unit_test::test_unit_id);

}  // namespace support
