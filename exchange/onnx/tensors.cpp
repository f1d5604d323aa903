/// Reads the tensors of ONNX files, whose elements are raw bytes, typed fields or separate files.
#include <algorithm>
#include <bit>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "ferrite/exchange/onnx/onnx_graph.h"
#include "ferrite/exchange/onnx/wire.h"
#include "ferrite/exchange/onnx_error.h"
#include "ferrite/tensor/ops.h"

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian, and is read unchanged");

namespace ferrite::onnx::detail {
namespace {

/// The fields of a TensorProto that describe its elements.
struct Fields {
  std::string_view name{};
  Shape shape{};
  ElementType type = ElementType::undefined;
  std::string_view raw{};
  bool has_raw = false;
  std::uint64_t floats = 0;    ///< number of elements in float_data
  std::uint64_t doubles = 0;   ///< number of elements in double_data
  std::uint64_t integers = 0;  ///< number of elements in int32_data, int64_data or uint64_data
  int typed = 0;               ///< one bit for each field with elements that is present
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

void append_extents(std::vector<std::int64_t>& dims, Message& m, const std::string& where) {
  m.each_integer([&](std::int64_t extent) {
    if (dims.size() == static_cast<std::size_t>(Shape::kMaxRank))
      throw OnnxError(where + ": a tensor has more than " + std::to_string(Shape::kMaxRank) + " axes");
    dims.push_back(extent);
  });
}

Shape shape_of(std::span<const std::int64_t> dims, const std::string& where) {
  const Shape shape{dims};
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
  const auto integer = [&](std::int64_t) { ++f.integers; };
  for (Message m(message); m.next();) {
    switch (m.tag()) {
      case tensor_field::dims: append_extents(dims, m, where); break;
      case tensor_field::data_type: f.type = static_cast<ElementType>(m.integer()); break;
      case tensor_field::segment: throw OnnxError(where + ": a tensor in segments is not supported");
      case tensor_field::float_data:
        m.each_bytes_of<float>([&](std::string_view raw) { f.floats += raw.size() / sizeof(float); });
        f.typed |= 1;
        break;
      case tensor_field::int32_data: m.each_integer(integer), f.typed |= 2; break;
      case tensor_field::int64_data: m.each_integer(integer), f.typed |= 4; break;
      case tensor_field::uint64_data: m.each_integer(integer), f.typed |= 8; break;
      case tensor_field::double_data:
        m.each_bytes_of<double>([&](std::string_view raw) { f.doubles += raw.size() / sizeof(double); });
        f.typed |= 16;
        break;
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

/// Returns the path of external data: a file below the folder that holds the bytes.
std::filesystem::path external_file(const Fields& f, std::size_t bytes, const std::string& where,
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
  return file;
}

void check_elements(std::string_view raw, ElementType type, const std::string& where) {
  if (type == ElementType::boolean)
    for (const char c : raw)
      if (c != 0 && c != 1) throw OnnxError(where + ": a bool is neither 0 nor 1");
}

using Source = StoredElements::Source;

constexpr std::size_t kPart = 1 << 14;  // number of bytes that are copied at a time

void give_part(Input& input, Outline::Range range, const std::function<void(std::string_view)>& give) {
  std::vector<char> part;
  for (std::size_t done = 0; done < range.size; done += part.size()) {
    part.resize(std::min(range.size - done, kPart));
    input.copy(range.at + done, part);
    give({part.data(), part.size()});
  }
}

/// Returns the source of elements in typed fields; int4 and the like have one packed byte in each integer.
Source from_fields(std::string_view message, ElementType type) {
  return [message, type](const auto& give) {
    std::string part;
    const auto bytes = static_cast<std::size_t>(std::max(bits_of(type) / 8, 1));
    const auto append = [&](const char* first, std::size_t n) {
      part.append(first, n);
      if (part.size() < kPart) return;
      give(part);
      part.clear();
    };
    const auto view = [&](std::string_view raw) {
      for (; raw.size() > kPart; raw.remove_prefix(kPart)) append(raw.data(), kPart);
      append(raw.data(), raw.size());
    };
    const auto integer = [&](std::int64_t v) { append(reinterpret_cast<const char*>(&v), bytes); };
    for (Message m(message); m.next();) {
      switch (m.tag()) {
        case tensor_field::float_data: m.each_bytes_of<float>(view); break;
        case tensor_field::double_data: m.each_bytes_of<double>(view); break;
        case tensor_field::int32_data:
        case tensor_field::int64_data:
        case tensor_field::uint64_data: m.each_integer(integer); break;
        default: m.skip();
      }
    }
    give(part);
  };
}

/// Returns the bit in Fields::typed of the field that holds elements of a type where there are no raw bytes.
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

/// Returns the number of bytes of the elements in a tensor's typed fields.
std::uint64_t bytes_of(const Fields& f) {
  if (f.type == ElementType::f32) return f.floats * sizeof(float);
  if (f.type == ElementType::f64) return f.doubles * sizeof(double);
  return f.integers * static_cast<std::uint64_t>(std::max(bits_of(f.type) / 8, 1));
}

}  // namespace

const Outline::Range* Elsewhere::left_out(std::string_view tensor) const {
  if (ranges.empty() || tensor.data() == nullptr) return nullptr;
  const auto found = ranges.find(static_cast<std::size_t>(tensor.data() - outline.data()));
  return found == ranges.end() ? nullptr : &found->second;
}

std::string_view name_of_tensor(std::string_view message, Storage storage) {
  std::string_view name;
  for (Message m(message); m.next();) {
    if (storage == Storage::sparse && m.tag() == sparse_tensor_field::values)
      name = name_of_tensor(m.bytes(), Storage::dense);
    else if (storage == Storage::dense && m.tag() == tensor_field::name)
      name = m.bytes();
    else
      m.skip();
  }
  return name;
}

namespace {

Constant read_dense(std::string_view message, const std::string& where, const Elsewhere& elsewhere) {
  const Fields f = fields_of(message, where);
  const std::string here = f.name.empty() ? where : where + ": tensor \"" + std::string(f.name) + "\"";
  (void)dtype_for(f.type, here);
  const auto elements = static_cast<std::uint64_t>(f.shape.numel());
  if (elements > (std::uint64_t{1} << 56)) throw OnnxError(here + ": a tensor of " + f.shape.str() + " is too large");
  const auto bytes = static_cast<std::size_t>((elements * static_cast<std::uint64_t>(bits_of(f.type)) + 7) / 8);
  const Outline::Range* const left_out = elsewhere.left_out(message);
  std::uint64_t there = left_out ? left_out->size : f.raw.size();
  Source source = [raw = f.raw](const auto& give) { give(raw); };
  if (f.external) {
    source = [file = external_file(f, bytes, here, elsewhere.folder),
              range = Outline::Range{static_cast<std::size_t>(f.offset), bytes}](const auto& give) {
      Input input(file);  // opened only now, as a model may have thousands of tensors
      give_part(input, range, give);
    };
    there = bytes;
  } else if (left_out ? f.has_raw || f.typed : f.has_raw && f.typed) {
    throw OnnxError(here + ": it has elements twice" + (f.typed ? ", raw and typed" : ""));
  } else if (left_out) {
    source = [input = elsewhere.input, range = *left_out](const auto& give) { give_part(*input, range, give); };
  } else if (!f.has_raw) {
    if (f.typed & ~typed_field_of(f.type))
      throw OnnxError(here + ": its elements are in a field of another type than " + std::string(name_of(f.type)));
    source = from_fields(message, f.type);
    there = bytes_of(f);
  }
  if (there != bytes)
    throw OnnxError(here + ": " + std::string(name_of(f.type)) + " " + f.shape.str() + " takes " +
                    std::to_string(bytes) + " bytes, the file has " + std::to_string(there));
  return Constant(StoredElements{f.type, f.shape, bytes,
                                 [source = std::move(source), type = f.type, here](const auto& give) {
                                   source([&](std::string_view raw) {
                                     check_elements(raw, type, here);
                                     give(raw);
                                   });
                                 },
                                 f.external || left_out});
}

Constant read_sparse(std::string_view message, const std::string& where, const Elsewhere& elsewhere) {
  Value values;
  Value indices;
  bool apart = false;
  std::vector<std::int64_t> dims;
  const auto read = [&](std::string_view tensor) {
    const Constant c = read_dense(tensor, where, elsewhere);
    apart |= c.elsewhere();
    return c.value();
  };
  for (Message m(message); m.next();) {
    if (m.tag() == sparse_tensor_field::values)
      values = read(m.bytes());
    else if (m.tag() == sparse_tensor_field::indices)
      indices = read(m.bytes());
    else if (m.tag() == sparse_tensor_field::dims)
      append_extents(dims, m, where);
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
  return Constant({std::move(dense), values.type, true}, apart);
}

}  // namespace

Constant read_constant(std::string_view message, Storage storage, const std::string& where,
                       const Elsewhere& elsewhere) {
  return storage == Storage::sparse ? read_sparse(message, where, elsewhere) : read_dense(message, where, elsewhere);
}

Value read_tensor(std::string_view message, const std::string& where, const std::filesystem::path& folder) {
  return read_dense(message, where, {.folder = folder}).value();
}

}  // namespace ferrite::onnx::detail
