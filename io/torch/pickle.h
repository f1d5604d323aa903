#pragma once
/// Pickles read as data: values, never code; and the closed table of names that a pickle may mention.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ferrite/io/detail/file_dtype.h"

// ---- names ---------------------------------------------------------------------------------------------

namespace ferrite::io::detail {

/// What a name in a pickle may stand for. Nothing here can be called: the reader only notes that it was named.
enum class GlobalKind : std::uint8_t {
  ordered_dict,
  counter,
  default_dict,
  size,               ///< torch.Size
  device,             ///< torch.device
  plain_type,         ///< list, int and so on: the factory of a defaultdict
  plain_object,       ///< set, bytearray, complex, _codecs.encode, lists of TorchScript: data that nobody asks for
  tensor_class,       ///< torch.Tensor, Parameter: the type in _rebuild_from_type_v2
  rebuild_tensor,     ///< (storage, offset, size, stride)
  rebuild_tensor_v2,  ///< and requires_grad, hooks[, metadata]
  rebuild_tensor_v3,  ///< and requires_grad, hooks, dtype[, metadata]
  rebuild_parameter,  ///< (tensor, requires_grad, hooks)
  rebuild_parameter_with_state,  ///< and the attributes
  rebuild_from_type,             ///< (function, class, arguments, attributes)
  storage,                       ///< torch.FloatStorage and so on
  untyped_storage,
  dtype,         ///< torch.float32 and so on
  numpy_scalar,  ///< (numpy.dtype, bytes)
  numpy_dtype,   ///< (name, align, copy)
};

/// PyTorch's types of elements.
struct TorchDtype {
  std::string_view name;          ///< "float32"
  std::uint64_t bytes = 0;        ///< of one element
  std::optional<FileDtype> type;  ///< nothing for complex128 and complex32
};

/// A name that is allowed.
struct PickleGlobal {
  std::string_view module;
  std::string_view name;
  GlobalKind kind = GlobalKind::plain_type;
  std::uint8_t dtype = 0;  ///< of a storage class or dtype, for `torch_dtype`
};

const TorchDtype& torch_dtype(std::uint8_t number);

/// The number of a type by its name, "float32".
std::uint8_t torch_dtype_number(std::string_view name);

/// The class of storages of a type, "FloatStorage": one that tensors are written in.
std::string_view storage_class_of(FileDtype type);

/// Position of a name in the closed table; nothing for any other.
std::optional<std::uint32_t> find_global(std::string_view module, std::string_view name);
const PickleGlobal& global_at(std::uint32_t position);

/// Whether a name may be that of an Enum: of a class, by Python's convention, and not of Python's own modules that run
/// things. It decides how an error reads, not what is done: nothing is ever done.
bool may_be_enum(std::string_view module, std::string_view name);

/// What to do about a file that names something else.
std::string remedy_for(std::string_view module, std::string_view name);

// ---- values --------------------------------------------------------------------------------------------

inline constexpr std::size_t kMostPickleBytes = 100'000'000;

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,  ///< also those beyond 64 bits
  real,
  text,
  bytes,
  tuple,
  list,
  dictionary,  ///< dict, OrderedDict, Counter, defaultdict
  set,
  global,          ///< a name from the closed table
  object,          ///< such a name and its arguments; what it means is for the caller to say
  persistent,      ///< a persistent id: a storage
  scripted_class,  ///< a class of TorchScript by its name, "__torch__.Net"
  instance,        ///< of such a class, with its state
  foreign,         ///< a name that is not in the table, or what it was called with or given: never built
};

/// "a tuple", as errors say it.
std::string_view with_article(PickleKind kind);

/// A value of a pickle in four bytes: a scalar is the place of its opcode, the rest are places in tables.
class PickleValue {
 public:
  constexpr PickleValue() = default;
  constexpr PickleValue(PickleKind kind, std::uint32_t place)
      : bits_((static_cast<std::uint32_t>(kind) << 28) | place) {}
  PickleKind kind() const { return static_cast<PickleKind>(bits_ >> 28); }
  std::uint32_t place() const { return bits_ & 0x0fffffffu; }
  bool operator==(const PickleValue&) const = default;

 private:
  std::uint32_t bits_ = 0;
};

/// A list, dictionary or set in pieces of consecutive items; dictionaries hold key, value, key, value.
struct PickleNode {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
  std::uint32_t next = 0;  ///< the next piece's number; 0 for none
  std::uint32_t last = 0;  ///< of the first piece: the last one's number
};

/// The values of one pickle. They refer to each other by number, may be shared and may even contain themselves; no
/// destructor follows them. The bytes must outlive it.
class Pickle {
 public:
  explicit Pickle(std::span<const std::byte> bytes) : bytes_(bytes), nodes_(1) {}

  PickleValue root() const { return root_; }
  /// Bytes of the pickle, from its first opcode to its STOP.
  std::size_t size() const { return size_; }
  /// Bytes of memory that the values took.
  std::size_t memory() const { return memory_; }

  bool boolean(PickleValue v) const { return v.place() != 0; }
  /// Nothing where it does not fit 64 bits.
  std::optional<std::int64_t> integer(PickleValue v) const;
  double real(PickleValue v) const;
  std::string_view text(PickleValue v) const;
  const PickleGlobal& global(PickleValue v) const { return global_at(v.place()); }

  std::size_t tuple_size(PickleValue v) const;
  /// An item of a tuple; not checked.
  PickleValue tuple_item(PickleValue v, std::size_t i) const { return pool_[v.place() + 1 + i]; }

  /// What an object was made by, and its arguments: always a tuple.
  const PickleGlobal& maker(PickleValue object) const { return global(pool_[object.place()]); }
  PickleValue arguments(PickleValue object) const { return pool_[object.place() + 1]; }
  /// What a persistent id holds.
  PickleValue persistent_id(PickleValue v) const { return pool_[v.place()]; }

  /// The module and the name of a class of TorchScript: "__torch__.models" and "Net".
  std::pair<std::string_view, std::string_view> class_name(PickleValue scripted_class) const;
  PickleValue class_of(PickleValue instance) const { return pool_[instance.place()]; }
  /// What the instance was given to make itself of: None where nothing was, and for modules otherwise a dictionary.
  PickleValue state_of(PickleValue instance) const { return pool_[instance.place() + 1]; }

  /// The module and the name that a foreign value comes from, and the byte at which the pickle names it.
  std::pair<std::string_view, std::string_view> foreign_name(PickleValue v) const;
  std::size_t foreign_at(PickleValue v) const { return pool_[v.place() + 2].place(); }
  /// The number, string, bool or None that a class was called with and nothing else, as an Enum is pickled.
  std::optional<PickleValue> foreign_value(PickleValue v) const {
    const PickleValue value = pool_[v.place() + 3];
    return value.kind() == PickleKind::foreign ? std::nullopt : std::optional(value);
  }
  /// What a numpy.dtype was given beside its arguments; None where nothing was.
  PickleValue dtype_state(PickleValue object) const { return pool_[object.place() + 2]; }

  /// All persistent ids, in the order in which they were met.
  const std::deque<PickleValue>& persistent_ids() const { return persistent_ids_; }

  /// Walks over the items of a tuple, list, dictionary or set.
  class Items {
   public:
    Items(const Pickle& pickle, PickleValue container);
    std::optional<PickleValue> next();

   private:
    const Pickle* pickle_;
    std::uint32_t at_ = 0;
    std::uint32_t left_ = 0;
    std::uint32_t next_ = 0;
  };
  Items items(PickleValue container) const { return {*this, container}; }

 private:
  friend class PickleState;
  friend class PickleMachine;
  /// Marks an OrderedDict in the place of a dictionary.
  static constexpr std::uint32_t kOrderedBit = 1u << 27;

  std::span<const std::byte> bytes_;
  std::size_t size_ = 0;
  std::size_t memory_ = 0;
  PickleValue root_;
  std::deque<PickleValue> pool_;
  std::deque<PickleValue> persistent_ids_;
  std::deque<PickleNode> nodes_;  // the first stands for none
};

/// Which classes a pickle may mention beside the closed table.
enum class PickleClasses : std::uint8_t {
  none,
  scripted,  ///< those of TorchScript, "__torch__. ...": their instances are kept as their states
};

/// Reads the pickle at the front of the bytes: protocols 2 to 5, the opcodes that data needs. Nothing is ever called or
/// imported: names from the closed table stand for data, all others, and what the pickle makes by them, are foreign
/// values, which have nothing but that name. Of TorchScript other names are refused. Throws IoError, its message
/// beginning with `where`, for anything else, above 100 MB, and where memory would exceed eight times the bytes read
/// and half a MiB.
Pickle read_pickle(std::span<const std::byte> bytes, std::string_view where,
                   PickleClasses classes = PickleClasses::none);

}  // namespace ferrite::io::detail
