#pragma once
/// The field numbers of ONNX files, from onnx.proto of the ONNX project (IR version 14), and the numbers of the types
/// of elements and attributes. Both the reader and the writer use them.
#include <cstdint>

namespace ferrite::onnx::detail {

/// The fields of ModelProto. Each message has a namespace, and the comment after a field gives its type in onnx.proto.
namespace model_field {                               // ModelProto
inline constexpr std::uint32_t ir_version = 1;        // int64
inline constexpr std::uint32_t producer_name = 2;     // string
inline constexpr std::uint32_t producer_version = 3;  // string
inline constexpr std::uint32_t domain = 4;            // string
inline constexpr std::uint32_t model_version = 5;     // int64
inline constexpr std::uint32_t doc_string = 6;        // string
inline constexpr std::uint32_t graph = 7;             // GraphProto
inline constexpr std::uint32_t opset_import = 8;      // repeated OperatorSetIdProto
inline constexpr std::uint32_t metadata_props = 14;   // repeated StringStringEntryProto
inline constexpr std::uint32_t training_info = 20;    // repeated TrainingInfoProto
inline constexpr std::uint32_t functions = 25;        // repeated FunctionProto
inline constexpr std::uint32_t configuration = 26;    // repeated DeviceConfigurationProto
}  // namespace model_field

namespace opset_field {                      // OperatorSetIdProto
inline constexpr std::uint32_t domain = 1;   // string
inline constexpr std::uint32_t version = 2;  // int64
}  // namespace opset_field

namespace entry_field {                    // StringStringEntryProto
inline constexpr std::uint32_t key = 1;    // string
inline constexpr std::uint32_t value = 2;  // string
}  // namespace entry_field

namespace graph_field {                                       // GraphProto
inline constexpr std::uint32_t node = 1;                      // repeated NodeProto
inline constexpr std::uint32_t name = 2;                      // string
inline constexpr std::uint32_t initializer = 5;               // repeated TensorProto
inline constexpr std::uint32_t doc_string = 10;               // string
inline constexpr std::uint32_t input = 11;                    // repeated ValueInfoProto
inline constexpr std::uint32_t output = 12;                   // repeated ValueInfoProto
inline constexpr std::uint32_t value_info = 13;               // repeated ValueInfoProto
inline constexpr std::uint32_t quantization_annotation = 14;  // repeated TensorAnnotation
inline constexpr std::uint32_t sparse_initializer = 15;       // repeated SparseTensorProto
inline constexpr std::uint32_t metadata_props = 16;           // repeated StringStringEntryProto
}  // namespace graph_field

namespace node_field {                                      // NodeProto
inline constexpr std::uint32_t input = 1;                   // repeated string
inline constexpr std::uint32_t output = 2;                  // repeated string
inline constexpr std::uint32_t name = 3;                    // string
inline constexpr std::uint32_t op_type = 4;                 // string
inline constexpr std::uint32_t attribute = 5;               // repeated AttributeProto
inline constexpr std::uint32_t doc_string = 6;              // string
inline constexpr std::uint32_t domain = 7;                  // string
inline constexpr std::uint32_t overload = 8;                // string
inline constexpr std::uint32_t metadata_props = 9;          // repeated StringStringEntryProto
inline constexpr std::uint32_t device_configurations = 10;  // repeated NodeDeviceConfigurationProto
}  // namespace node_field

namespace attribute_field {                          // AttributeProto
inline constexpr std::uint32_t name = 1;             // string
inline constexpr std::uint32_t f = 2;                // float
inline constexpr std::uint32_t i = 3;                // int64
inline constexpr std::uint32_t s = 4;                // bytes
inline constexpr std::uint32_t t = 5;                // TensorProto
inline constexpr std::uint32_t g = 6;                // GraphProto
inline constexpr std::uint32_t floats = 7;           // repeated float
inline constexpr std::uint32_t ints = 8;             // repeated int64
inline constexpr std::uint32_t strings = 9;          // repeated bytes
inline constexpr std::uint32_t tensors = 10;         // repeated TensorProto
inline constexpr std::uint32_t graphs = 11;          // repeated GraphProto
inline constexpr std::uint32_t doc_string = 13;      // string
inline constexpr std::uint32_t tp = 14;              // TypeProto
inline constexpr std::uint32_t type_protos = 15;     // repeated TypeProto
inline constexpr std::uint32_t type = 20;            // enum
inline constexpr std::uint32_t ref_attr_name = 21;   // string
inline constexpr std::uint32_t sparse_tensor = 22;   // SparseTensorProto
inline constexpr std::uint32_t sparse_tensors = 23;  // repeated SparseTensorProto
}  // namespace attribute_field

namespace value_info_field {                        // ValueInfoProto
inline constexpr std::uint32_t name = 1;            // string
inline constexpr std::uint32_t type = 2;            // TypeProto
inline constexpr std::uint32_t doc_string = 3;      // string
inline constexpr std::uint32_t metadata_props = 4;  // repeated StringStringEntryProto
}  // namespace value_info_field

namespace tensor_field {                             // TensorProto
inline constexpr std::uint32_t dims = 1;             // repeated int64
inline constexpr std::uint32_t data_type = 2;        // int32
inline constexpr std::uint32_t segment = 3;          // Segment
inline constexpr std::uint32_t float_data = 4;       // repeated float
inline constexpr std::uint32_t int32_data = 5;       // repeated int32
inline constexpr std::uint32_t string_data = 6;      // repeated bytes
inline constexpr std::uint32_t int64_data = 7;       // repeated int64
inline constexpr std::uint32_t name = 8;             // string
inline constexpr std::uint32_t raw_data = 9;         // bytes
inline constexpr std::uint32_t double_data = 10;     // repeated double
inline constexpr std::uint32_t uint64_data = 11;     // repeated uint64
inline constexpr std::uint32_t doc_string = 12;      // string
inline constexpr std::uint32_t external_data = 13;   // repeated StringStringEntryProto
inline constexpr std::uint32_t data_location = 14;   // enum
inline constexpr std::uint32_t metadata_props = 16;  // repeated StringStringEntryProto
}  // namespace tensor_field

namespace sparse_tensor_field {              // SparseTensorProto
inline constexpr std::uint32_t values = 1;   // TensorProto
inline constexpr std::uint32_t indices = 2;  // TensorProto
inline constexpr std::uint32_t dims = 3;     // repeated int64
}  // namespace sparse_tensor_field

namespace function_field {                            // FunctionProto
inline constexpr std::uint32_t name = 1;              // string
inline constexpr std::uint32_t input = 4;             // repeated string
inline constexpr std::uint32_t output = 5;            // repeated string
inline constexpr std::uint32_t attribute = 6;         // repeated string
inline constexpr std::uint32_t node = 7;              // repeated NodeProto
inline constexpr std::uint32_t doc_string = 8;        // string
inline constexpr std::uint32_t opset_import = 9;      // repeated OperatorSetIdProto
inline constexpr std::uint32_t domain = 10;           // string
inline constexpr std::uint32_t attribute_proto = 11;  // repeated AttributeProto
inline constexpr std::uint32_t value_info = 12;       // repeated ValueInfoProto
inline constexpr std::uint32_t overload = 13;         // string
inline constexpr std::uint32_t metadata_props = 14;   // repeated StringStringEntryProto
}  // namespace function_field

namespace type_field {                                  // TypeProto
inline constexpr std::uint32_t tensor_type = 1;         // Tensor
inline constexpr std::uint32_t sequence_type = 4;       // Sequence
inline constexpr std::uint32_t map_type = 5;            // Map
inline constexpr std::uint32_t denotation = 6;          // string
inline constexpr std::uint32_t opaque_type = 7;         // Opaque
inline constexpr std::uint32_t sparse_tensor_type = 8;  // SparseTensor
inline constexpr std::uint32_t optional_type = 9;       // Optional
}  // namespace type_field

namespace tensor_type_field {                  // TypeProto.Tensor
inline constexpr std::uint32_t elem_type = 1;  // int32
inline constexpr std::uint32_t shape = 2;      // TensorShapeProto
}  // namespace tensor_type_field

namespace sequence_type_field {                // TypeProto.Sequence
inline constexpr std::uint32_t elem_type = 1;  // TypeProto
}  // namespace sequence_type_field

namespace shape_field {                  // TensorShapeProto
inline constexpr std::uint32_t dim = 1;  // repeated Dimension
}  // namespace shape_field

namespace dimension_field {                     // TensorShapeProto.Dimension
inline constexpr std::uint32_t dim_value = 1;   // int64
inline constexpr std::uint32_t dim_param = 2;   // string
inline constexpr std::uint32_t denotation = 3;  // string
}  // namespace dimension_field

/// The types of elements, TensorProto.DataType.
enum class ElementType : std::int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
  float6e2m3 = 27,
  float6e3m2 = 28,
};

/// The types of attributes, AttributeProto.AttributeType.
enum class AttributeType : std::int32_t {
  undefined = 0,
  number = 1,
  integer = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  numbers = 6,
  integers = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};

}  // namespace ferrite::onnx::detail
