/// Programs as text, in the syntax that the pretty printer of the StableHLO repository has; `gather` and `scatter` have
/// a generic form only.
#include "ferrite/exchange/stablehlo/hlo_text.h"

namespace ferrite::exchange::detail {
namespace {

using std::to_string;

std::string location_of(Scope layer) {
  if (layer.empty()) return {};
  constexpr char kDigits[] = "0123456789ABCDEF";
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

/// "array<i64: 1, 2>".
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

  /// "0:2, 1:9:2".
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
  std::vector<std::string> names_;  ///< by id
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
