#pragma once
/// A program while it is exported: instructions with the types of their values, before they are text or messages.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ferrite/exchange/export_error.h"
#include "ferrite/tensor/scope.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

/// An open extent, in a type.
inline constexpr std::int64_t kOpenExtent = -1;

/// A value of a program.
struct Value {
  int id = -1;  ///< differs from that of all others of a program; -1 for a value that no lowering gives
  Spec spec{};

  bool exists() const { return id >= 0; }
  const Shape& shape() const { return spec.shape; }
  Dtype dtype() const { return spec.dtype; }
};
using Values = std::vector<Value>;
using Integers = std::vector<std::int64_t>;

/// A named constant of an instruction.
struct Attribute {
  std::string name;
  std::variant<std::string, Shape, Tensor, std::int64_t, float, Integers, std::vector<std::string>> value;
};
using Attributes = std::vector<Attribute>;

/// The operation and the layer for which an instruction is written.
struct Origin {
  std::string_view operation{};  ///< of the traced program, the outermost
  Scope layer{};

  /// The origin of an application within this one.
  Origin of(const Origin& inner) const {
    return {operation.empty() ? inner.operation : operation, inner.layer.or_else(layer)};
  }
};

/// Which types a format with types writes for an instruction.
enum class TypeNotation : std::uint8_t {
  function,   ///< those of the operands and of the result
  result,     ///< one, that of the result and of all operands
  condition,  ///< those of the condition and of the result
};

struct Block;

struct Instruction {
  std::string op;  ///< in the words of the format
  Values operands{}, results{};
  Attributes attributes{};
  TypeNotation types = TypeNotation::function;
  std::vector<Block> blocks;  ///< of a loop: what it runs
  Origin origin{};

  template <class T>
  const T& get(std::string_view attribute) const {
    for (const Attribute& a : attributes)
      if (a.name == attribute) return std::get<T>(a.value);
    throw Error(op + " has no " + std::string(attribute));
  }
};

/// Instructions that begin with arguments and end with results.
struct Block {
  Values arguments{};
  std::vector<Instruction> instructions{};
  Values results{};
  std::vector<std::string> names{};  ///< of the arguments, in formats where a caller sees them
};

/// One exported function.
struct ExportProgram {
  Block main{};
  int values = 0;                           ///< more than the largest id
  std::vector<std::string> notes{};         ///< comments at the head of the text
  std::vector<std::string> result_names{};  ///< in formats where a caller sees them
  /// For each argument or result, the text of each extent: empty if it is fixed, "?" if nothing explains it.
  std::vector<std::vector<std::string>> argument_axes{}, result_axes{};
};

}  // namespace ferrite::exchange::detail
