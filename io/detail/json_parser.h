#pragma once
/// Parsing JSON as a stream of events; the only place that knows which library does it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferrite::io::detail {

/// The listener to which parse_json reports the parts of a JSON text, in order. An exception from it ends the parsing.
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
  /// Reports that the text is not JSON from this byte on, or, with `too_large`, that a number before it is beyond f64.
  /// It is the last event.
  virtual void error(std::size_t position, bool too_large) = 0;

 protected:
  ~JsonHandler() = default;
};

/// Parses a whole JSON text, in time proportional to it and memory proportional to its depth and its longest value.
void parse_json(std::string_view text, JsonHandler& handler);

}  // namespace ferrite::io::detail
