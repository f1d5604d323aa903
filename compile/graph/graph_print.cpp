/// The text form of a graph, and its drawing.
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "ferrite/compile/graph.h"
#include "ferrite/compile/graph/graph_text.h"
#include "ferrite/compile/graph/rewrite.h"

namespace ferrite {
namespace detail {

std::string in_quotes(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

namespace {

template <class T, class... Format>
std::string characters(T v, Format... format) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, v, format...).ptr};
}

/// The shortest decimal that reads back as the same double, always recognisable as one.
std::string real(double v) {
  std::string s = characters(v);
  if (s.find_first_of(".en") == std::string::npos) s += ".0";
  return s;
}

struct PrintAttr {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return real(v); }
  std::string operator()(Dtype v) const { return std::string(name_of(v)); }
  std::string operator()(const Scalar& v) const {
    return "~" + (v.is_floating() ? real(v.real()) : std::to_string(v.integer()));
  }
  std::string operator()(const Shape& v) const { return v.str(); }
  std::string operator()(const Label& v) const { return in_quotes(v.text()); }
  std::string operator()(const Positions& v) const { return v.str(); }
};

}  // namespace

template <class T>
std::string element_text(T v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(v);
  } else if constexpr (sizeof(T) == 2) {
    const auto real = static_cast<float>(v);
    return std::isnan(real) ? "nan:" + characters(v.bits(), 16) : element_text(real);
  } else {
    if (std::isnan(v)) {
      std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> bits = 0;
      std::memcpy(&bits, &v, sizeof v);
      return "nan:" + characters(bits, 16);
    }
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    return (std::signbit(v) ? "-0x" : "0x") + characters(std::fabs(v), std::chars_format::hex);
  }
}

std::string attrs_text(const Attrs& attrs) {
  std::string s;
  attrs.each([&](std::string_view name, const AttrValue& value) {
    s += " " + std::string(name) + "=" + std::visit(PrintAttr{}, value);
  });
  return s;
}

bool one_value(const Tensor& t) {
  if (t.numel() == 1) return true;
  for (int i = 0; i < t.rank(); ++i)
    if (t.strides()[i] != 0 && t.shape()[i] != 1) return false;
  return t.numel() > 0;
}

}  // namespace detail

namespace {

std::string kind_name(VariableKind kind) {
  switch (kind) {
    case VariableKind::parameter: return "parameter";
    case VariableKind::buffer: return "buffer";
    case VariableKind::state: break;
  }
  return "state";
}

/// Writes a graph line by line.
class Printer {
 public:
  Printer(const Graph& g, std::int64_t most_inline, bool scopes, std::string indent = "  ")
      : g_(g), most_inline_(most_inline), scopes_(scopes), indent_(std::move(indent)) {}

  std::string run() {
    text_ = "graph {\n";
    block();
    return text_ + "}\n";
  }

 private:
  void block() {
    for (const ValueId v : g_.inputs) line("input " + typed(v));
    for (std::size_t i = 0; i < g_.variables.size(); ++i) {
      const Variable& c = g_.variables[i];
      line("variable @" + std::to_string(i) + ": " + Spec{c.shape(), c.dtype()}.str() + " = " + kind_name(c.kind()) +
           " " + detail::in_quotes(c.name()));
    }
    for (const Graph::VariableValue& r : g_.reads) line(typed(r.value) + " = read @" + std::to_string(r.variable));
    for (const Graph::Constant& c : g_.constants) line("constant " + typed(c.value) + " = " + elements(c.tensor));
    for (const Graph::Node& n : g_.nodes) {
      line(node(n));
      if (const detail::Body* b = detail::find_body(n.attrs)) body(b->graph());
    }
    for (const Graph::VariableValue& w : g_.writes)
      line("write @" + std::to_string(w.variable) + " = " + value(w.value));
    line("return " + list(g_.outputs));
  }
  /// The program of a scan, with all its constants, indented.
  void body(const Graph& g) {
    Printer p(g, std::numeric_limits<std::int64_t>::max(), scopes_, indent_ + "  ");
    p.block();
    text_ += p.text_ + indent_ + "}\n";
  }
  void line(const std::string& s) {
    text_ += indent_ + s;
    while (text_.back() == ' ') text_.pop_back();
    text_ += '\n';
  }
  static std::string value(ValueId v) { return "%" + std::to_string(v); }
  std::string typed(ValueId v) const { return value(v) + ": " + g_.values[v].str(); }
  template <class List>
  static std::string list(const List& values) {
    std::string s;
    for (const ValueId v : values) s += (s.empty() ? "" : ", ") + value(v);
    return s;
  }

  std::string elements(const Tensor& t) {
    return visit_dtype(t.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if (detail::one_value(t)) return "all " + detail::element_text(t.data<T>()[0]);
      if (t.numel() > most_inline_) return "#" + std::to_string(references_++);
      std::string s = "{";
      for (const T v : t.to_vector<T>()) s += (s.size() > 1 ? ", " : "") + detail::element_text(v);
      return s + "}";
    });
  }

  std::string node(const Graph::Node& n) const {
    std::string s;
    for (const ValueId v : n.out) s += (s.empty() ? "" : ", ") + typed(v);
    s += " = " + std::string(n.op->name) + "(" + list(n.in) + ")";
    s += detail::attrs_text(n.attrs);
    if (scopes_ && !n.scope.empty())
      s += " " + std::string(detail::kScopeWord) + "=" + detail::in_quotes(n.scope.path());
    return detail::find_body(n.attrs) ? s + " {" : s;
  }

  const Graph& g_;
  std::int64_t most_inline_;
  bool scopes_;
  std::string indent_;
  std::string text_;
  int references_ = 0;
};

}  // namespace

std::string Graph::str(std::int64_t most_inline, bool scopes) const {
  return Printer(*this, most_inline, scopes).run();
}

std::string Graph::graphviz() const {
  std::string s = "digraph program {\n  node [shape=box, fontname=monospace];\n";
  const auto point = [&](ValueId v, const std::string& label, const char* style) {
    s += "  v" + std::to_string(v) + " [label=" + detail::in_quotes(label + "\n" + values[v].str()) + style + "];\n";
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) point(inputs[i], "input " + std::to_string(i), ", shape=ellipse");
  for (const VariableValue& r : reads) point(r.value, variables[r.variable].name(), ", shape=cylinder");
  for (const Constant& c : constants) point(c.value, "constant", ", style=dashed");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& n = nodes[i];
    std::string label(n.op->name);
    label += detail::attrs_text(n.attrs);
    for (const ValueId v : n.out) point(v, label, "");
    for (const ValueId from : n.in)
      for (const ValueId to : n.out) s += "  v" + std::to_string(from) + " -> v" + std::to_string(to) + ";\n";
  }
  const auto sink = [&](const std::string& id, const std::string& label, ValueId from) {
    s += "  " + id + " [label=" + detail::in_quotes(label) + ", shape=ellipse, style=bold];\n";
    s += "  v" + std::to_string(from) + " -> " + id + ";\n";
  };
  for (std::size_t i = 0; i < outputs.size(); ++i)
    sink("out" + std::to_string(i), "output " + std::to_string(i), outputs[i]);
  for (std::size_t i = 0; i < writes.size(); ++i)
    sink("variable" + std::to_string(i), "write " + variables[writes[i].variable].name(), writes[i].value);
  return s + "}\n";
}

}  // namespace ferrite
