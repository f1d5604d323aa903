/// The values of a pickle, in compact tables.
#include "ferrite/io/torch/pickle.h"

#include <array>
#include <bit>
#include <cstring>

#include "ferrite/io/torch/pickle_opcodes.h"

namespace ferrite::io::detail {
namespace {

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

/// What stands behind an opcode with a length: the machine has seen that all of it is there.
std::span<const std::byte> counted_bytes(std::span<const std::byte> bytes, std::uint32_t place) {
  const auto width = static_cast<std::size_t>(length_bytes(static_cast<Opcode>(bytes[place])));
  const auto length = static_cast<std::size_t>(little_endian(bytes.subspan(place + 1, width)));
  return bytes.subspan(place + 1 + width, length);
}

/// Two's complement of up to 8 bytes; longer ones where the rest repeats the sign.
std::optional<std::int64_t> from_long(std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  const bool negative = std::to_integer<unsigned>(bytes.back()) > 127;
  const std::byte fill = negative ? std::byte{0xff} : std::byte{0};
  while (bytes.size() > 8 && bytes.back() == fill) bytes = bytes.first(bytes.size() - 1);
  if (bytes.size() > 8 || (std::to_integer<unsigned>(bytes.back()) > 127) != negative) return std::nullopt;
  std::uint64_t value = little_endian(bytes);
  if (negative && bytes.size() < 8) value |= ~std::uint64_t{0} << (8 * bytes.size());
  return std::bit_cast<std::int64_t>(value);
}

}  // namespace

std::string_view with_article(PickleKind kind) {
  constexpr std::array<std::string_view, 16> words = {"None",
                                                      "a bool",
                                                      "an integer",
                                                      "a float",
                                                      "a string",
                                                      "bytes",
                                                      "a tuple",
                                                      "a list",
                                                      "a dictionary",
                                                      "a set",
                                                      "a Python name",
                                                      "an object",
                                                      "a storage",
                                                      "a class",
                                                      "an instance of a class",
                                                      "what is not read"};
  return words[static_cast<std::size_t>(kind)];
}

std::string_view refused_opcode(std::uint8_t code) {
  switch (code) {
    case 'I': return "INT";
    case 'L': return "LONG";
    case 'S': return "STRING";
    case 'V': return "UNICODE";
    case 'F': return "FLOAT";
    case 'l': return "LIST";
    case 'd': return "DICT";
    case 'p': return "PUT";
    case 'g': return "GET";
    case 'P': return "PERSID";
    case '2': return "DUP";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 0x97: return "NEXT_BUFFER";
    case 0x98: return "READONLY_BUFFER";
    default: return "";
  }
}

int length_bytes(Opcode code) {
  switch (code) {
    case Opcode::short_binstring:
    case Opcode::short_binunicode:
    case Opcode::short_binbytes:
    case Opcode::long1: return 1;
    case Opcode::binstring:
    case Opcode::binunicode:
    case Opcode::binbytes:
    case Opcode::long4: return 4;
    case Opcode::binunicode8:
    case Opcode::binbytes8:
    case Opcode::bytearray8: return 8;
    default: return 0;
  }
}

std::optional<std::int64_t> Pickle::integer(PickleValue v) const {
  const std::span<const std::byte> behind = bytes_.subspan(v.place() + 1);
  switch (static_cast<Opcode>(bytes_[v.place()])) {
    case Opcode::binint1: return static_cast<std::int64_t>(little_endian(behind.first(1)));
    case Opcode::binint2: return static_cast<std::int64_t>(little_endian(behind.first(2)));
    case Opcode::binint: return std::bit_cast<std::int32_t>(static_cast<std::uint32_t>(little_endian(behind.first(4))));
    default: return from_long(counted_bytes(bytes_, v.place()));
  }
}

double Pickle::real(PickleValue v) const {
  std::uint64_t bits = 0;
  for (std::size_t i = 1; i <= 8; ++i)
    bits = (bits << 8) | std::to_integer<std::uint64_t>(bytes_[v.place() + i]);  // big-endian
  return std::bit_cast<double>(bits);
}

std::string_view Pickle::text(PickleValue v) const {
  const std::span<const std::byte> bytes = counted_bytes(bytes_, v.place());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::pair<std::string_view, std::string_view> Pickle::class_name(PickleValue scripted_class) const {
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  const std::size_t module = scripted_class.place() + 1;  // behind the opcode are two lines
  const std::size_t name = text.find('\n', module) + 1;
  return {text.substr(module, name - 1 - module), text.substr(name, text.find('\n', name) - name)};
}

std::pair<std::string_view, std::string_view> Pickle::foreign_name(PickleValue v) const {
  const PickleValue module = pool_[v.place()];
  if (module.kind() == PickleKind::scripted_class) return class_name(module);
  return {text(module), text(pool_[v.place() + 1])};
}

std::size_t Pickle::tuple_size(PickleValue v) const { return pool_[v.place()].place(); }

Pickle::Items::Items(const Pickle& pickle, PickleValue container) : pickle_(&pickle) {
  if (container.kind() == PickleKind::tuple) {
    at_ = container.place() + 1;
    left_ = static_cast<std::uint32_t>(pickle.tuple_size(container));
    return;
  }
  const PickleNode& node = pickle.nodes_[container.place() & ~kOrderedBit];
  at_ = node.begin;
  left_ = node.count;
  next_ = node.next;
}

std::optional<PickleValue> Pickle::Items::next() {
  while (left_ == 0) {
    if (next_ == 0) return std::nullopt;
    const PickleNode& node = pickle_->nodes_[next_];
    at_ = node.begin;
    left_ = node.count;
    next_ = node.next;
  }
  --left_;
  return pickle_->pool_[at_++];
}

}  // namespace ferrite::io::detail
