#pragma once
/// Small ONNX files, written field by field.
#include <cstring>
#include <string>
#include <vector>

#include "ferrite/exchange/onnx.h"

namespace wire {

inline std::string varint(std::size_t n) {
  std::string out;
  for (; n >= 128; n >>= 7) out += static_cast<char>((n & 127) | 128);
  return out + static_cast<char>(n);
}
/// Returns a field of protobuf: a length and that many bytes.
inline std::string field(std::size_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
/// Returns a field that holds a number.
inline std::string number(std::size_t field_number, std::size_t value) {
  return varint(field_number << 3) + varint(value);
}

/// Returns a node of one input and one output.
inline std::string node(const std::string& op, const std::string& in, const std::string& out,
                        const std::string& more = {}) {
  return field(1, field(1, in) + field(2, out) + field(4, op) + more);
}
/// Returns a node with several inputs and outputs.
inline std::string node_of(const std::string& op, const std::vector<std::string>& in,
                           const std::vector<std::string>& out, const std::string& more = {}) {
  std::string bytes;
  for (const std::string& n : in) bytes += field(1, n);
  for (const std::string& n : out) bytes += field(2, n);
  return field(1, bytes + field(4, op) + more);
}
inline std::string int_attribute(const std::string& name, std::size_t value) {
  return field(5, field(1, name) + number(20, 2) + number(3, value));
}
inline std::string ints_attribute(const std::string& name, const std::vector<std::size_t>& values) {
  std::string bytes = field(1, name) + number(20, 7);
  for (const std::size_t v : values) bytes += number(8, v);
  return field(5, bytes);
}
inline std::string float_attribute(const std::string& name, float value) {
  return field(5, field(1, name) + number(20, 1) + varint(2U << 3 | 5) +
                      std::string(reinterpret_cast<const char*>(&value), sizeof(value)));
}
inline std::string graph_attribute(const std::string& name, const std::string& graph) {
  return field(5, field(1, name) + number(20, 5) + field(6, graph));
}
/// Returns an attribute that refers to one of the function around it.
inline std::string reference_attribute(const std::string& name, std::size_t type, const std::string& of) {
  return field(5, field(1, name) + number(20, type) + field(21, of));
}
/// Returns a tensor with raw bytes.
template <class T>
std::string tensor(const std::string& name, std::size_t type, const std::vector<std::size_t>& dims,
                   const std::vector<T>& values) {
  std::string bytes;
  for (const std::size_t d : dims) bytes += number(1, d);
  std::string raw(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return bytes + number(2, type) + field(8, name) + field(9, raw);
}
inline std::string initialiser(const std::string& tensor) { return field(5, tensor); }
/// Returns a graph with its contents, inputs and outputs.
inline std::string graph(const std::string& content, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs) {
  std::string bytes = content + field(2, "g");
  for (const std::string& n : inputs) bytes += field(11, field(1, n));
  for (const std::string& n : outputs) bytes += field(12, field(1, n));
  return bytes;
}
inline std::string model_of(const std::string& graph_bytes, std::size_t opset = 17, const std::string& more = {}) {
  return number(1, 8) + field(7, graph_bytes) + field(8, number(2, opset)) + more;
}
/// Returns a function of a model, in the domain "own".
inline std::string function(const std::string& name, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs, const std::vector<std::string>& nodes,
                            const std::string& more = {}) {
  std::string bytes = field(1, name) + field(10, "own");
  for (const std::string& n : inputs) bytes += field(4, n);
  for (const std::string& n : outputs) bytes += field(5, n);
  for (const std::string& n : nodes) {
    std::size_t begin = 1;  // after its key and its length
    while (n[begin++] & 0x80) {
    }
    bytes += field(7, n.substr(begin));
  }
  return field(25, bytes + field(9, number(2, 17)) + field(9, field(1, "own") + number(2, 1)) + more);
}
inline std::string own(const std::string& more = {}) { return field(7, "own") + more; }

inline ferrite::onnx::Model parsed(const std::string& bytes, const ferrite::onnx::ReadOptions& options = {}) {
  return ferrite::onnx::parse(std::as_bytes(std::span(bytes.data(), bytes.size())), options);
}

}  // namespace wire
