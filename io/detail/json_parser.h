#pragma once
/// JSON as a stream of events; the one place that knows which library parses it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferrite::io::detail {

/// Hears what stands in a JSON text, in its order. What a function throws ends the reading.
class JsonHandler {
 public:
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void negative(std::int64_t value) = 0;                 ///< an integer with a sign
  virtual void natural(std::uint64_t value) = 0;                 ///< an integer without one
  virtual void real(double value, const std::string& text) = 0;  ///< any other finite number, and as it is written
  virtual void string(const std::string& value) = 0;
  virtual void key(const std::string& name) = 0;
  virtual void begin_object() = 0;
  virtual void end_object() = 0;
  virtual void begin_list() = 0;
  virtual void end_list() = 0;
  /// The text is no JSON from this byte on, or, with `too_large`, a number before it is beyond f64. Nothing follows.
  virtual void error(std::size_t position, bool too_large) = 0;

 protected:
  ~JsonHandler() = default;
};

/// Reads a whole text, in time in proportion to it and memory in proportion to its depth and its longest value.
void parse_json(std::string_view text, JsonHandler& handler);

}  // namespace ferrite::io::detail
