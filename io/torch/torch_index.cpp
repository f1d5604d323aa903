/// Collects the tensors of a PyTorch checkpoint by name: reads persistent ids and tensor calls of its pickle, and
/// flattens its dictionaries to dotted names.
#include "ferrite/io/torch/torch_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/tensor/extents.h"

// ---- persistent ids and tensor calls -------------------------------------------------------------------

namespace ferrite::io::detail {
namespace {

using Kind = PickleKind;

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 62;

/// Largest number of elements of a tensor that repeats elements by stride 0.
constexpr std::uint64_t kMostRepeated = std::uint64_t{1} << 28;

std::string shown_value(const Pickle& pickle, PickleValue value) {
  if (value.kind() != Kind::integer) return std::string(with_article(value.kind()));
  const auto number = pickle.integer(value);
  return number ? std::to_string(*number) : "an integer of more than 64 bits";
}

/// Returns an integer of at least 0. Throws IoError for any other value.
std::uint64_t count_of(const Pickle& pickle, PickleValue value, std::string_view what, std::string_view place) {
  const auto number = value.kind() == Kind::integer ? pickle.integer(value) : std::nullopt;
  if (!number || *number < 0)
    refuse(place, std::string(what) + " is not a non-negative integer: " + shown_value(pickle, value));
  return static_cast<std::uint64_t>(*number);
}

std::uint64_t product(std::uint64_t a, std::uint64_t b, std::string_view what, std::string_view place) {
  std::uint64_t result = 0;
  if (ferrite::detail::mul_overflows(a, b, result) || result > kMostElements)
    refuse(place, std::string(what) + " is more than can be counted: " + std::to_string(a) + " x " + std::to_string(b));
  return result;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 20 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

void read_view(const Pickle& pickle, PickleValue view, TorchStorage& storage, std::string_view place) {
  if (view.kind() == Kind::none) return;
  if (view.kind() != Kind::tuple || pickle.tuple_size(view) != 3)
    refuse(place, "the view of a storage is not a tuple of three: " + std::string(with_article(view.kind())));
  const std::uint64_t offset = count_of(pickle, pickle.tuple_item(view, 1), "the offset of a storage's view", place);
  const std::uint64_t size = count_of(pickle, pickle.tuple_item(view, 2), "the size of a storage's view", place);
  storage.skipped = product(offset, storage.unit, "the offset of a storage's view", place);
  storage.window = product(size, storage.unit, "the size of a storage's view", place);
  if (storage.skipped > storage.bytes || storage.window > storage.bytes - storage.skipped)
    refuse(place, "the view of a storage reaches beyond its end: " + std::to_string(offset) + " + " +
                      std::to_string(size) + " of " + std::to_string(storage.bytes / storage.unit) + " elements");
}

/// The innermost call around a tensor, and its arguments.
struct Rebuild {
  GlobalKind kind = GlobalKind::plain_object;
  PickleValue arguments;
};

bool makes_tensor(GlobalKind kind) {
  return kind == GlobalKind::rebuild_tensor || kind == GlobalKind::rebuild_tensor_v2 ||
         kind == GlobalKind::rebuild_tensor_v3;
}

[[noreturn]] void refuse_arguments(const Pickle& pickle, PickleValue arguments, std::string_view place) {
  refuse(place, "the arguments of a tensor are not those that PyTorch writes: " +
                    counted(pickle.tuple_size(arguments), "argument"));
}

/// Returns the call within Parameter and similar wrappers.
Rebuild innermost(const Pickle& pickle, PickleValue value, std::string_view place) {
  Rebuild call{pickle.maker(value).kind, pickle.arguments(value)};
  for (int depth = 0; depth < 8; ++depth) {
    if (makes_tensor(call.kind)) return call;
    const std::size_t n = pickle.tuple_size(call.arguments);
    const auto argument = [&](std::size_t i) { return pickle.tuple_item(call.arguments, i); };
    if (call.kind == GlobalKind::rebuild_from_type) {
      if (n != 4 || argument(0).kind() != Kind::global || argument(1).kind() != Kind::global ||
          argument(2).kind() != Kind::tuple || pickle.global(argument(1)).kind != GlobalKind::tensor_class)
        refuse_arguments(pickle, call.arguments, place);
      call = {pickle.global(argument(0)).kind, argument(2)};
    } else if (call.kind == GlobalKind::rebuild_parameter || call.kind == GlobalKind::rebuild_parameter_with_state) {
      if (n != (call.kind == GlobalKind::rebuild_parameter ? 3u : 4u) || argument(0).kind() != Kind::object)
        refuse_arguments(pickle, call.arguments, place);
      call = {pickle.maker(argument(0)).kind, pickle.arguments(argument(0))};
    } else {
      break;
    }
  }
  refuse(place, "not made the way PyTorch makes tensors");
}

/// Refuses the bits conj and neg, with which the values in the storage are not those of the tensor.
void check_bits(const Pickle& pickle, PickleValue bits, std::string_view place) {
  if (bits.kind() == Kind::none) return;
  if (bits.kind() != Kind::dictionary) refuse(place, "the tensor's metadata is " + shown_value(pickle, bits));
  Pickle::Items items = pickle.items(bits);
  while (const auto key = items.next()) {
    const auto value = items.next();
    if (value->kind() != Kind::boolean || pickle.boolean(*value))
      refuse(place, "a tensor with its conj or neg bit set; save x.resolve_conj().resolve_neg()");
  }
}

/// Appends extents or strides to the index and returns their number.
std::size_t append_counts(const Pickle& pickle, PickleValue tuple, TorchIndex& index, std::string_view what,
                          std::string_view place) {
  if (tuple.kind() != Kind::tuple && tuple.kind() != Kind::list)
    refuse(place, std::string(what) + " is no tuple: " + shown_value(pickle, tuple));
  std::size_t n = 0;
  Pickle::Items items = pickle.items(tuple);
  while (const auto item = items.next()) {
    if (++n > kMostRank) refuse(place, std::string(what) + " has more than 64 dimensions");
    index.extents.push_back(static_cast<std::int64_t>(count_of(pickle, *item, what, place)));
  }
  return n;
}

struct Reach {
  std::uint64_t elements = 1;
  std::uint64_t distinct = 1;  ///< number of elements without axes of stride 0
  std::uint64_t last = 0;      ///< distance of the last element from the first
  bool empty = false;
};

Reach reach_of(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::string_view place) {
  Reach reach;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto extent = static_cast<std::uint64_t>(shape[i]);
    const auto stride = static_cast<std::uint64_t>(strides[i]);
    if (extent == 0) {
      reach.empty = true;
      continue;
    }
    reach.elements = product(reach.elements, extent, "the size of the tensor", place);
    if (stride != 0) reach.distinct = product(reach.distinct, extent, "the size of the tensor", place);
    reach.last += product(extent - 1, stride, "the reach of a stride", place);
    if (reach.last > kMostElements)
      refuse(place, "the strides reach further than can be counted: " + bracketed(strides));
  }
  return reach;
}

void check_window(const TorchIndex& index, const TorchTensor& tensor, std::uint64_t offset, std::uint64_t elements,
                  std::string_view place) {
  const Reach reach = reach_of(index.shape(tensor), index.strides(tensor), place);
  const std::string seen = "offset " + std::to_string(offset) + ", shape " + bracketed(index.shape(tensor)) +
                           ", strides " + bracketed(index.strides(tensor)) + ", " + counted(elements, "element") +
                           " in the storage";
  if (offset > elements) refuse(place, "begins beyond the end of its storage: " + seen);
  if (reach.empty) return;
  if (offset == elements || reach.last > elements - offset - 1)
    refuse(place, "reaches beyond the end of its storage: " + seen);
  if (reach.distinct > elements || (reach.elements > elements && reach.elements > kMostRepeated))
    refuse(place, "shows elements of its storage too often: " + seen + "; save x.clone()");
}

/// Turns a complex tensor into one of real numbers, with a last axis of real and imaginary parts.
void as_real(TorchTensor& tensor, TorchIndex& index, std::string_view place) {
  const std::string_view name = torch_dtype(tensor.dtype).name;
  if (name != "complex64" && name != "complex128") return;
  if (tensor.rank == kMostRank) refuse(place, "the shape of a tensor has more than 64 dimensions");
  const auto strides = index.extents.begin() + static_cast<std::ptrdiff_t>(tensor.extents_at) + tensor.rank;
  for (auto stride = strides; stride != index.extents.end(); ++stride) {
    if (static_cast<std::uint64_t>(*stride) > kMostElements)
      refuse(place, "the strides reach further than can be counted: " + std::to_string(*stride));
    *stride *= 2;
  }
  index.extents.insert(strides, 2);
  index.extents.push_back(1);
  ++tensor.rank;
  tensor.dtype = torch_dtype_number(name == "complex64" ? "float32" : "float64");
}

}  // namespace

TorchStorage storage_of(const Pickle& pickle, PickleValue persistent, std::string_view where) {
  if (persistent.kind() != Kind::persistent)
    refuse(where, "a tensor's storage is " + std::string(with_article(persistent.kind())));
  const PickleValue id = pickle.persistent_id(persistent);
  const std::size_t n = pickle.tuple_size(id);
  const auto item = [&](std::size_t i) { return pickle.tuple_item(id, i); };
  const auto text = [&](std::size_t i) { return item(i).kind() == Kind::text ? pickle.text(item(i)) : ""; };
  if (n < 1 || text(0) != "storage")
    refuse(where, "a persistent id is no storage: " + (n < 1 ? "empty" : quote(text(0))) +
                      "; is this a whole pickled module? save model.state_dict() instead");
  if (n != 5 && n != 6) refuse(where, "a persistent id has not five or six parts: " + std::to_string(n));
  const GlobalKind kind = item(1).kind() == Kind::global ? pickle.global(item(1)).kind : GlobalKind::plain_type;
  if (kind != GlobalKind::storage && kind != GlobalKind::untyped_storage)
    refuse(where, "the class of a storage is none: " + shown_value(pickle, item(1)));
  TorchStorage storage;
  storage.key = text(2);
  if (!is_number(storage.key)) refuse(where, "the key of a storage is no number: " + quote(storage.key));
  if (item(3).kind() != Kind::text)
    refuse(where, "the location of a storage is no string: " + shown_value(pickle, item(3)));
  if (kind == GlobalKind::storage) {
    storage.dtype = pickle.global(item(1)).dtype;
    storage.unit = torch_dtype(*storage.dtype).bytes;
  }
  const std::uint64_t elements = count_of(pickle, item(4), "the number of elements of a storage", where);
  storage.bytes = product(elements, storage.unit, "the size of a storage", where);
  storage.window = storage.bytes;
  if (n == 6) read_view(pickle, item(5), storage, where);
  return storage;
}

bool is_tensor(const Pickle& pickle, PickleValue value) {
  if (value.kind() != Kind::object) return false;
  const GlobalKind kind = pickle.maker(value).kind;
  return makes_tensor(kind) || kind == GlobalKind::rebuild_parameter ||
         kind == GlobalKind::rebuild_parameter_with_state || kind == GlobalKind::rebuild_from_type;
}

TorchTensor tensor_of(const Pickle& pickle, PickleValue value, TorchIndex& index, std::string_view place) {
  const Rebuild call = innermost(pickle, value, place);
  const std::size_t n = pickle.tuple_size(call.arguments);
  const auto argument = [&](std::size_t i) { return pickle.tuple_item(call.arguments, i); };
  const bool third = call.kind == GlobalKind::rebuild_tensor_v3;
  const std::size_t most = call.kind == GlobalKind::rebuild_tensor ? 4 : third ? 8 : 7;
  const std::size_t least = call.kind == GlobalKind::rebuild_tensor ? 4 : most - 1;
  if (n < least || n > most) refuse_arguments(pickle, call.arguments, place);

  const TorchStorage storage = storage_of(pickle, argument(0), place);
  TorchTensor tensor;
  if (third) {
    if (argument(6).kind() != Kind::global || pickle.global(argument(6)).kind != GlobalKind::dtype)
      refuse(place, "the dtype of a tensor is none: " + shown_value(pickle, argument(6)));
    tensor.dtype = pickle.global(argument(6)).dtype;
  } else if (storage.dtype) {
    tensor.dtype = *storage.dtype;
  } else {
    refuse(place, "a tensor without dtype on an untyped storage");
  }
  if (n >= 6 && (argument(4).kind() != Kind::boolean || argument(5).kind() != Kind::dictionary))
    refuse_arguments(pickle, call.arguments, place);
  if (n == most && n > 6) check_bits(pickle, argument(n - 1), place);

  const std::uint64_t offset = count_of(pickle, argument(1), "the offset of a tensor", place);
  tensor.extents_at = static_cast<std::uint32_t>(index.extents.size());
  const std::size_t rank = append_counts(pickle, argument(2), index, "the shape of a tensor", place);
  tensor.rank = static_cast<std::uint8_t>(rank);
  const std::size_t strides = append_counts(pickle, argument(3), index, "the strides of a tensor", place);
  if (strides != rank)
    refuse(place, "shape and strides differ in length: " + std::to_string(rank) + " and " + std::to_string(strides));
  const std::uint64_t bytes = torch_dtype(tensor.dtype).bytes;
  check_window(index, tensor, offset, storage.window / bytes, place);
  tensor.storage_bytes = storage.bytes;
  tensor.begin = storage.skipped + offset * bytes;
  tensor.unit = static_cast<std::uint8_t>(storage.unit);
  tensor.key = {static_cast<std::uint32_t>(index.pool.size()), static_cast<std::uint32_t>(storage.key.size())};
  index.pool += storage.key;
  as_real(tensor, index, place);
  return tensor;
}

// ---- names ---------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kFreeBytes = std::size_t{900} << 10;
constexpr std::size_t kMostKey = 20;  ///< largest number of digits of a storage's key

/// Returns the memory that a table takes for `more` elements; while it grows, the old memory is still in use.
template <class T>
std::size_t taken_by(const T& table, std::size_t more) {
  const std::size_t grown = std::max(2 * table.capacity(), table.size() + more);
  return (table.capacity() + (table.size() + more > table.capacity() ? grown : 0)) * sizeof(*table.data());
}

}  // namespace

IndexBuilder::IndexBuilder(const Pickle& pickle, std::string_view where)
    : pickle_(pickle),
      where_(where),
      most_bytes_(kFreeBytes + 9 * pickle.size() - std::min(pickle.memory(), kFreeBytes + 8 * pickle.size())),
      visits_(1000 + pickle.size()) {}

void IndexBuilder::fail(const std::string& what) const { refuse(place(), what); }
std::string IndexBuilder::place() const { return where_ + ": " + quote(name_); }

void IndexBuilder::count_visit() {
  if (visits_-- == 0) fail("the same values are used again and again: more than the file has bytes");
}

void IndexBuilder::check_level(std::size_t levels) const {
  if (levels == kMostLevels) fail("nested too deeply: more than 100 levels");
}

void IndexBuilder::add_tensor(PickleValue value) {
  check_memory(name_.size() + kMostKey, 1, 0);
  if (name_.find('\0') != std::string::npos) fail("a name holds a NUL");
  TorchTensor tensor = tensor_of(pickle_, value, index_, place());
  tensor.name = pooled(name_);
  index_.tensors.push_back(tensor);
}

void IndexBuilder::add_metadata(std::string_view text) {
  check_memory(name_.size() + text.size(), 0, 1);
  const TextRange key = pooled(name_);
  index_.metadata.push_back({key, pooled(text)});
}

TextRange IndexBuilder::pooled(std::string_view text) {
  const TextRange range{static_cast<std::uint32_t>(index_.pool.size()), static_cast<std::uint32_t>(text.size())};
  index_.pool += text;
  return range;
}

void IndexBuilder::check_memory(std::size_t text, std::size_t tensors, std::size_t values) const {
  const std::size_t bytes = taken_by(index_.pool, text) + taken_by(index_.extents, tensors * 2 * kMostRank) +
                            taken_by(index_.tensors, tensors) + taken_by(index_.metadata, values);
  if (bytes > most_bytes_)
    fail("the names and values need more memory than a file of this size warrants: " + std::to_string(bytes) +
         " bytes; name the part you want by its key");
}

TorchIndex IndexBuilder::finish() {
  index_.by_name.resize(index_.tensors.size());
  std::iota(index_.by_name.begin(), index_.by_name.end(), 0u);
  const auto name = [this](std::uint32_t i) { return index_.name(i); };
  std::ranges::sort(index_.by_name, {}, name);
  const auto twice = std::ranges::adjacent_find(index_.by_name, {}, name);
  if (twice != index_.by_name.end())
    refuse(where_, "a name occurs twice: " + quote(name(*twice)) + "; name the part you want by its key");
  return std::move(index_);
}

// ---- dictionaries ----------------------------------------------------------------------------------------

namespace {

bool is_container(PickleValue v) {
  return v.kind() == Kind::dictionary || v.kind() == Kind::list || v.kind() == Kind::tuple;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double size = std::fabs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);  // as Python's repr
  std::array<char, 40> digits{};
  const auto form = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, form).ptr;
  std::string text(digits.data(), end);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

/// Returns the text of a dictionary's key, or nothing where it has none.
std::optional<std::string> key_text(const Pickle& pickle, PickleValue key) {
  if (key.kind() == Kind::global || key.kind() == Kind::object) return std::nullopt;
  return plain_text(pickle, key);
}

/// Returns the error text for a foreign value that was asked for.
std::string foreign_text(const Pickle& pickle, PickleValue v) {
  const auto [module, name] = pickle.foreign_name(v);
  return "the file names something that is not read: " + quote(std::string(module) + "." + std::string(name)) +
         " at byte " + std::to_string(pickle.foreign_at(v)) + " of the pickle; " + remedy_for(module, name);
}

class Flattener : IndexBuilder {
 public:
  Flattener(const Pickle& pickle, std::string_view where) : IndexBuilder(pickle, where) {}

  TorchIndex run(PickleValue root) {
    if (is_tensor(pickle_, root)) {
      name_ = kBareName;
      add_tensor(root);
    } else if (is_container(root)) {
      walk(root);
    } else if (root.kind() == Kind::foreign) {
      refuse(where_, foreign_text(pickle_, root));
    } else {
      refuse(where_, "holds no tensors: it is " + std::string(with_article(root.kind())) +
                         "; save a dictionary of tensors, such as model.state_dict()");
    }
    return finish();
  }

 private:
  /// A container on the path from the root.
  struct Frame {
    PickleValue container;
    Pickle::Items items;
    std::size_t name_size;  ///< length of the container's own name
    std::size_t next = 0;   ///< position of the next item
  };

  void enter(PickleValue container) {
    check_level(frames_.size());
    for (const Frame& frame : frames_)
      if (frame.container == container && pickle_.items(container).next()) fail("contains itself");
    frames_.push_back({container, pickle_.items(container), name_.size()});
  }

  void walk(PickleValue root) {
    enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      name_.resize(frame.name_size);
      const auto first = frame.items.next();
      if (!first) {
        frames_.pop_back();
        continue;
      }
      if (frames_.size() > 1) name_ += '.';
      if (frame.container.kind() == Kind::dictionary) {
        append_key(*first);
        visit(*frame.items.next());  // a dictionary holds pairs
      } else {
        name_ += std::to_string(frame.next++);
        visit(*first);
      }
    }
  }

  void append_key(PickleValue key) {
    const auto text = key_text(pickle_, key);
    if (!text)
      fail("a dictionary's key is neither a string nor a number: " + std::string(with_article(key.kind())) +
           "; name the part you want by its key");
    name_ += *text;
  }

  void visit(PickleValue value) {
    count_visit();
    if (is_tensor(pickle_, value)) return add_tensor(value);
    if (value.kind() == Kind::persistent) fail("a bare storage; save a tensor");
    if (!is_container(value)) {
      if (const auto text = plain_text(pickle_, value)) return add_metadata(*text);
      if (value.kind() == Kind::foreign)
        fail(foreign_text(pickle_, value) + "; or name the part that you want by its key");
      if (value.kind() == Kind::object && pickle_.maker(value).kind == GlobalKind::numpy_scalar)
        fail("a number of NumPy that is not read; " + remedy_for("numpy", "scalar"));
      return;
    }
    if (value.kind() != Kind::dictionary) {
      if (const auto text = plain_list(value)) return add_metadata(*text);
    }
    enter(value);
  }

  /// Returns a list of scalars as Python writes it, "[0, 1]"; nothing when it holds anything else.
  std::optional<std::string> plain_list(PickleValue list) {
    const bool tuple = list.kind() == Kind::tuple;
    std::string text = tuple ? "(" : "[";
    std::size_t n = 0;
    Pickle::Items items = pickle_.items(list);
    while (const auto item = items.next()) {
      if (item->kind() != Kind::none && item->kind() != Kind::boolean && item->kind() != Kind::integer &&
          item->kind() != Kind::real)
        return std::nullopt;
      count_visit();
      if (n++ > 0) text += ", ";
      text += *plain_text(pickle_, *item);
      check_memory(2 * text.size(), 0, 0);
    }
    text += tuple ? (n == 1 ? ",)" : ")") : "]";
    return text;
  }

  std::vector<Frame> frames_;
};

/// Returns the content of a bytes object. Protocol 2, which has none, pickles those of Python 3 as a string in which
/// each code point is the number of a byte.
std::optional<std::string> bytes_of(const Pickle& pickle, PickleValue v) {
  if (v.kind() == Kind::bytes) return std::string(pickle.text(v));
  if (v.kind() != Kind::object || pickle.maker(v).module != "_codecs") return std::nullopt;
  const PickleValue arguments = pickle.arguments(v);
  if (pickle.tuple_size(arguments) != 2 || pickle.tuple_item(arguments, 0).kind() != Kind::text) return std::nullopt;
  const std::string_view text = pickle.text(pickle.tuple_item(arguments, 0));
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
    } else if (first == 0xc2 || first == 0xc3) {  // the text is UTF-8: one byte follows
      bytes += static_cast<char>((first & 3U) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3fU));
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

/// Returns the name of a NumPy dtype, "f8", with the byte order from its state.
std::optional<std::string> numpy_type(const Pickle& pickle, PickleValue v) {
  if (v.kind() != Kind::object || pickle.maker(v).kind != GlobalKind::numpy_dtype) return std::nullopt;
  const PickleValue arguments = pickle.arguments(v), state = pickle.dtype_state(v);
  if (pickle.tuple_size(arguments) == 0 || pickle.tuple_item(arguments, 0).kind() != Kind::text) return std::nullopt;
  if (state.kind() != Kind::tuple || pickle.tuple_size(state) < 2) return std::nullopt;
  const PickleValue order = pickle.tuple_item(state, 1);
  if (order.kind() != Kind::text || (pickle.text(order) != "<" && pickle.text(order) != "|")) return std::nullopt;
  return std::string(pickle.text(pickle.tuple_item(arguments, 0)));
}

template <class T>
std::optional<T> number_of(const std::string& bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// Returns a NumPy number as Python writes its x.item(); nothing for other types and inconsistent values.
std::optional<std::string> numpy_text(const Pickle& pickle, PickleValue v) {
  const PickleValue arguments = pickle.arguments(v);
  if (pickle.tuple_size(arguments) != 2) return std::nullopt;
  const auto type = numpy_type(pickle, pickle.tuple_item(arguments, 0));
  const auto bytes = bytes_of(pickle, pickle.tuple_item(arguments, 1));
  if (!type || !bytes) return std::nullopt;
  const auto whole = [](const auto& value) { return value ? std::optional(std::to_string(*value)) : std::nullopt; };
  const auto real = [](const auto& value) {
    return value ? std::optional(real_text(static_cast<double>(*value))) : std::nullopt;
  };
  if (*type == "f8") return real(number_of<double>(*bytes));
  if (*type == "f4") return real(number_of<float>(*bytes));
  if (*type == "f2") return real(number_of<float16>(*bytes));
  if (*type == "i8") return whole(number_of<std::int64_t>(*bytes));
  if (*type == "i4") return whole(number_of<std::int32_t>(*bytes));
  if (*type == "i2") return whole(number_of<std::int16_t>(*bytes));
  if (*type == "i1") return whole(number_of<std::int8_t>(*bytes));
  if (*type == "u8") return whole(number_of<std::uint64_t>(*bytes));
  if (*type == "u4") return whole(number_of<std::uint32_t>(*bytes));
  if (*type == "u2") return whole(number_of<std::uint16_t>(*bytes));
  if (*type == "u1") return whole(number_of<std::uint8_t>(*bytes));
  const auto byte = number_of<std::uint8_t>(*bytes);
  if (*type == "b1" && byte && *byte <= 1) return *byte == 1 ? "True" : "False";
  return std::nullopt;
}

/// Returns advice that lists the names in a container.
std::string names_in(const Pickle& pickle, PickleValue container) {
  std::string names;
  Pickle::Items items = pickle.items(container);
  int n = 0;
  while (const auto key = items.next()) {
    if (container.kind() != Kind::dictionary) break;
    items.next();
    const auto text = key_text(pickle, *key);
    if (!text) continue;
    if (++n > 8) return names + ", ...";
    names += (n > 1 ? ", " : "") + quote(*text);
  }
  return names;
}

/// The item of a container under the longest name that the path begins with, and the rest of the path.
struct Step {
  std::optional<PickleValue> value;
  std::size_t taken = 0;
};

Step step_into(const Pickle& pickle, PickleValue container, std::string_view path) {
  Step best;
  Pickle::Items items = pickle.items(container);
  for (std::size_t i = 0;; ++i) {
    const auto first = items.next();
    if (!first) return best;
    const bool dictionary = container.kind() == Kind::dictionary;
    const auto value = dictionary ? items.next() : first;
    const auto text = dictionary ? key_text(pickle, *first) : std::to_string(i);
    if (!text || !path.starts_with(*text)) continue;
    if (path.size() != text->size() && path[text->size()] != '.') continue;
    if (!best.value || text->size() >= best.taken) best = {value, text->size()};
  }
}

}  // namespace

std::optional<std::string> plain_text(const Pickle& pickle, PickleValue v) {
  switch (v.kind()) {
    case Kind::none: return "None";
    case Kind::boolean: return pickle.boolean(v) ? "True" : "False";
    case Kind::real: return real_text(pickle.real(v));
    case Kind::text: return std::string(pickle.text(v));
    case Kind::integer: {
      const auto value = pickle.integer(v);
      return value ? std::to_string(*value) : "an integer of more than 64 bits";
    }
    case Kind::global: {
      const PickleGlobal& global = pickle.global(v);
      if (global.kind != GlobalKind::dtype) return std::nullopt;
      return std::string(global.module) + "." + std::string(global.name);
    }
    case Kind::foreign: {
      const auto value = pickle.foreign_value(v);
      return value ? plain_text(pickle, *value) : std::nullopt;
    }
    case Kind::object: {
      if (pickle.maker(v).kind == GlobalKind::numpy_scalar) return numpy_text(pickle, v);
      const PickleValue arguments = pickle.arguments(v);
      if (pickle.maker(v).kind != GlobalKind::device || pickle.tuple_size(arguments) == 0) return std::nullopt;
      const auto item = [&](std::size_t i) { return pickle.tuple_item(arguments, i); };
      if (item(0).kind() != Kind::text) return std::nullopt;
      std::string text(pickle.text(item(0)));
      if (pickle.tuple_size(arguments) == 2 && item(1).kind() == Kind::integer)
        text += ":" + std::to_string(pickle.integer(item(1)).value_or(-1));
      return text;
    }
    default: return std::nullopt;
  }
}

std::optional<std::size_t> TorchIndex::find(std::string_view wanted) const {
  const auto key = [this](std::uint32_t i) { return name(i); };
  const auto found = std::ranges::lower_bound(by_name, wanted, {}, key);
  if (found == by_name.end() || key(*found) != wanted) return std::nullopt;
  return *found;
}

TorchIndex flatten(const Pickle& pickle, std::string_view key, std::string_view where) {
  PickleValue part = pickle.root();
  std::string_view path = key;
  while (!path.empty()) {
    const Step step = is_container(part) ? step_into(pickle, part, path) : Step{};
    if (!step.value && part.kind() == Kind::foreign) refuse(where, foreign_text(pickle, part));
    if (!step.value) {
      const std::string names = is_container(part) ? names_in(pickle, part) : "";
      refuse(where,
             "the checkpoint has no part of this name: " + quote(key) + (names.empty() ? "" : "; there are " + names));
    }
    part = *step.value;
    path.remove_prefix(std::min(path.size(), step.taken + 1));
  }
  return Flattener(pickle, where).run(part);
}

}  // namespace ferrite::io::detail
