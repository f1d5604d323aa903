#pragma once
/// The values of an ONNX graph while it runs: Ferrite's tensors with the element types of the file.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/exchange/onnx/schema.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::onnx::detail {

/// A value that flows along an edge of the graph. Element types that Ferrite does not compute with are held in wider
/// dtypes (`dtype_for`): f16 and bf16 as f32 rounded to them, i8, u8, i16 and u16 as i32 within their range, u32 and
/// u64 as i64.
struct Value {
  Tensor tensor{};  ///< undefined: an optional input or output that is left out, or a sequence
  ElementType type = ElementType::undefined;
  bool constant = false;  ///< the same in every call, and concrete while the graph is traced: shapes, constants
  std::shared_ptr<const std::vector<Value>> elements{};  ///< the elements of a sequence
  /// The numbers of a constant that follows from extents and whose `tensor` a program computes, because it is traced
  /// with open extents (exchange::detail::KeepExtentsOpen).
  Tensor known{};

  /// Returns the tensor whose numbers can be read now, where they are known.
  const Tensor& numbers() const { return known.defined() ? known : tensor; }

  bool defined() const { return tensor.defined() || elements != nullptr; }
};
using Values = std::vector<Value>;

/// Returns the dtype that holds elements of a type. Throws OnnxError for types that no dtype holds (strings, complex
/// numbers, floats of 8 bits and less); the message begins with `where`.
Dtype dtype_for(ElementType type, std::string_view where = "onnx");
/// Returns the element type that equals a dtype: f32 for f32, and so on.
ElementType type_for(Dtype dtype);
/// Returns the ONNX project's name of a type: "float", "int64", "bfloat16".
std::string_view name_of(ElementType type);
bool is_floating(ElementType type);
/// Returns whether a type is an integer of any width; bool is not.
bool is_integral(ElementType type);
bool is_unsigned(ElementType type);
/// Returns the number of bits of an element in a file.
int bits_of(ElementType type);

/// Returns the result of arithmetic as a value of a type: f16 and bf16 rounded, narrow integers wrapped around as in C.
/// Costs nothing for the types that Ferrite has. For results of data movement, write Value{tensor, type}.
Value narrowed(const Tensor& result, ElementType type);
/// Returns a value i64 [n] that is known in every trace, such as the result of Shape.
Value known_integers(std::span<const std::int64_t> values);

}  // namespace ferrite::onnx::detail
