/// Tensors of ONNX files: their elements from raw bytes, typed fields or files of their own.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>

#include "ferrite/exchange/onnx/graph.h"
#include "ferrite/exchange/onnx/wire.h"
#include "ferrite/exchange/onnx_error.h"
#include "ferrite/tensor/ops.h"

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian, and is read as it stands");

namespace ferrite::onnx::detail {
namespace {

/// The fields of a TensorProto.
struct Fields {
  std::string_view name{};
  Shape shape{};
  ElementType type = ElementType::undefined;
  std::string_view raw{};
  bool has_raw = false;
  std::vector<float> floats{};
  std::vector<double> doubles{};
  std::vector<std::int64_t> integers{};  ///< of int32_data, int64_data or uint64_data
  int typed = 0;                         ///< the fields with elements that are there, by number
  bool external = false;
  std::string_view location{};
  std::int64_t offset = 0;
  std::int64_t length = -1;
};

std::int64_t number_in(std::string_view text, const std::string& where, const char* what) {
  std::int64_t value = 0;
  if (text.empty() || text.size() > 18) throw OnnxError(where + ": " + what + " of external data is no number");
  for (const char c : text) {
    if (c < '0' || c > '9')
      throw OnnxError(where + ": " + what + " of external data is no number: " + std::string(text));
    value = value * 10 + (c - '0');
  }
  return value;
}

void read_entry(Fields& f, Message entry, const std::string& where) {
  std::string_view key;
  std::string_view value;
  while (entry.next()) {
    if (entry.tag() == entry_field::key)
      key = entry.bytes();
    else if (entry.tag() == entry_field::value)
      value = entry.bytes();
    else
      entry.skip();
  }
  if (key == "location")
    f.location = value;
  else if (key == "offset")
    f.offset = number_in(value, where, "the offset");
  else if (key == "length")
    f.length = number_in(value, where, "the length");
}

Shape shape_of(const std::vector<std::int64_t>& dims, const std::string& where) {
  if (dims.size() > static_cast<std::size_t>(Shape::kMaxRank))
    throw OnnxError(where + ": a tensor has " + std::to_string(dims.size()) + " axes: at most " +
                    std::to_string(Shape::kMaxRank) + " are supported");
  const Shape shape{std::span<const std::int64_t>(dims)};
  try {
    (void)shape.numel();
  } catch (const ShapeError& e) {
    throw OnnxError(where + ": " + e.what());
  }
  return shape;
}

Fields fields_of(std::string_view message, const std::string& where) {
  Fields f;
  std::vector<std::int64_t> dims;
  for (Message m(message); m.next();) {
    switch (m.tag()) {
      case tensor_field::dims: m.integers(dims); break;
      case tensor_field::data_type: f.type = static_cast<ElementType>(m.integer()); break;
      case tensor_field::segment: throw OnnxError(where + ": a tensor in segments is not supported");
      case tensor_field::float_data: m.numbers(f.floats), f.typed |= 1; break;
      case tensor_field::int32_data: m.integers(f.integers), f.typed |= 2; break;
      case tensor_field::int64_data: m.integers(f.integers), f.typed |= 4; break;
      case tensor_field::uint64_data: m.integers(f.integers), f.typed |= 8; break;
      case tensor_field::double_data: m.doubles(f.doubles), f.typed |= 16; break;
      case tensor_field::string_data: f.type = ElementType::string, m.skip(); break;
      case tensor_field::name: f.name = m.bytes(); break;
      case tensor_field::raw_data: f.raw = m.bytes(), f.has_raw = true; break;
      case tensor_field::external_data: read_entry(f, Message(m.bytes()), where); break;
      case tensor_field::data_location: f.external = m.integer() == 1; break;
      default: m.skip();
    }
  }
  f.shape = shape_of(dims, where);
  return f;
}

/// The bytes of external data, from a file below the folder.
std::string read_external(const Fields& f, std::size_t bytes, const std::string& where,
                          const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  if (folder.empty())
    throw OnnxError(where + ": its elements are in another file, \"" + std::string(f.location) +
                    "\"; ReadOptions::external_data allows that");
  const fs::path location(std::string(f.location), fs::path::native_format);
  if (f.location.empty() || f.location.find('\0') != std::string_view::npos || location.is_absolute() ||
      std::any_of(location.begin(), location.end(), [](const fs::path& part) { return part == ".."; }))
    throw OnnxError(where + ": external data must be a path below the model's folder: \"" + std::string(f.location) +
                    "\"");
  std::error_code failed;
  const fs::path root = fs::canonical(folder, failed);
  const fs::path file = failed ? fs::path() : fs::canonical(root / location, failed);
  if (failed) throw OnnxError(where + ": external data is missing: \"" + std::string(f.location) + "\"");
  if (std::mismatch(root.begin(), root.end(), file.begin(), file.end()).first != root.end())
    throw OnnxError(where + ": external data leaves the model's folder by a link: \"" + std::string(f.location) + "\"");
  if (!fs::is_regular_file(file, failed))
    throw OnnxError(where + ": external data is no regular file: \"" + std::string(f.location) + "\"");
  const auto size = static_cast<std::uint64_t>(fs::file_size(file, failed));
  if (failed || (f.length >= 0 && static_cast<std::uint64_t>(f.length) != bytes) ||
      static_cast<std::uint64_t>(f.offset) > size || size - static_cast<std::uint64_t>(f.offset) < bytes)
    throw OnnxError(where + ": external data does not fit: \"" + std::string(f.location) + "\" has " +
                    std::to_string(size) + " bytes, " + std::to_string(bytes) + " are needed from " +
                    std::to_string(f.offset));
  std::string data(bytes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.seekg(f.offset);
  if (!in.read(data.data(), static_cast<std::streamsize>(bytes)))
    throw OnnxError(where + ": external data cannot be read: \"" + std::string(f.location) + "\"");
  return data;
}

template <class Stored, class Held>
Tensor from_raw(std::string_view raw, const Shape& shape) {
  return Tensor::build<Held>(shape, [&](std::span<Held> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      Stored value;
      std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
      out[i] = static_cast<Held>(value);
    }
  });
}

Tensor from_packed(std::string_view raw, const Shape& shape, int bits, bool is_signed) {
  return Tensor::build<std::int32_t>(shape, [&](std::span<std::int32_t> out) {
    const auto in_a_byte = static_cast<std::size_t>(8 / bits);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto byte = static_cast<unsigned>(static_cast<unsigned char>(raw[i / in_a_byte]));
      const auto value =
          static_cast<std::int32_t>(byte >> (static_cast<unsigned>(bits) * (i % in_a_byte)) & ((1U << bits) - 1U));
      out[i] = is_signed && value >> (bits - 1) ? value - (1 << bits) : value;
    }
  });
}

void check_not_above(std::string_view raw, const std::string& where) {
  for (std::size_t at = 7; at < raw.size(); at += 8)
    if (static_cast<unsigned char>(raw[at]) >= 0x80U)
      throw OnnxError(where + ": a uint64 from 2^63 on is not supported");
}

/// Elements as they are in memory, so many bytes as the shape needs.
Tensor decoded(std::string_view raw, ElementType type, const Shape& shape, const std::string& where) {
  switch (type) {
    case ElementType::f32: return from_raw<float, float>(raw, shape);
    case ElementType::f64: return from_raw<double, double>(raw, shape);
    case ElementType::f16: return from_raw<float16, float>(raw, shape);
    case ElementType::bf16: return from_raw<bfloat16, float>(raw, shape);
    case ElementType::u8: return from_raw<std::uint8_t, std::int32_t>(raw, shape);
    case ElementType::i8: return from_raw<std::int8_t, std::int32_t>(raw, shape);
    case ElementType::u16: return from_raw<std::uint16_t, std::int32_t>(raw, shape);
    case ElementType::i16: return from_raw<std::int16_t, std::int32_t>(raw, shape);
    case ElementType::i32: return from_raw<std::int32_t, std::int32_t>(raw, shape);
    case ElementType::u32: return from_raw<std::uint32_t, std::int64_t>(raw, shape);
    case ElementType::u64: check_not_above(raw, where); return from_raw<std::int64_t, std::int64_t>(raw, shape);
    case ElementType::i64: return from_raw<std::int64_t, std::int64_t>(raw, shape);
    case ElementType::uint4: return from_packed(raw, shape, 4, false);
    case ElementType::int4: return from_packed(raw, shape, 4, true);
    case ElementType::uint2: return from_packed(raw, shape, 2, false);
    case ElementType::int2: return from_packed(raw, shape, 2, true);
    case ElementType::boolean:
      for (const char c : raw)
        if (c != 0 && c != 1) throw OnnxError(where + ": a bool is neither 0 nor 1");
      return from_raw<std::uint8_t, bool>(raw, shape);
    default: (void)dtype_for(type, where); throw OnnxError(where + ": elements of this type are not supported");
  }
}

/// The field that holds elements of a type where there are no raw bytes, by its bit in Fields::typed.
int typed_field_of(ElementType type) {
  switch (type) {
    case ElementType::f32: return 1;
    case ElementType::f64: return 16;
    case ElementType::i64: return 4;
    case ElementType::u32:
    case ElementType::u64: return 8;
    default: return 2;
  }
}

/// The same bytes, of elements in typed fields.
std::string raw_of(const Fields& f) {
  std::string raw;
  const auto append = [&](const auto& value) { raw.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  if (f.type == ElementType::f32)
    for (const float v : f.floats) append(v);
  else if (f.type == ElementType::f64)
    for (const double v : f.doubles) append(v);
  else
    for (const std::int64_t v : f.integers) {
      const int bytes = std::max(bits_of(f.type) / 8, 1);  // int4 and the like: one packed byte each
      raw.append(reinterpret_cast<const char*>(&v), static_cast<std::size_t>(bytes));
    }
  return raw;
}

}  // namespace

Value read_tensor(std::string_view message, const std::string& where, const std::filesystem::path& folder,
                  std::string_view* name) {
  const Fields f = fields_of(message, where);
  const std::string here = f.name.empty() ? where : where + ": tensor \"" + std::string(f.name) + "\"";
  if (name) *name = f.name;
  (void)dtype_for(f.type, here);
  const auto elements = static_cast<std::uint64_t>(f.shape.numel());
  if (elements > (std::uint64_t{1} << 56)) throw OnnxError(here + ": a tensor of " + f.shape.str() + " is too large");
  const auto bytes = static_cast<std::size_t>((elements * static_cast<std::uint64_t>(bits_of(f.type)) + 7) / 8);
  std::string held;
  std::string_view raw = f.raw;
  if (f.external) {
    held = read_external(f, bytes, here, folder);
    raw = held;
  } else if (!f.has_raw) {
    if (f.typed & ~typed_field_of(f.type))
      throw OnnxError(here + ": its elements are in a field of another type than " + std::string(name_of(f.type)));
    held = raw_of(f);
    raw = held;
  } else if (f.typed) {
    throw OnnxError(here + ": it has elements twice, raw and typed");
  }
  if (raw.size() != bytes)
    throw OnnxError(here + ": " + std::string(name_of(f.type)) + " " + f.shape.str() + " takes " +
                    std::to_string(bytes) + " bytes, the file has " + std::to_string(raw.size()));
  return {decoded(raw, f.type, f.shape, here), f.type, true};
}

Value read_sparse_tensor(std::string_view message, const std::string& where, const std::filesystem::path& folder,
                         std::string_view* name) {
  Value values;
  Value indices;
  std::vector<std::int64_t> dims;
  for (Message m(message); m.next();) {
    if (m.tag() == sparse_tensor_field::values)
      values = read_tensor(m.bytes(), where, folder, name);
    else if (m.tag() == sparse_tensor_field::indices)
      indices = read_tensor(m.bytes(), where, folder);
    else if (m.tag() == sparse_tensor_field::dims)
      m.integers(dims);
    else
      m.skip();
  }
  const Shape shape = shape_of(dims, where);
  if (!values.defined() || values.tensor.rank() != 1 || !indices.defined() || indices.type != ElementType::i64)
    throw OnnxError(where + ": a sparse tensor needs values [n] and indices of int64");
  const std::int64_t n = values.tensor.size(0);
  const std::int64_t most_elements = (std::int64_t{1} << 17) + 64 * n;  // a small file must not take much memory
  if (shape.numel() > most_elements) throw OnnxError(where + ": a sparse tensor of " + shape.str() + " is too large");
  const auto at = indices.tensor.to_vector<std::int64_t>();
  const bool linear = indices.tensor.rank() == 1;
  if (!(linear ? indices.tensor.shape() == Shape{n} : indices.tensor.shape() == Shape{n, shape.rank()}))
    throw OnnxError(where + ": the indices of a sparse tensor do not fit: " + indices.tensor.shape().str() + " for " +
                    std::to_string(n) + " values of " + shape.str());
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t place = 0;
    for (int axis = 0; axis < (linear ? 1 : shape.rank()); ++axis) {
      const std::int64_t index = at[static_cast<std::size_t>(linear ? i : i * shape.rank() + axis)];
      const std::int64_t extent = linear ? shape.numel() : shape[axis];
      if (index < 0 || index >= extent)
        throw OnnxError(where + ": an index of a sparse tensor lies outside: " + std::to_string(index) + " of " +
                        std::to_string(extent));
      place = place * extent + index;
    }
    if (!places.empty() && place <= places.back())
      throw OnnxError(where + ": the indices of a sparse tensor must rise");
    places.push_back(place);
  }
  Tensor dense = visit_computed(values.tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto sparse = values.tensor.to_vector<T>();
    return Tensor::build<T>(shape, [&](std::span<T> out) {
      std::fill(out.begin(), out.end(), T{});
      for (std::size_t i = 0; i < places.size(); ++i) out[static_cast<std::size_t>(places[i])] = sparse[i];
    });
  });
  return {std::move(dense), values.type, true};
}

}  // namespace ferrite::onnx::detail
