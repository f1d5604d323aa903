/// The rule that decides which initialisers of a model train, are fixed or are folded.
#include "ferrite/exchange/onnx/training_rule.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ferrite/exchange/onnx_error.h"
#include "ferrite/tensor/error.h"

namespace ferrite::onnx::detail {
namespace {

/// The uses that an operation makes of its inputs; bit i is for input i.
struct Uses {
  std::string_view name;
  Use use;
  std::uint32_t inputs;
};

constexpr std::array kUses = std::to_array<Uses>({
    {"QuantizeLinear", Use::scale, 2},
    {"DequantizeLinear", Use::scale, 2},
    {"GRU", Use::weight, 14},
    {"RNN", Use::weight, 14},
    {"LSTM", Use::weight, 142},
    {"MatMul", Use::weight, 3},
    {"Gemm", Use::weight, 7},
    {"Einsum", Use::weight, ~0U},
    {"Conv", Use::weight, 6},
    {"ConvTranspose", Use::weight, 6},
    {"PRelu", Use::weight, 2},
    {"GRU", Use::initial, 32},
    {"RNN", Use::initial, 32},
    {"LSTM", Use::initial, 96},
    {"DynamicQuantizeLSTM", Use::initial, 96},
    {"STFT", Use::initial, 4},
    {"LayerNormalization", Use::affine, 6},
    {"RMSNormalization", Use::affine, 2},
    {"InstanceNormalization", Use::affine, 6},
    {"GroupNormalization", Use::affine, 6},
    {"BatchNormalization", Use::affine, 6},
    {"Clip", Use::bound, 6},
    {"Add", Use::arithmetic, 3},
    {"Sub", Use::arithmetic, 3},
    {"Mul", Use::arithmetic, 3},
    {"Div", Use::arithmetic, 3},
    {"Pow", Use::arithmetic, 3},
    {"Max", Use::arithmetic, ~0U},
    {"Min", Use::arithmetic, ~0U},
    {"Where", Use::arithmetic, 6},
});

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool all_digits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

/// Returns whether a name is the prefix alone or followed by a number.
bool numbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  if (name.starts_with('_')) name.remove_prefix(1);
  return name.empty() || all_digits(name);
}

/// Returns whether more than one axis has more than one element.
bool is_table(const Shape& shape) {
  return std::ranges::count_if(shape, [](std::int64_t n) { return n > 1; }) > 1;
}

}  // namespace

Use use_of(const Operation* row, std::size_t i) {
  if (!row || i >= 32) return Use::other;
  if (row->statistics >> i & 1U) return Use::statistic;
  if (row->quoted) return Use::quantised;
  for (const Uses& u : kUses)
    if (u.name == row->name && u.inputs >> i & 1U) return u.use;
  return Use::other;
}

std::string_view text_of(Reason reason) {
  switch (reason) {
    case Reason::asked: return "trains: ReadOptions::trains says so";
    case Reason::named: return "trains: floats that have a name";
    case Reason::used: return "trains: an exporter made its name, but its use and shape are those of a weight";
    case Reason::frozen: return "fixed: the model is frozen";
    case Reason::not_asked: return "fixed: ReadOptions::trains says so";
    case Reason::no_float: return "fixed: no floats";
    case Reason::statistics: return "fixed: running statistics";
    case Reason::integers: return "fixed: an operand of a product of integers";
    case Reason::quantiser: return "fixed: a scale of quantisation under a name that a tool made";
    case Reason::first_state: return "fixed: an initial state or a window, no weight";
    case Reason::single: return "fixed: one number under a name that an exporter made";
    case Reason::filled_in: return "fixed: what an exporter gave a normalisation that has no weights";
    case Reason::mask: return "fixed: infinite elements in arithmetic: a mask";
    case Reason::table: return "fixed: a table in arithmetic of elements under a name that an exporter made";
    case Reason::folded: return "folded: its numbers have to be known while a program is traced";
  }
  return "";
}

bool made_by_exporter(std::string_view name) {
  constexpr std::array kNumbered = std::to_array<std::string_view>(
      {"val", "Constant", "constant", "Const", "const", "const_fold_opt_", "scalar_tensor_default", "full_default",
       "lifted_tensor", "c_lifted_tensor", "_tensor_constant", "clone", "_to_copy"});
  if (all_digits(name) || name.ends_with("_cast")) return true;  // names of TorchScript; of torch.onnx
  if (name.starts_with("onnx::")) return true;                   // constants that TorchScript has folded
  if (name.starts_with('_') && numbered(name, "_val")) return true;
  return std::ranges::any_of(kNumbered, [&](std::string_view prefix) { return numbered(name, prefix); });
}

Reason reason_for(const Training& options, std::string_view name, const Constant& value, std::uint16_t uses,
                  bool decides) {
  const auto asked = options.asked.find(std::string(name));
  const bool has_asked = asked != options.asked.end();
  const auto cannot = [&](const std::string& why) {
    if (has_asked && asked->second)
      throw ValueError("onnx: ReadOptions::trains: initialiser \"" + std::string(name) + "\" cannot train: " + why);
  };
  if (!is_floating(value.type())) {
    cannot("its elements are no floats");
    return Reason::no_float;
  }
  if (options.frozen) {
    cannot("the model is frozen");
    return Reason::frozen;
  }
  if (decides) {
    cannot("its numbers have to be known while a program is traced");
    return Reason::folded;
  }
  if (has_asked) return asked->second ? Reason::asked : Reason::not_asked;
  const auto only = [&](unsigned all) { return uses != 0 && (uses & ~all) == 0; };
  if (only(Use::statistic)) return Reason::statistics;
  if (only(Use::quantised)) return Reason::integers;
  const Shape& shape = value.shape();
  const bool made = made_by_exporter(name);
  if (only(Use::scale) && (made || name.ends_with("_scale"))) return Reason::quantiser;
  if (only(Use::initial) && made) return Reason::first_state;
  if (only(Use::bound) && (name.ends_with("_min") || name.ends_with("_max"))) return Reason::single;
  const auto finite = [](double x) { return !std::isinf(x); };
  if (only(Use::arithmetic) && shape.numel() > 1 && !value.all_of(finite)) return Reason::mask;
  if (!made) return Reason::named;
  if (uses & Use::weight) return Reason::used;
  if (shape.numel() == 1) return Reason::single;
  const auto each = [&](double number) { return value.all_of([number](double x) { return x == number; }); };
  if (only(Use::affine) && (each(1) || each(0))) return Reason::filled_in;
  if (!only(Use::arithmetic)) return Reason::used;
  return is_table(shape) ? Reason::table : Reason::used;
}

}  // namespace ferrite::onnx::detail
