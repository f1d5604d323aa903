#pragma once
/// An exported program: instructions with the types of their values, before they become text or messages.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ferrite/exchange/export_error.h"
#include "ferrite/tensor/scope.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

/// Stands for an open extent in a type.
inline constexpr std::int64_t kOpenExtent = -1;

/// A value of a program.
struct Value {
  int id = -1;  ///< unique within a program; -1 for a value that no lowering gives
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

/// The operation and the layer of the traced program that an exported instruction comes from, for messages and for the
/// names and locations in the file.
struct Origin {
  std::string_view operation{};  ///< the outermost operation in the traced program
  Scope layer{};

  /// Returns the origin of an application within this one.
  Origin of(const Origin& inner) const {
    return {operation.empty() ? inner.operation : operation, inner.layer.or_else(layer)};
  }
};

/// The types that a format with types writes for an instruction.
enum class TypeNotation : std::uint8_t {
  function,   ///< the types of the operands and of the result
  result,     ///< one type, which the result and all operands have
  condition,  ///< the types of the condition and of the result
};

struct Block;

/// An instruction of an exported program.
struct Instruction {
  std::string op;  ///< the format's name of the operation
  Values operands{}, results{};
  Attributes attributes{};
  TypeNotation types = TypeNotation::function;
  std::vector<Block> blocks;  ///< the blocks that a loop runs
  Origin origin{};

  template <class T>
  const T& get(std::string_view attribute) const {
    for (const Attribute& a : attributes)
      if (a.name == attribute) return std::get<T>(a.value);
    throw Error(op + " has no " + std::string(attribute));
  }
};

/// A list of instructions with arguments and results.
struct Block {
  Values arguments{};
  std::vector<Instruction> instructions{};
  Values results{};
  std::vector<std::string> names{};  ///< names of the arguments, in formats where a caller sees them
};

/// An exported function with the names and comments that its file shows.
struct ExportProgram {
  Block main{};
  int values = 0;                           ///< a number above all ids
  std::vector<std::string> notes{};         ///< comments at the head of the text
  std::vector<std::string> result_names{};  ///< names of the results, in formats where a caller sees them
  /// The text of each extent of each argument or result: empty if it is fixed, "?" if nothing explains it.
  std::vector<std::vector<std::string>> argument_axes{}, result_axes{};
};

}  // namespace ferrite::exchange::detail
