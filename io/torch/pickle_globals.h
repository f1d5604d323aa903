#pragma once
/// The closed table of names that a pickle may mention, and what they stand for.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ferrite/io/detail/file_dtype.h"

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

}  // namespace ferrite::io::detail
