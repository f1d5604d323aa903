#pragma once
/// Reading the fields of protobuf messages as views, with their wire types checked.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>
#include "ferrite/exchange/onnx_error.h"

namespace ferrite::onnx::detail {

/// A fault that is found where the name of the file is not known; the reader of the file prepends it.
class DamagedFile : public OnnxError {
 public:
  explicit DamagedFile(const std::string& fault) : OnnxError("onnx: " + fault), fault_(fault) {}
  const std::string& fault() const& { return fault_; }

 private:
  std::string fault_;
};

/// Walks over the fields of one message. The getters throw OnnxError where the field has another wire type, and every
/// function where the bytes end too soon.
class Message {
 public:
  explicit Message(std::string_view bytes) : reader_(bytes.data(), bytes.size()) {}

  bool next() {
    return guarded([&] { return reader_.next(); });
  }
  std::uint32_t tag() const { return reader_.tag(); }
  void skip() {
    guarded([&] { reader_.skip(); });
  }
  /// Returns a field that is a string, bytes or a message.
  std::string_view bytes() {
    expect(protozero::pbf_wire_type::length_delimited);
    return guarded([&] {
      const auto view = reader_.get_view();
      return std::string_view(view.data(), view.size());
    });
  }
  std::int64_t integer() {
    expect(protozero::pbf_wire_type::varint);
    return guarded([&] { return reader_.get_int64(); });
  }
  float number() {
    expect(protozero::pbf_wire_type::fixed32);
    return guarded([&] { return reader_.get_float(); });
  }
  /// Walks to the end and calls `each` with every string, bytes or message of one field.
  template <class F>
  void each_of(std::uint32_t field, const F& each) {
    while (next()) {
      if (tag() == field)
        each(bytes());
      else
        skip();
    }
  }
  /// Calls `each` with one value of a repeated field, or with all of a packed one.
  template <class F>
  void each_integer(const F& each) {
    if (reader_.wire_type() == protozero::pbf_wire_type::varint) {
      each(integer());
      return;
    }
    const std::string_view packed = bytes();
    const char* at = packed.data();
    const char* const end = at + packed.size();
    while (at != end) each(guarded([&] { return static_cast<std::int64_t>(protozero::decode_varint(&at, end)); }));
  }
  /// Calls `each` with the bytes of one float or double of a repeated field, or of all of a packed one.
  template <class T, class F>
  void each_bytes_of(const F& each) {
    constexpr bool is_float = sizeof(T) == 4;
    if (reader_.wire_type() == (is_float ? protozero::pbf_wire_type::fixed32 : protozero::pbf_wire_type::fixed64)) {
      const auto value = guarded([&] {
        if constexpr (is_float)
          return reader_.get_float();
        else
          return reader_.get_double();
      });
      each(std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
      return;
    }
    const std::string_view packed = bytes();
    if (packed.size() % sizeof(T) != 0)
      throw DamagedFile("the file is damaged: a packed field has " + std::to_string(packed.size()) +
                        " bytes, no multiple of " + std::to_string(sizeof(T)));
    each(packed);
  }
  /// Appends one value of a repeated field, or all of a packed one, to `out`.
  void integers(std::vector<std::int64_t>& out) {
    each_integer([&](std::int64_t v) { out.push_back(v); });
  }
  void numbers(std::vector<float>& out) {
    each_bytes_of<float>([&](std::string_view raw) {
      const std::size_t before = out.size();
      out.resize(before + raw.size() / sizeof(float));
      if (!raw.empty())
        std::char_traits<char>::copy(reinterpret_cast<char*>(out.data() + before), raw.data(), raw.size());
    });
  }

 private:
  template <class F>
  static auto guarded(const F& f) -> decltype(f()) {
    try {
      return f();
    } catch (const protozero::exception& e) {
      throw DamagedFile(std::string("the file is damaged: ") + e.what());
    }
  }
  void expect(protozero::pbf_wire_type wanted) const {
    if (reader_.wire_type() != wanted)
      throw DamagedFile("the file is damaged: field " + std::to_string(reader_.tag()) + " has wire type " +
                        std::to_string(static_cast<unsigned>(reader_.wire_type())) + ", not " +
                        std::to_string(static_cast<unsigned>(wanted)));
  }
  protozero::pbf_reader reader_;
};

}  // namespace ferrite::onnx::detail
