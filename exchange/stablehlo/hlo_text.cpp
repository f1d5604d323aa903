/// Writes programs as text, in the syntax of the StableHLO repository's pretty printer; `gather` and `scatter` have
/// only a generic form.
#include <bit>
#include <charconv>
#include <cmath>

#include "ferrite/exchange/stablehlo/hlo_text.h"

namespace ferrite::exchange::detail {

// ---- elements of constants -----------------------------------------------------------------------------------------

namespace {

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

template <class T>
Bits<T> bits_of(T v) {
  return std::bit_cast<Bits<T>>(v);
}

constexpr char kDigits[] = "0123456789ABCDEF";

/// Returns the bits of a number as one hexadecimal integer.
template <class T>
std::string hex_number(T v) {
  std::string s = "0x";
  for (int shift = 8 * static_cast<int>(sizeof(T)) - 4; shift >= 0; shift -= 4) s += kDigits[bits_of(v) >> shift & 0xf];
  return s;
}

/// Returns a decimal that reads back as the same double, with the point that MLIR requires.
std::string decimal(double v) {
  char buffer[32];
  std::string s(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
  if (s.find('.') != std::string::npos) return s;
  return s.insert(std::min(s.find('e'), s.size()), ".0");
}

template <class T>
std::string element(T v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(v);
  } else {
    const auto real = static_cast<double>(v);
    return std::isfinite(real) ? decimal(real) : hex_number(v);
  }
}

/// Appends numbers as hexadecimal bytes, the lowest first, whatever the machine's order is.
template <class T>
std::string hex_bytes(const std::vector<T>& values) {
  std::string s = "\"0x";
  s.reserve(s.size() + values.size() * sizeof(T) * 2 + 1);
  for (const T v : values)
    for (std::size_t byte = 0; byte < sizeof(T); ++byte) {
      const auto b = static_cast<unsigned>(bits_of(v) >> 8 * byte & 0xff);
      s += kDigits[b >> 4];
      s += kDigits[b & 0xf];
    }
  return s + '"';
}

/// Returns bools as nested lists: versions of MLIR differ in how they pack bools into bytes.
std::string nested(const std::vector<bool>& values, const Shape& shape, int axis, std::size_t& next) {
  if (axis == shape.rank()) return element(static_cast<bool>(values[next++]));
  std::string s = "[";
  for (std::int64_t i = 0; i < shape[axis]; ++i) s += (i ? ", " : "") + nested(values, shape, axis + 1, next);
  return s + "]";
}

template <class T>
bool all_equal(const std::vector<T>& values) {
  for (const T v : values)
    if constexpr (std::is_same_v<T, bool>) {
      if (v != values[0]) return false;
    } else {
      if (bits_of(v) != bits_of(values[0])) return false;
    }
  return true;
}

}  // namespace

std::string hlo_elements(const Tensor& tensor) {
  if (tensor.numel() == 0) return "dense<>";
  return visit_dtype(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> values = tensor.to_vector<T>();
    if (all_equal(values)) return "dense<" + element(static_cast<T>(values[0])) + ">";
    if constexpr (std::is_same_v<T, bool>) {
      std::size_t next = 0;
      return "dense<" + nested(values, tensor.shape(), 0, next) + ">";
    } else {
      return "dense<" + hex_bytes(values) + ">";
    }
  });
}

// ---- instructions --------------------------------------------------------------------------------------------------

namespace {

using std::to_string;

std::string location_of(Scope layer) {
  if (layer.empty()) return {};
  std::string text = " loc(\"";
  for (const char c : layer.path()) {
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
      text += c;
      continue;
    }
    const auto code = static_cast<unsigned char>(c);
    text += '\\';
    text += kDigits[code >> 4U];
    text += kDigits[code & 15U];
  }
  return text + "\")";
}

std::string types_of(const Values& values) {
  std::string s;
  for (const Value& v : values) s += (s.empty() ? "" : ", ") + hlo_type(v.spec);
  return s;
}

/// Returns a list as an array attribute, "array<i64: 1, 2>".
std::string array_of(const Shape& list) {
  if (list.rank() == 0) return "array<i64>";
  const std::string all = hlo_list(list);
  return "array<i64: " + all.substr(1, all.size() - 2) + ">";
}

class Printer {
 public:
  explicit Printer(const ExportProgram& p, bool locations)
      : program_(p), locates_(locations), names_(static_cast<std::size_t>(p.values)) {}

  std::string module(const std::string& name) {
    for (const std::string& note : program_.notes) text_ += "// " + note + "\n";
    const Block& main = program_.main;
    std::string arguments;
    for (std::size_t i = 0; i < main.arguments.size(); ++i) {
      const Value& v = main.arguments[i];
      call(v, "%arg" + to_string(i));
      arguments += (i ? ", " : "") + this->name(v) + ": " + hlo_type(v.spec);
    }
    text_ +=
        "module @" + name + " {\n  func.func public @main(" + arguments + ") -> (" + types_of(main.results) + ") {\n";
    indent_ = "    ";
    for (const Instruction& i : main.instructions) print(i);
    text_ += indent_ + "return";
    if (!main.results.empty()) text_ += " " + names(main.results) + " : " + types_of(main.results);
    return text_ + "\n  }\n}\n";
  }

 private:
  void call(const Value& v, std::string name) { names_[static_cast<std::size_t>(v.id)] = std::move(name); }
  const std::string& name(const Value& v) const { return names_[static_cast<std::size_t>(v.id)]; }
  std::string names(const Values& values) const {
    std::string s;
    for (const Value& v : values) s += (s.empty() ? "" : ", ") + name(v);
    return s;
  }

  void print(const Instruction& i) {
    const std::string number = "%" + to_string(next_++);
    if (i.op == "while") return print_loop(i, number);
    const std::string right = right_hand_side(i);
    call(i.results[0], number);
    text_ += indent_ + number + " = " + right + location(i) + "\n";
  }

  std::string location(const Instruction& i) const { return locates_ ? location_of(i.origin.layer) : std::string(); }

  std::string right_hand_side(const Instruction& i) const {
    if (i.op == "gather" || i.op == "dynamic_gather" || i.op == "scatter") return generic(i);
    std::string s = "stablehlo." + i.op;
    if (i.op == "reduce")
      return s + "(" + name(i.operands[0]) + " init: " + name(i.operands[1]) + ") applies stablehlo." +
             i.get<std::string>("applies") + " across dimensions = " + hlo_list(i.get<Shape>("dimensions")) + types(i);
    if (i.op == "compare")
      return s + " " + i.get<std::string>("direction") + ", " + names(i.operands) + ", " + i.get<std::string>("kind") +
             types(i);
    if (i.op == "slice") return s + " " + names(i.operands) + " [" + ranges(i) + "]" + types(i);
    s += " " + names(i.operands);
    std::string hints;
    bool first = i.operands.empty();
    for (const Attribute& a : i.attributes) {
      if (a.name.starts_with("known_")) {
        hints += (hints.empty() ? "" : ", ") + a.name + " = " + array_of(std::get<Shape>(a.value));
        continue;
      }
      s += first ? "" : ", ";
      s += text_of(i, a);
      first = false;
    }
    return s + (hints.empty() ? "" : " {" + hints + "}") + types(i);
  }

  static std::string text_of(const Instruction& i, const Attribute& a) {
    if (const auto* elements = std::get_if<Tensor>(&a.value))
      return i.results[0].shape().numel() ? hlo_elements(*elements) : "dense<>";
    const auto* list = std::get_if<Shape>(&a.value);
    return a.name + " = " + (list ? hlo_list(*list) : std::get<std::string>(a.value));
  }

  static std::string types(const Instruction& i) {
    if (i.types == TypeNotation::result) return " : " + hlo_type(i.results[0].spec);
    if (i.types == TypeNotation::condition) return " : " + types_of({i.operands[0], i.results[0]});
    return " : (" + types_of(i.operands) + ") -> " + hlo_type(i.results[0].spec);
  }

  /// Returns the bounds of a slice, "0:2, 1:9:2".
  static std::string ranges(const Instruction& i) {
    const auto &start = i.get<Shape>("start"), &limit = i.get<Shape>("limit"), &stride = i.get<Shape>("stride");
    std::string s;
    for (int k = 0; k < start.rank(); ++k) {
      s += (k ? ", " : "") + to_string(start[k]) + ":" + to_string(limit[k]);
      if (stride[k] != 1) s += ":" + to_string(stride[k]);
    }
    return s;
  }

  std::string generic(const Instruction& i) const {
    const auto& dimensions = i.get<std::string>("dimension_numbers");
    const std::string head = "\"stablehlo." + i.op + "\"(" + names(i.operands) + ") <{";
    if (i.op == "dynamic_gather")
      return head + "dimension_numbers = #stablehlo.gather<" + dimensions + ">, indices_are_sorted = false}>" +
             types(i);
    if (i.op == "gather")
      return head + "dimension_numbers = #stablehlo.gather<" + dimensions +
             ">, indices_are_sorted = false, slice_sizes = " + array_of(i.get<Shape>("slice_sizes")) + "}>" + types(i);
    const auto& unique = i.get<std::string>("unique_indices");
    const std::string one = hlo_type({{}, i.results[0].dtype()});
    const auto& applies = i.get<std::string>("applies");
    const bool replaces = applies == "replace";
    return head + "indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<" + dimensions +
           ">, unique_indices = " + unique + "}> ({\n" + indent_ + "^bb0(%old: " + one + ", %new: " + one + "):\n" +
           (replaces ? "" : indent_ + "  %both = stablehlo." + applies + " %old, %new : " + one + "\n") + indent_ +
           "  stablehlo.return " + (replaces ? "%new" : "%both") + " : " + one + "\n" + indent_ + "})" + types(i);
  }

  void print_loop(const Instruction& i, const std::string& number) {
    const std::string own = number.substr(1);
    const Values& now = i.blocks[0].arguments;
    std::string bound;
    for (std::size_t k = 0; k < now.size(); ++k) {
      const std::string argument = k ? "%now" + own + "_" + to_string(k - 1) : "%step" + own;
      for (const Block& b : i.blocks) call(b.arguments[k], argument);
      call(i.results[k], number + "#" + to_string(k));
      bound += (k ? ", " : "") + argument + " = " + name(i.operands[k]);
    }
    text_ += indent_ + number + ":" + to_string(now.size()) + " = stablehlo.while(" + bound +
             ") : " + types_of(i.results) + "\n" + indent_ + "cond {\n";
    print(i.blocks[0]);
    text_ += indent_ + "} do {\n";
    print(i.blocks[1]);
    text_ += indent_ + "}" + location(i) + "\n";
  }

  void print(const Block& b) {
    indent_ += "  ";
    for (const Instruction& i : b.instructions) print(i);
    text_ += indent_ + "stablehlo.return " + names(b.results) + " : " + types_of(b.results) + "\n";
    indent_.resize(indent_.size() - 2);
  }

  const ExportProgram& program_;
  bool locates_;
  std::vector<std::string> names_;  ///< names of values by id
  std::string text_, indent_;
  int next_ = 0;
};

}  // namespace

std::string_view hlo_dtype(Dtype dtype) { return dtype == Dtype::boolean ? "i1" : name_of(dtype); }

std::string hlo_type(const Spec& spec) {
  std::string s = "tensor<";
  for (const std::int64_t extent : spec.shape) s += (extent == kOpenExtent ? "?" : to_string(extent)) + "x";
  return s.append(hlo_dtype(spec.dtype)) + ">";
}

std::string hlo_list(const Shape& list) {
  std::string s = "[";
  for (int i = 0; i < list.rank(); ++i) s += (i ? ", " : "") + to_string(list[i]);
  return s + "]";
}

std::string hlo_text(const ExportProgram& program, const std::string& name, bool locations) {
  return Printer(program, locations).module(name);
}

}  // namespace ferrite::exchange::detail
