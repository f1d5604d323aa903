/// Prints recorded expressions as C functions: one line for each value.
#include "ferrite/exchange/freeze/c_functions.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <utility>

#include "ferrite/tensor/kernel/written_functions.h"

namespace ferrite::exchange::detail {

using ferrite::detail::kWrittenConstant;
using ferrite::detail::kWrittenOperand;
using ferrite::detail::WrittenFunction;
using ferrite::detail::WrittenKind;
using ferrite::detail::WrittenNode;

/// Prints one function, and asks for the helpers that it calls.
class FunctionWriter {
 public:
  FunctionWriter(CFunctions& all, const WrittenFunction& f, Dtype dtype)
      : all_(all), f_(f), wide_(dtype == Dtype::f32), names_(f.values.size()), used_(f.values.size()) {}

  /// Returns the definition; "" if a value has no form in C.
  std::string definition(const Primitive& op, const std::string& name) {
    mark_used();
    for (std::size_t i = 0; i < f_.values.size(); ++i)
      if (used_[i] && f_.values[i].lane != nullptr && *f_.values[i].lane == '\0') return "";
    static constexpr std::array letters = {"a", "b", "c"};
    std::string parameters;
    for (std::size_t i = 0; i < f_.operands.size(); ++i) {
      const auto at = static_cast<std::size_t>(f_.operands[i]);
      names_[at] = f_.operands.size() == 1 ? "x" : letters[i];
      parameters += (i > 0 ? ", " : "") + type(f_.values[at].kind) + " " + names_[at];
    }
    std::string body;
    for (std::size_t i = 0; i < f_.values.size(); ++i) body += statement(i);
    const auto result = static_cast<std::size_t>(f_.result);
    std::string text = "/* " + std::string(op.name) + ": " + comment(op.summary) + " */\n";
    text += "static inline " + type(f_.values[result].kind) + " " + name + "(" + parameters + ") {\n" + body;
    for (std::size_t i = 0; i < f_.operands.size(); ++i)
      if (!used_[static_cast<std::size_t>(f_.operands[i])])
        text += "  (void)" + names_[static_cast<std::size_t>(f_.operands[i])] + ";\n";
    return text + "  return " + names_[result] + ";\n}\n";
  }

  /// Returns whether the function is one call of a helper with the same name, which then takes its place.
  bool is_helper(const std::string& name) const { return lines_ == 1 && all_.names_.contains(name); }

 private:
  /// Marks the values that the result depends on.
  void mark_used() {
    used_[static_cast<std::size_t>(f_.result)] = true;
    for (std::size_t i = f_.values.size(); i-- > 0;)
      if (used_[i])
        for (const std::int32_t operand : f_.values[i].operands.at)
          if (operand >= 0) used_[static_cast<std::size_t>(operand)] = true;
  }
  /// Returns the suffix of a kind. Doubles in a function of floats are pairs of vectors, `nf_w`.
  std::string suffix(WrittenKind kind) const {
    switch (kind) {
      case WrittenKind::floats:
      case WrittenKind::float_mask: return "f";
      case WrittenKind::ints: return "i";
      case WrittenKind::doubles:
      case WrittenKind::double_mask: return wide_ ? "w" : "d";
      case WrittenKind::longs: break;
    }
    return wide_ ? "v" : "l";
  }
  std::string type(WrittenKind kind) const {
    const bool mask = kind == WrittenKind::float_mask || kind == WrittenKind::double_mask;
    return (mask ? "nf_mask_" : "nf_") + suffix(kind);
  }
  static std::string comment(std::string_view summary) {
    std::string text(summary);
    for (std::size_t at = 0; (at = text.find("*/", at)) != std::string::npos;) text.replace(at, 2, "* /");
    return text;
  }

  std::string constant(const WrittenNode& n) {
    const std::string set = "nf_set_" + suffix(n.kind) + "(";
    char text[64];
    if (n.kind == WrittenKind::ints) {
      const auto v = static_cast<std::int32_t>(n.bits);
      std::snprintf(text, sizeof text, v > 255 || v < -255 ? "(int32_t)0x%08x" : "%d", static_cast<unsigned>(v));
    } else if (n.kind == WrittenKind::longs) {
      const bool small = n.bits < 4096;
      std::snprintf(text, sizeof text, small ? "%llu" : "(int64_t)0x%016llxULL",
                    static_cast<unsigned long long>(n.bits));
    } else {
      const bool narrow = n.kind == WrittenKind::floats;
      const double v = narrow ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(n.bits)))
                              : std::bit_cast<double>(n.bits);
      if (!std::isfinite(v)) {
        std::snprintf(text, sizeof text, narrow ? "nf_from_bits1_f(0x%llx)" : "nf_from_bits1_d(0x%llx)",
                      static_cast<unsigned long long>(n.bits & (narrow ? 0x7fffffffULL : 0x7fffffffffffffffULL)));
        if (v < 0) return set + "-" + text + ")";
      } else if (std::fabs(v) < 1024 && v == std::trunc(v * 16) / 16) {
        const bool whole = v == std::trunc(v);
        std::snprintf(text, sizeof text, whole ? "%.1f%s" : "%g%s", v, narrow ? "f" : "");
      } else {
        std::snprintf(text, sizeof text, "%a%s", v, narrow ? "f" : "");
      }
    }
    if (wide_ && (n.kind == WrittenKind::doubles || n.kind == WrittenKind::longs))
      need(set.substr(0, set.size() - 1), nullptr, 1);
    return set + text + ")";
  }

  std::string operand(const WrittenNode& n, std::size_t i) const {
    return names_[static_cast<std::size_t>(n.operands.at[i])];
  }
  /// Returns the operator of C that a value is made by, 0 if it is a call.
  char infix(const WrittenNode& n) const {
    const bool plain = n.kind == WrittenKind::floats || (n.kind == WrittenKind::doubles && !wide_);
    if (!plain) return 0;
    static constexpr std::pair<std::string_view, char> operators[] = {
        {"add", '+'}, {"sub", '-'}, {"mul", '*'}, {"div", '/'}, {"neg", '-'}};
    for (const auto& [name, symbol] : operators)
      if (n.name == name) return symbol;
    return 0;
  }
  std::string expression(const WrittenNode& n) {
    if (const char symbol = infix(n)) {
      if (n.operands.at[1] < 0) return symbol + operand(n, 0);
      return operand(n, 0) + " " + symbol + " " + operand(n, 1);
    }
    std::string name = "nf_" + std::string(n.name) + "_";
    if (n.lane != nullptr) name += std::string(n.lane) + "_";
    name += suffix(n.suffix);
    std::string arguments;
    std::size_t count = 0;
    for (; count < 4 && n.operands.at[count] >= 0; ++count) arguments += (count > 0 ? ", " : "") + operand(n, count);
    need(name, n.lane, count);
    if (std::string_view(n.name) == "shl" || std::string_view(n.name) == "shr")
      arguments += ", " + std::to_string(n.bits);
    return name + "(" + arguments + ")";
  }
  /// Returns the line of a value. Constants stand where they are used.
  std::string statement(std::size_t i) {
    const WrittenNode& n = f_.values[i];
    if (!used_[i] || std::string_view(n.name) == kWrittenOperand) return "";
    if (std::string_view(n.name) == kWrittenConstant) {
      names_[i] = constant(n);
      return "";
    }
    names_[i] = "t" + std::to_string(++lines_);
    return "  const " + type(n.kind) + " " + names_[i] + " = " + expression(n) + ";\n";
  }

  /// Keeps the definition of a helper, after those that it needs.
  void need(const std::string& name, const char* lane, std::size_t operands) {
    if (all_.names_.contains(name)) return;
    const CHelper helper = c_helper(name, lane, operands);
    for (const std::string& other : helper.needs) need(other, lane, operands);
    all_.names_[name] = name;
    all_.calls_library_ |= helper.calls_library;
    all_.uses_doubles_ |= helper.uses_doubles;
    if (!helper.definition.empty()) all_.definitions_.push_back(helper.definition);
  }

  CFunctions& all_;
  const WrittenFunction& f_;
  const bool wide_;
  std::vector<std::string> names_;
  std::vector<bool> used_;
  int lines_ = 0;
};

std::string CFunctions::name_of(const Primitive& op, Dtype dtype) {
  const std::string wanted = "nf_" + std::string(op.name) + (dtype == Dtype::f32 ? "_f" : "_d");
  const std::string key = "operation " + wanted;
  if (const auto at = names_.find(key); at != names_.end()) return at->second;
  const WrittenFunction f = ferrite::detail::written_function(op, dtype);
  if (f.result < 0) return names_[key] = "";
  FunctionWriter writer(*this, f, dtype);
  const std::string definition = writer.definition(op, wanted);
  if (definition.empty()) return names_[key] = "";
  if (!writer.is_helper(wanted)) definitions_.push_back(definition);
  return names_[key] = wanted;
}

std::string CFunctions::text() const {
  std::string all;
  for (const std::string& definition : definitions_) all += definition + "\n";
  return all;
}

}  // namespace ferrite::exchange::detail
