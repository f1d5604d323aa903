/// Adapts nlohmann's parser, whose templates are compiled only here, to JsonHandler.
#include "ferrite/io/detail/json_parser.h"

#include <nlohmann/json.hpp>

namespace ferrite::io::detail {
namespace {

using Json = nlohmann::json;

/// The listener that nlohmann's parser calls; a function returns true to continue.
class Bridge {
 public:
  explicit Bridge(JsonHandler& handler) : handler_(handler) {}

  bool null() { return handler_.null(), true; }
  bool boolean(bool value) { return handler_.boolean(value), true; }
  bool number_integer(Json::number_integer_t value) { return handler_.negative(value), true; }
  bool number_unsigned(Json::number_unsigned_t value) { return handler_.natural(value), true; }
  bool number_float(Json::number_float_t value, const std::string& text) { return handler_.real(value, text), true; }
  bool string(const std::string& value) { return handler_.string(value), true; }
  bool binary(Json::binary_t&) { return false; }  // only in formats other than text
  bool key(const std::string& name) { return handler_.key(name), true; }
  bool start_object(std::size_t) { return handler_.begin_object(), true; }
  bool end_object() { return handler_.end_object(), true; }
  bool start_array(std::size_t) { return handler_.begin_list(), true; }
  bool end_array() { return handler_.end_list(), true; }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& e) {
    constexpr int kOutOfRange = 406;
    return handler_.error(position, e.id == kOutOfRange), false;
  }

 private:
  JsonHandler& handler_;
};

}  // namespace

void parse_json(std::string_view text, JsonHandler& handler) {
  Bridge bridge(handler);
  Json::sax_parse(text.data(), text.data() + text.size(), &bridge);
}

}  // namespace ferrite::io::detail
