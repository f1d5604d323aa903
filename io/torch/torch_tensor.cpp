/// Reads the persistent ids and tensor calls of a PyTorch pickle.
#include <algorithm>
#include <limits>
#include <string>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch/torch_index.h"
#include "ferrite/tensor/extents.h"

namespace ferrite::io::detail {
namespace {

using Kind = PickleKind;

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 62;
/// What stride 0 may make of a few elements.
constexpr std::uint64_t kMostRepeated = std::uint64_t{1} << 28;

std::string shown_value(const Pickle& pickle, PickleValue value) {
  if (value.kind() != Kind::integer) return std::string(with_article(value.kind()));
  const auto number = pickle.integer(value);
  return number ? std::to_string(*number) : "an integer of more than 64 bits";
}

/// An integer of at least 0.
std::uint64_t count_of(const Pickle& pickle, PickleValue value, std::string_view what, std::string_view place) {
  const auto number = value.kind() == Kind::integer ? pickle.integer(value) : std::nullopt;
  if (!number || *number < 0)
    refuse(place, std::string(what) + " is no integer of at least 0: " + shown_value(pickle, value));
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
    refuse(place, "the view of a storage is no tuple of three: " + std::string(with_article(view.kind())));
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

/// Takes off Parameter and the like.
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

/// conj and neg: the values in the storage are not those of the tensor.
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

/// Extents or strides, appended to the index.
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
  std::uint64_t distinct = 1;  ///< without axes of stride 0
  std::uint64_t last = 0;      ///< the last element's distance from the first
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

/// A complex tensor as one of real numbers, with an axis of real and imaginary parts behind the others.
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

}  // namespace ferrite::io::detail
