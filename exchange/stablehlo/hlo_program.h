#pragma once
/// A StableHLO program as instructions with their types, before it is text.
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ferrite/tensor/scope.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

/// What stands in a type for an extent that is left open, `?` in the text.
inline constexpr std::int64_t kOpenExtent = -1;

/// A value of a program.
struct HloValue {
  int id = -1;  ///< differs from that of all others of a program; -1 for a value that no lowering gives
  Spec spec{};

  bool exists() const { return id >= 0; }
  const Shape& shape() const { return spec.shape; }
  Dtype dtype() const { return spec.dtype; }
};
using HloValues = std::vector<HloValue>;

/// A constant of an instruction: words, a list of integers, or elements.
struct HloAttribute {
  std::string_view name;
  std::variant<std::string, Shape, Tensor> value;
};
using HloAttributes = std::vector<HloAttribute>;

/// Which types follow an instruction.
enum class HloTypes : std::uint8_t {
  function,   ///< "(tensor<2xf32>) -> tensor<2xi1>"
  result,     ///< "tensor<2xf32>", that of all operands
  condition,  ///< "tensor<2xi1>, tensor<2xf32>", that of the condition and of the result
};

/// To what an instruction belongs.
struct HloOrigin {
  std::string_view operation{};  ///< of the traced program, the outermost
  Scope layer{};

  /// Of what is written for an application within this one.
  HloOrigin of(const HloOrigin& inner) const {
    return {operation.empty() ? inner.operation : operation, inner.layer.or_else(layer)};
  }
};

struct HloBlock;

struct HloInstruction {
  std::string op;  ///< "add"
  HloValues operands{}, results{};
  HloAttributes attributes{};
  HloTypes types = HloTypes::function;
  std::vector<HloBlock> blocks;  ///< of a loop: the condition, then the body
  HloOrigin origin{};

  template <class T>
  const T& get(std::string_view attribute) const {
    for (const HloAttribute& a : attributes)
      if (a.name == attribute) return std::get<T>(a.value);
    throw Error("stablehlo." + op + " has no " + std::string(attribute));
  }
};

/// Instructions that begin with arguments and end with results.
struct HloBlock {
  HloValues arguments{};
  std::vector<HloInstruction> instructions{};
  HloValues results{};
};

/// One function.
struct HloProgram {
  std::vector<std::string> notes{};  ///< comments in front
  HloBlock main{};
  int values = 0;  ///< more than the largest id
};

/// "f32", ..., "i1".
std::string_view hlo_dtype(Dtype dtype);
/// "tensor<2x?xf32>".
std::string hlo_type(const Spec& spec);
/// "[1, 0]".
std::string hlo_list(const Shape& list);
/// "dense<...>".
std::string hlo_elements(const Tensor& tensor);

/// The text of a module with that function as `@main`. Values are numbered in the order of the text. With `locations`,
/// operations are followed by the layer to which they belong.
std::string hlo_text(const HloProgram& program, const std::string& name, bool locations);

}  // namespace ferrite::exchange::detail
