/// Any bytes are refused with an IoError, or parsed as a `.nam` model that can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "ferrite/io/guitarml.h"
#include "ferrite/io/nam.h"

namespace {

namespace io = ferrite::io;

/// Checks that a model is the same when written and read again. Any exception here ends the program.
void check_round_trip(const std::string& text) noexcept {
  if (io::serialize_nam(io::parse_nam(std::as_bytes(std::span(text)))) != text) std::abort();
}

template <class F>
void accepting(F&& f) {
  try {
    f();
  } catch (const ferrite::IoError&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  accepting([&] { check_round_trip(io::serialize_nam(io::parse_nam(bytes))); });
  accepting([&] { (void)io::parse_guitarml(bytes); });
  return 0;
}
