/// The closed table of names that a pickle may mention.
#include "ferrite/io/torch/pickle.h"

#include <algorithm>
#include <array>

namespace ferrite::io::detail {
namespace {

constexpr std::array<TorchDtype, 20> kTorchDtypes = {{
    {"float32", 4, FileDtype::f32},
    {"float64", 8, FileDtype::f64},
    {"float16", 2, FileDtype::f16},
    {"bfloat16", 2, FileDtype::bf16},
    {"int64", 8, FileDtype::i64},
    {"int32", 4, FileDtype::i32},
    {"int16", 2, FileDtype::i16},
    {"int8", 1, FileDtype::i8},
    {"uint8", 1, FileDtype::u8},
    {"bool", 1, FileDtype::boolean},
    {"uint16", 2, FileDtype::u16},
    {"uint32", 4, FileDtype::u32},
    {"uint64", 8, FileDtype::u64},
    {"complex64", 8, FileDtype::c64},
    {"complex128", 16, std::nullopt},
    {"complex32", 4, std::nullopt},
    {"float8_e4m3fn", 1, FileDtype::f8_e4m3},
    {"float8_e5m2", 1, FileDtype::f8_e5m2},
    {"float8_e4m3fnuz", 1, FileDtype::f8_e4m3fnuz},
    {"float8_e5m2fnuz", 1, FileDtype::f8_e5m2fnuz},
}};

constexpr std::uint8_t number_of(std::string_view name) {
  for (std::uint8_t i = 0; i < kTorchDtypes.size(); ++i)
    if (kTorchDtypes[i].name == name) return i;
  return kTorchDtypes.size();
}

constexpr PickleGlobal storage_class(std::string_view name, std::string_view dtype) {
  return {"torch", name, GlobalKind::storage, number_of(dtype)};
}

constexpr PickleGlobal dtype_called(std::string_view name) {
  return {"torch", name, GlobalKind::dtype, number_of(name)};
}

using enum GlobalKind;

// Protocol 2 calls `builtins` by its old name `__builtin__`.
constexpr PickleGlobal kGlobals[] = {
    {"collections", "OrderedDict", ordered_dict},
    {"collections", "Counter", counter},
    {"collections", "defaultdict", default_dict},
    {"torch", "Size", size},
    {"torch", "device", device},
    {"torch", "Tensor", tensor_class},
    {"torch.nn.parameter", "Parameter", tensor_class},
    {"torch._utils", "_rebuild_tensor", rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v2", rebuild_tensor_v2},
    {"torch._utils", "_rebuild_tensor_v3", rebuild_tensor_v3},
    {"torch._utils", "_rebuild_parameter", rebuild_parameter},
    {"torch._utils", "_rebuild_parameter_with_state", rebuild_parameter_with_state},
    {"torch._tensor", "_rebuild_from_type_v2", rebuild_from_type},
    {"torch.storage", "UntypedStorage", untyped_storage},
    {"torch", "UntypedStorage", untyped_storage},
    storage_class("FloatStorage", "float32"),
    storage_class("DoubleStorage", "float64"),
    storage_class("HalfStorage", "float16"),
    storage_class("BFloat16Storage", "bfloat16"),
    storage_class("LongStorage", "int64"),
    storage_class("IntStorage", "int32"),
    storage_class("ShortStorage", "int16"),
    storage_class("CharStorage", "int8"),
    storage_class("ByteStorage", "uint8"),
    storage_class("BoolStorage", "bool"),
    storage_class("ComplexFloatStorage", "complex64"),
    storage_class("ComplexDoubleStorage", "complex128"),
    dtype_called("float32"),
    dtype_called("float64"),
    dtype_called("float16"),
    dtype_called("bfloat16"),
    dtype_called("int64"),
    dtype_called("int32"),
    dtype_called("int16"),
    dtype_called("int8"),
    dtype_called("uint8"),
    dtype_called("bool"),
    dtype_called("uint16"),
    dtype_called("uint32"),
    dtype_called("uint64"),
    dtype_called("complex64"),
    dtype_called("complex128"),
    dtype_called("complex32"),
    dtype_called("float8_e4m3fn"),
    dtype_called("float8_e5m2"),
    dtype_called("float8_e4m3fnuz"),
    dtype_called("float8_e5m2fnuz"),
    {"torch.jit._pickle", "build_intlist", plain_object},
    {"torch.jit._pickle", "build_tensorlist", plain_object},
    {"torch.jit._pickle", "build_doublelist", plain_object},
    {"torch.jit._pickle", "build_boollist", plain_object},
    {"torch.jit._pickle", "restore_type_tag", plain_object},
    {"numpy", "dtype", numpy_dtype},
    {"numpy.core.multiarray", "scalar", numpy_scalar},
    {"numpy._core.multiarray", "scalar", numpy_scalar},
    {"_codecs", "encode", plain_object},
    {"builtins", "set", plain_object},
    {"builtins", "frozenset", plain_object},
    {"builtins", "bytearray", plain_object},
    {"builtins", "complex", plain_object},
    {"builtins", "list", plain_type},
    {"builtins", "dict", plain_type},
    {"builtins", "tuple", plain_type},
    {"builtins", "int", plain_type},
    {"builtins", "float", plain_type},
    {"builtins", "bool", plain_type},
    {"builtins", "str", plain_type},
};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

const TorchDtype& torch_dtype(std::uint8_t number) { return kTorchDtypes[number]; }

std::string_view storage_class_of(FileDtype type) {
  for (const PickleGlobal& g : kGlobals)
    if (g.kind == storage && kTorchDtypes[g.dtype].type == type) return g.name;
  throw Error("torch: no class of storages for " + std::string(name_of(type)));
}

std::uint8_t torch_dtype_number(std::string_view name) { return number_of(name); }

std::optional<std::uint32_t> find_global(std::string_view module, std::string_view name) {
  if (module == "__builtin__") module = "builtins";
  for (std::uint32_t i = 0; i < std::size(kGlobals); ++i)
    if (kGlobals[i].name == name && kGlobals[i].module == module) return i;
  return std::nullopt;
}

const PickleGlobal& global_at(std::uint32_t position) { return kGlobals[position]; }

bool may_be_enum(std::string_view module, std::string_view name) {
  constexpr std::string_view others[] = {"builtins", "__builtin__", "os",    "posix", "nt",          "subprocess",
                                         "sys",      "runpy",       "torch", "numpy", "collections", "importlib"};
  const std::string_view root = module.substr(0, module.find('.'));
  const std::string_view own = name.substr(name.rfind('.') + 1);
  return !own.empty() && own.front() >= 'A' && own.front() <= 'Z' &&
         std::ranges::find(others, root) == std::end(others);
}

std::string remedy_for(std::string_view module, std::string_view name) {
  if (module.starts_with("numpy"))
    return "turn NumPy arrays and numbers into tensors or Python numbers before torch.save (x.item(), torch.tensor(x))";
  if (has(name, "sparse") || has(name, "_get_layout")) return "sparse tensors are not read; save x.to_dense()";
  if (has(name, "qtensor") || name.starts_with("QInt") || name.starts_with("QUInt") || has(module, "quantized"))
    return "quantised tensors are not read; save x.dequantize()";
  if (has(name, "meta_tensor")) return "a tensor on the meta device has no values";
  if (has(name, "nested_tensor") || has(name, "NestedTensor"))
    return "nested tensors are not read; save the list of them, x.unbind()";
  if (has(module, "distributed") || has(name, "wrapper_subclass") || has(name, "_rebuild_device_tensor"))
    return "save plain CPU tensors: {k: v.detach().cpu() for k, v in model.state_dict().items()}";
  if (module.starts_with("torch.nn") || module == "__main__" || has(module, "model"))
    return "is this a whole pickled module? save model.state_dict() instead";
  return "nothing in a file is ever run; save tensors, dictionaries, lists and numbers only, such as "
         "model.state_dict()";
}

}  // namespace ferrite::io::detail
