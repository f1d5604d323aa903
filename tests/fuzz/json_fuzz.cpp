/// Any bytes are refused with an IoError, or parsed as weights or a net that can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "ferrite/io/json_weights.h"
#include "ferrite/io/keras.h"
#include "ferrite/io/rtneural.h"

namespace {

namespace io = ferrite::io;

/// Checks that weights or a net are the same when written and read again. Any exception here ends the program.
void check_round_trip(const std::string& text) noexcept {
  const auto net = io::parse_rtneural(std::as_bytes(std::span(text)));
  if (io::serialize_rtneural(*net) != text) std::abort();
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
  accepting([&] { (void)io::from_keras(io::parse_json_weights(bytes)); });
  accepting([&] {
    const auto net = io::parse_rtneural(bytes);
    check_round_trip(io::serialize_rtneural(*net));
  });
  return 0;
}
