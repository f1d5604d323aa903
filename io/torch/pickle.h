#pragma once
/// Reading pickles as data, never as code, and the closed table of names that a pickle may mention.
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

/// The meaning of a name in a pickle. Nothing here can be called: the reader only records that it was named.
enum class GlobalKind : std::uint8_t {
  ordered_dict,
  counter,
  default_dict,
  size,               ///< torch.Size
  device,             ///< torch.device
  plain_type,         ///< list, int and so on: the factory of a defaultdict
  plain_object,       ///< set, bytearray, complex, _codecs.encode, lists of TorchScript: data that is not read
  tensor_class,       ///< torch.Tensor, Parameter: the type in _rebuild_from_type_v2
  rebuild_tensor,     ///< arguments (storage, offset, size, stride)
  rebuild_tensor_v2,  ///< arguments of rebuild_tensor, requires_grad, hooks[, metadata]
  rebuild_tensor_v3,  ///< arguments of rebuild_tensor, requires_grad, hooks, dtype[, metadata]
  rebuild_parameter,  ///< arguments (tensor, requires_grad, hooks)
  rebuild_parameter_with_state,  ///< arguments of rebuild_parameter, attributes
  rebuild_from_type,             ///< arguments (function, class, arguments, attributes)
  storage,                       ///< torch.FloatStorage and so on
  untyped_storage,
  dtype,         ///< torch.float32 and so on
  numpy_scalar,  ///< arguments (numpy.dtype, bytes)
  numpy_dtype,   ///< arguments (name, align, copy)
};

/// One of PyTorch's dtypes.
struct TorchDtype {
  std::string_view name;          ///< PyTorch's word, "float32"
  std::uint64_t bytes = 0;        ///< size of one element
  std::optional<FileDtype> type;  ///< empty for complex128 and complex32
};

/// An entry of the closed table of names.
struct PickleGlobal {
  std::string_view module;
  std::string_view name;
  GlobalKind kind = GlobalKind::plain_type;
  std::uint8_t dtype = 0;  ///< the type's number, for `torch_dtype`, where the name is a storage class or dtype
};

/// Returns the dtype with a number.
const TorchDtype& torch_dtype(std::uint8_t number);

/// Returns the number of a dtype by its name, "float32".
std::uint8_t torch_dtype_number(std::string_view name);

/// Returns the storage class for a type in which tensors are written, "FloatStorage".
std::string_view storage_class_of(FileDtype type);

/// Returns the position of a name in the closed table, if it is there.
std::optional<std::uint32_t> find_global(std::string_view module, std::string_view name);
const PickleGlobal& global_at(std::uint32_t position);

/// Returns whether a name may be that of an Enum: that of a class, by Python's convention, and not from Python's own
/// modules that run things. The answer only decides how the value is read or reported; nothing is ever called.
bool may_be_enum(std::string_view module, std::string_view name);

/// Returns advice for a file that mentions a name outside of the table.
std::string remedy_for(std::string_view module, std::string_view name);

// ---- values --------------------------------------------------------------------------------------------

inline constexpr std::size_t kMostPickleBytes = 100'000'000;

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,  ///< an integer, which may exceed 64 bits
  real,
  text,
  bytes,
  tuple,
  list,
  dictionary,  ///< dict, OrderedDict, Counter, defaultdict
  set,
  global,          ///< a name from the closed table
  object,          ///< a name from the closed table with arguments; the caller interprets it
  persistent,      ///< a persistent id: a storage
  scripted_class,  ///< a class of TorchScript by its name, "__torch__.Net"
  instance,        ///< an instance of a TorchScript class, with its state
  foreign,         ///< a name that is not in the table, or anything made with it: never built
};

/// Returns a kind as errors name it, "a tuple".
std::string_view with_article(PickleKind kind);

/// A value of a pickle in four bytes: the place of a scalar's opcode, or a place in a table.
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
  std::uint32_t last = 0;  ///< in the first piece: the last piece's number
};

/// The values of one pickle. They refer to each other by number, so that they may be shared, may even contain
/// themselves, and need no recursive destructor. The bytes must outlive the object.
class Pickle {
 public:
  explicit Pickle(std::span<const std::byte> bytes) : bytes_(bytes), nodes_(1) {}

  PickleValue root() const { return root_; }
  /// Returns the length of the pickle in bytes, from its first opcode to its STOP.
  std::size_t size() const { return size_; }
  /// Returns the number of bytes of memory that the values take.
  std::size_t memory() const { return memory_; }

  bool boolean(PickleValue v) const { return v.place() != 0; }
  /// Returns the number of a value of kind `integer`; nullopt where it does not fit into 64 bits.
  std::optional<std::int64_t> integer(PickleValue v) const;
  double real(PickleValue v) const;
  std::string_view text(PickleValue v) const;
  const PickleGlobal& global(PickleValue v) const { return global_at(v.place()); }

  std::size_t tuple_size(PickleValue v) const;
  /// Returns an item of a tuple; the index is not checked.
  PickleValue tuple_item(PickleValue v, std::size_t i) const { return pool_[v.place() + 1 + i]; }

  /// Returns the entry, in the closed table of names, of the class or function that an object (kind `object`) was made
  /// with. The kind of the entry says what the arguments mean.
  const PickleGlobal& maker(PickleValue object) const { return global(pool_[object.place()]); }
  /// Returns the arguments with which an object was made, always a tuple.
  PickleValue arguments(PickleValue object) const { return pool_[object.place() + 1]; }
  /// Returns the tuple in a persistent id.
  PickleValue persistent_id(PickleValue v) const { return pool_[v.place()]; }

  /// Returns the module and the name of a TorchScript class: "__torch__.models" and "Net".
  std::pair<std::string_view, std::string_view> class_name(PickleValue scripted_class) const;
  PickleValue class_of(PickleValue instance) const { return pool_[instance.place()]; }
  /// Returns the pickled state of an instance: None where there is none, otherwise for modules a dictionary.
  PickleValue state_of(PickleValue instance) const { return pool_[instance.place() + 1]; }

  /// Returns the module and the name that a foreign value was made with.
  std::pair<std::string_view, std::string_view> foreign_name(PickleValue v) const;
  /// Returns the byte at which the pickle names the maker of a foreign value.
  std::size_t foreign_at(PickleValue v) const { return pool_[v.place() + 2].place(); }
  /// Returns the only argument of the call that made a foreign value, if that is a number, string, bool or None: the
  /// value of an Enum. Returns nullopt for other calls, and for names that no Enum can have. `v` must be of kind
  /// PickleKind::foreign.
  std::optional<PickleValue> foreign_value(PickleValue v) const {
    const PickleValue value = pool_[v.place() + 3];
    return value.kind() == PickleKind::foreign ? std::nullopt : std::optional(value);
  }
  /// Returns the state that a numpy.dtype was given after its arguments, or None.
  PickleValue dtype_state(PickleValue object) const { return pool_[object.place() + 2]; }

  /// Returns all persistent ids, in the order in which they occur.
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
  /// Bit that marks an OrderedDict in a dictionary's place.
  static constexpr std::uint32_t kOrderedBit = 1u << 27;

  std::span<const std::byte> bytes_;
  std::size_t size_ = 0;
  std::size_t memory_ = 0;
  PickleValue root_;
  std::deque<PickleValue> pool_;
  std::deque<PickleValue> persistent_ids_;
  std::deque<PickleNode> nodes_;  // number 0 means none
};

/// The classes that a pickle may mention in addition to the closed table.
enum class PickleClasses : std::uint8_t {
  none,
  scripted,  ///< TorchScript's classes, "__torch__. ...": their instances are kept as their states
};

/// Reads the pickle at the front of the bytes: protocols 2 to 5, the opcodes that data needs. Nothing is ever called or
/// imported: names from the closed table denote data; all others, and the values that the pickle makes with them,
/// become foreign values, of which only that name is known. With PickleClasses::scripted other names are refused.
/// Throws IoError, its message beginning with `where`, for anything else, above 100 MB, and where memory would exceed
/// eight times the bytes read plus half a MiB.
Pickle read_pickle(std::span<const std::byte> bytes, std::string_view where,
                   PickleClasses classes = PickleClasses::none);

}  // namespace ferrite::io::detail
