/// The text form of a graph, written and read, and its drawing.
#include "ferrite/compile/graph/graph_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "ferrite/compile/graph.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {

// ---- written ----------------------------------------------------------------------------------------------

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

/// Returns the shortest decimal that reads back as the same double and is always recognisable as one.
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
  /// Writes the program of a scan, with all its constants, indented.
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

// ---- read, line by line -----------------------------------------------------------------------------------

namespace {

/// A line of text, read from the left.
class Line {
 public:
  Line(std::string_view text, int number) : rest_(text), number_(number) { skip(); }

  [[noreturn]] void fail(const std::string& what) const {
    throw TraceError("graph text: line " + std::to_string(number_) + ": " + what + ": '" + std::string(rest_) + "'");
  }
  bool done() const { return rest_.empty(); }
  bool accept(std::string_view word) {
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    skip();
    return true;
  }
  void expect(std::string_view word) {
    if (!accept(word)) fail("expected '" + std::string(word) + "'");
  }
  /// Returns the characters up to the first of `stops`.
  std::string_view word(std::string_view stops) {
    const std::size_t n = std::min(rest_.find_first_of(stops), rest_.size());
    const std::string_view w = rest_.substr(0, n);
    if (w.empty()) fail("a word is missing");
    rest_.remove_prefix(n);
    skip();
    return w;
  }
  template <class T>
  T number(std::string_view digits, int base = 10) const {
    T v{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v, base);
    if (error != std::errc() || end != digits.data() + digits.size())
      fail("not a number '" + std::string(digits) + "'");
    return v;
  }
  double real(std::string_view digits) const {
    double v{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (error != std::errc() || end != digits.data() + digits.size())
      fail("not a number '" + std::string(digits) + "'");
    return v;
  }
  ValueId value() {
    expect("%");
    return number<ValueId>(word(" ,:)"));
  }
  Dtype dtype(std::string_view name) const {
    for (const Dtype t : kDtypes)
      if (name == name_of(t)) return t;
    fail("not a dtype '" + std::string(name) + "'");
  }
  Shape shape() {
    expect("[");
    Shape s;
    while (!accept("]")) {
      s.push_back(number<std::int64_t>(word(",] ")));
      accept(",");
    }
    return s;
  }
  Spec spec() {
    const Dtype t = dtype(word("["));
    return {shape(), t};
  }
  std::string quoted() {
    if (rest_.empty() || rest_[0] != '"') fail("expected a name in quotes");
    std::string s;
    std::size_t i = 1;
    for (; i < rest_.size() && rest_[i] != '"'; ++i) {
      if (rest_[i] == '\\') ++i;
      if (i < rest_.size()) s += rest_[i];
    }
    if (i >= rest_.size()) fail("a name does not end");
    rest_.remove_prefix(i + 1);
    skip();
    return s;
  }
  Positions positions() {
    std::vector<std::int64_t> list;
    while (!accept("}")) {
      list.push_back(number<std::int64_t>(word(",}")));
      accept(",");
    }
    return Positions::of(list);
  }
  AttrValue attr() {
    if (!rest_.empty() && rest_[0] == '[') return shape();
    if (!rest_.empty() && rest_[0] == '"') return Label::of(quoted());
    if (accept("{")) return positions();
    std::string_view w = word(" ");
    const bool literal = w[0] == '~';
    if (literal) w.remove_prefix(1);
    const bool is_real = w.find_first_of(".en") != std::string_view::npos && w != "true" && w != "false";
    if (literal) return is_real ? Scalar(real(w)) : Scalar(number<std::int64_t>(w));
    if (w == "true" || w == "false") return w == "true";
    for (const Dtype t : kDtypes)
      if (w == name_of(t)) return t;
    if (is_real) return real(w);
    return number<std::int64_t>(w);
  }
  template <class T>
  T element(std::string_view w) const {
    if constexpr (std::is_same_v<T, bool>) {
      if (w != "true" && w != "false") fail("not a truth value '" + std::string(w) + "'");
      return w == "true";
    } else if constexpr (std::is_integral_v<T>) {
      return number<T>(w);
    } else {
      return real_element<T>(w);
    }
  }

 private:
  template <class T>
  T real_element(std::string_view w) const requires(sizeof(T) == 2) {
    if (w.starts_with("nan:")) return T::from_bits(number<std::uint16_t>(w.substr(4), 16));
    return T(real_element<float>(w));
  }
  template <class T>
  T real_element(std::string_view w) const {
    if (w.starts_with("nan:")) {
      const auto bits = number<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(w.substr(4), 16);
      T v;
      std::memcpy(&v, &bits, sizeof v);
      return v;
    }
    const bool negative = w.starts_with("-");
    if (negative) w.remove_prefix(1);
    T v{};
    if (w == "inf") {
      v = std::numeric_limits<T>::infinity();
    } else {
      if (!w.starts_with("0x")) fail("not a hexadecimal float '" + std::string(w) + "'");
      const auto [end, error] = std::from_chars(w.data() + 2, w.data() + w.size(), v, std::chars_format::hex);
      if (error != std::errc() || end != w.data() + w.size()) fail("not a hexadecimal float '" + std::string(w) + "'");
    }
    return negative ? -v : v;
  }
  void skip() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  }
  std::string_view rest_;
  int number_;
};

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options, const detail::TextOperations& operations)
      : text_(text), options_(options), operations_(operations) {}

  Graph run() {
    next().expect("graph {");
    return block(0);
  }

 private:
  /// Reads statements up to the brace that closes them.
  Graph block(int depth) {
    constexpr int kDeepest = 32;
    Graph outer;
    std::swap(outer, g_);
    for (;;) {
      Line line = next();
      if (depth > kDeepest) line.fail("programs are nested too deep");
      if (line.accept("}")) break;
      statement(line, depth);
      if (!line.done()) line.fail("something is left over");
    }
    g_.validate();
    std::swap(outer, g_);
    return outer;
  }

  Line next() {
    for (;;) {
      if (text_.empty()) Line({}, number_).fail("the text ends too early");
      const std::size_t n = std::min(text_.find('\n'), text_.size());
      const std::string_view line = text_.substr(0, n);
      text_.remove_prefix(std::min(n + 1, text_.size()));
      ++number_;
      if (line.find_first_not_of(' ') != std::string_view::npos) return {line, number_};
    }
  }

  void statement(Line& line, int depth) {
    if (line.accept("input ")) return g_.inputs.push_back(typed(line));
    if (line.accept("constant ")) return constant(line);
    if (line.accept("variable @")) return variable(line);
    if (line.accept("write @")) return write(line);
    if (line.accept("return")) {
      while (!line.done()) {
        g_.outputs.push_back(line.value());
        line.accept(",");
      }
      return;
    }
    results(line, depth);
  }

  ValueId typed(Line& line) {
    const ValueId v = line.value();
    line.expect(":");
    if (v > 100'000'000) line.fail("too many values");
    if (v >= g_.values.size()) g_.values.resize(v + 1);
    g_.values[v] = line.spec();
    return v;
  }

  void constant(Line& line) {
    const ValueId v = typed(line);
    line.expect("=");
    g_.constants.push_back({v, elements(line, g_.values[v])});
  }

  Tensor elements(Line& line, const Spec& spec) {
    if (line.accept("#")) {
      const auto k = line.number<std::size_t>(line.word(" "));
      if (k >= options_.constants.size()) line.fail("no constant #" + std::to_string(k) + " was given");
      return options_.constants[k];
    }
    return visit_dtype(spec.dtype, [&](auto zero) {
      using T = decltype(zero);
      if (line.accept("all ")) {
        const T v = line.element<T>(line.word(" "));
        return expand(Tensor::build<T>({}, [&](std::span<T> to) { to[0] = v; }), spec.shape);
      }
      line.expect("{");
      std::vector<T> values;
      while (!line.accept("}")) {
        values.push_back(line.element<T>(line.word(",} ")));
        line.accept(",");
      }
      if (static_cast<std::int64_t>(values.size()) != spec.shape.numel()) line.fail("wrong number of elements");
      return Tensor::build<T>(spec.shape,
                              [&](std::span<T> to) { std::copy(values.begin(), values.end(), to.begin()); });
    });
  }

  void variable(Line& line) {
    if (line.number<std::size_t>(line.word(":")) != g_.variables.size()) line.fail("variables are numbered in order");
    line.expect(":");
    const Spec spec = line.spec();
    line.expect("=");
    VariableKind kind = VariableKind::state;
    if (line.accept("parameter")) {
      kind = VariableKind::parameter;
    } else if (line.accept("buffer")) {
      kind = VariableKind::buffer;
    } else {
      line.expect("state");
    }
    const std::string name = line.quoted();
    Variable c = options_.variable ? options_.variable(name) : Variable();
    g_.variables.push_back(c.defined() ? c : Variable(name, zeros(spec.shape, spec.dtype), kind));
  }

  void write(Line& line) {
    const auto variable = line.number<std::uint32_t>(line.word(" ="));
    line.expect("=");
    g_.writes.push_back({variable, line.value()});
  }

  void results(Line& line, int depth) {
    InlineVector<ValueId, 1> out;
    do out.push_back(typed(line));
    while (line.accept(","));
    line.expect("=");
    if (line.accept("read @")) return g_.reads.push_back({line.number<std::uint32_t>(line.word(" ")), out[0]});
    Graph::Node n;
    n.out = out;
    const std::string_view name = line.word("(");
    n.op = find(name);
    if (!n.op) line.fail("unknown operation '" + std::string(name) + "'");
    line.expect("(");
    while (!line.accept(")")) {
      n.in.push_back(line.value());
      line.accept(",");
    }
    bool has_body = false;
    std::vector<std::pair<std::string_view, AttrValue>> given;
    while (!line.done() && !(has_body = line.accept("{"))) {
      const std::string_view key = line.word("=");
      line.expect("=");
      if (key == detail::kScopeWord) {
        n.scope = Scope::of(line.quoted());
      } else {
        given.emplace_back(key, line.attr());
      }
    }
    try {
      n.attrs = Attrs::from(*n.op->attributes, given, n.op->name);
    } catch (const ValueError& e) {
      line.fail(e.what());
    }
    if (has_body != operations_.has_body(*n.op)) line.fail("a scan has a body, nothing else has");
    if (has_body) operations_.give_body(n.attrs, block(depth + 1));
    g_.nodes.push_back(std::move(n));
  }

  const Primitive* find(std::string_view name) {
    const auto [at, fresh] = found_.try_emplace(name, nullptr);
    if (!fresh) return at->second;
    for (const Primitive* own : options_.operations)
      if (own->name == name) return at->second = own;
    at->second = operations_.find(name);
    return at->second;
  }

  std::string_view text_;
  const ParseOptions& options_;
  const detail::TextOperations& operations_;
  int number_ = 0;
  Graph g_;
  std::unordered_map<std::string_view, const Primitive*> found_;
};

}  // namespace

Graph detail::parse(std::string_view text, const ParseOptions& options, const TextOperations& operations) {
  const NewFrame frame;
  return Parser(text, options, operations).run();
}

}  // namespace ferrite
