#pragma once
/// The rule that decides which initialisers of a model train, are fixed or are folded (docs/onnx.md).
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "ferrite/exchange/onnx/constant.h"
#include "ferrite/exchange/onnx/onnx_operations.h"

namespace ferrite::onnx::detail {

/// The ReadOptions that decide which initialisers train.
struct Training {
  bool frozen = false;
  std::map<std::string, bool> asked{};  ///< names and values in ReadOptions::trains
};

/// The uses of an initialiser, one bit each.
enum Use : std::uint16_t {
  statistic = 1,    ///< running mean or variance
  quantised = 2,    ///< an operand of a product of integers
  scale = 4,        ///< a scale of quantisation
  initial = 8,      ///< the initial state of a recurrent layer, or the window of a transform
  affine = 16,      ///< scale or bias of a normalisation
  arithmetic = 32,  ///< an operand of element-wise arithmetic
  bound = 64,       ///< a bound of Clip
  weight = 128,     ///< a weight of a product, a convolution or a recurrent layer; the slope of a PRelu
  other = 256,
};
/// Returns the use that an operation makes of its input i. A null `row` means a function of the model.
Use use_of(const Operation* row, std::size_t i);

/// The reason why an initialiser trains or not. Those up to `used` train.
enum class Reason : std::uint8_t {
  asked,        ///< ReadOptions::trains says that it trains
  named,        ///< floats under a name that no exporter made
  used,         ///< an exporter made the name; use and shape are a weight's
  frozen,       ///< ReadOptions::frozen fixes all initialisers
  not_asked,    ///< ReadOptions::trains says that it is fixed
  no_float,     ///< elements are integers or bools
  statistics,   ///< used only as running statistics
  integers,     ///< an operand of products of integers
  quantiser,    ///< a scale that an exporter or onnxruntime.quantization named
  first_state,  ///< an initial state or a window that an exporter named
  single,       ///< one number, named by an exporter
  filled_in,    ///< ones or zeros that an exporter gave a normalisation without weights
  mask,         ///< infinite elements that are added or multiplied
  table,        ///< a table that is added or multiplied, named by an exporter
  folded,       ///< its numbers have to be known while a program is traced
};
inline bool trains(Reason reason) { return reason <= Reason::used; }
/// Returns a reason as text: "fixed: integers or bools".
std::string_view text_of(Reason reason);

/// Returns whether a name is one that exporters give to constants: val_3, onnx::Mul_25, 17, Constant_2, min_val_cast.
bool made_by_exporter(std::string_view name);

/// Applies the rule to an initialiser. `uses` are all its uses in the graph that holds it, `decides` says that its
/// numbers have to be known during tracing. Throws ValueError where ReadOptions::trains asks for one that cannot train.
Reason reason_for(const Training& options, std::string_view name, const Constant& value, std::uint16_t uses,
                  bool decides);

}  // namespace ferrite::onnx::detail
