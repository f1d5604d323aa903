/// Writes the wrapper: tables of sizes and names, and functions that call C functions on CasADi's arrays.
#include "ferrite/exchange/freeze/casadi.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace ferrite::exchange {
namespace {

using Arguments = std::vector<CasadiFunction::Argument>;

bool is_identifier(const std::string& name) {
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && std::ranges::all_of(name, letter) && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
}

void check_name(const std::string& name, const char* what) {
  if (!is_identifier(name))
    throw ValueError("casadi_wrapper: the " + std::string(what) + " '" + name + "' must be a C identifier");
}

void check(const CasadiFunction& f) {
  check_name(f.name, "name");
  check_name(f.primal.function, "function");
  if (f.results.empty()) throw ValueError("casadi_wrapper: '" + f.name + "' has no results");
  std::set<std::string> names;
  for (const Arguments* list : {&f.inputs, &f.results}) {
    for (const CasadiFunction::Argument& a : *list) {
      check_name(a.name, list == &f.inputs ? "input" : "result");
      if (!names.insert(a.name).second) throw ValueError("casadi_wrapper: the name '" + a.name + "' is given twice");
      if (a.elements < 1)
        throw ValueError("casadi_wrapper: '" + a.name + "' must have at least one element, has " +
                         std::to_string(a.elements));
    }
  }
  if (f.jacobian.function.empty()) return;
  check_name(f.jacobian.function, "function");
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (const JacobianBlock& b : f.blocks) {
    if (b.result >= f.results.size() || b.input >= f.inputs.size() || !pairs.insert({b.result, b.input}).second)
      throw ValueError("casadi_wrapper: block " + std::to_string(b.result) + ", " + std::to_string(b.input) +
                       " does not exist or is given twice");
  }
}

/// A number or a pointer of the generated text.
std::string text(std::int64_t n) { return std::to_string(n); }

/// One external function: the table of its inputs and results, and the call of a C function.
class Entry {
 public:
  struct Result {
    std::string name;
    std::int64_t rows = 0, columns = 1;
    bool given = true;        ///< whether the C function gives it; else it is zeros
    bool transposed = false;  ///< whether the C function gives it row by row
    bool wanted = true;       ///< whether CasADi gets it; else the C function's value is dropped
  };

  Entry(std::string name, const CasadiCallee& callee) : name_(std::move(name)), callee_(callee) {}

  void input(const std::string& name, std::int64_t elements, bool read) { inputs_.push_back({name, elements, read}); }
  void result(const Result& r) { results_.push_back(r); }
  /// Names the results in the order in which the C function takes them, by index.
  void order(std::vector<std::size_t> arguments) { order_ = std::move(arguments); }

  std::string str() const { return call() + tables() + sparsity() + work(); }

 private:
  struct Input {
    std::string name;
    std::int64_t elements = 0;
    bool read = true;
  };

  std::string head(const std::string& type, const std::string& suffix, const std::string& arguments) const {
    return "CASADI_SYMBOL_EXPORT " + type + name_ + suffix + "(" + arguments + ")";
  }

  std::int64_t most_zeros() const {
    std::int64_t n = 0;
    for (const Input& i : inputs_)
      if (i.read) n = std::max(n, i.elements);
    return n;
  }

  /// The doubles of the work array before the instance: zeros, then a place for each result.
  std::int64_t doubles() const {
    std::int64_t n = most_zeros();
    for (const Result& r : results_)
      if (r.given) n += r.rows * r.columns;
    return n;
  }

  bool has_instance() const { return !callee_.instance.empty(); }

  std::string call() const {
    std::string s =
        head("int ", "", "const casadi_real** arg, casadi_real** res, casadi_int* iw, casadi_real* w, int mem") +
        " {\n  casadi_real* const zeros = w;\n";
    if (has_instance())
      s += "  " + callee_.instance + "* const instance = (" + callee_.instance + "*)(void*)(((uintptr_t)(w + " +
           text(doubles()) + ") + 63) / 64 * 64);\n";
    std::int64_t at = most_zeros();
    std::string after;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Result& r = results_[i];
      if (!r.given) continue;
      const std::string y = "y" + text(static_cast<std::int64_t>(i)), res = "res[" + text(wanted_index(i)) + "]";
      const std::string place = "w + " + text(at);
      at += r.rows * r.columns;
      const bool direct = r.wanted && !r.transposed;
      s += "  casadi_real* const " + y + " = " + (direct ? res + " ? " + res + " : " + place : place) + ";\n";
      if (r.wanted && r.transposed)
        after += "  if (" + res + ") {\n    for (i = 0; i < " + text(r.rows) + "; ++i)\n      for (j = 0; j < " +
                 text(r.columns) + "; ++j) " + res + "[j * " + text(r.rows) + " + i] = " + y + "[i * " +
                 text(r.columns) + " + j];\n  }\n";
    }
    s += "  casadi_int i" + std::string(after.empty() ? "" : ", j") + ";\n  (void)iw, (void)mem;\n";
    s += "  for (i = 0; i < " + text(most_zeros()) + "; ++i) zeros[i] = 0;\n";
    if (!callee_.init.empty()) s += "  " + callee_.init + "(" + (has_instance() ? "instance" : "") + ");\n";
    s += "  if (" + callee_.function + "(" + arguments() + ")) return 1;\n" + after + "  return 0;\n}\n\n";
    return s;
  }

  std::string arguments() const {
    std::vector<std::string> list;
    if (has_instance()) list.push_back("instance");
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::string a = "arg[" + std::to_string(i) + "]";
      if (inputs_[i].read) list.push_back(a + " ? " + a + " : zeros");
    }
    for (const std::size_t i : order_) list.push_back("y" + std::to_string(i));
    std::string s;
    for (const std::string& a : list) s += (s.empty() ? "" : ", ") + a;
    return s;
  }

  std::int64_t wanted_index(std::size_t i) const {
    return std::count_if(results_.begin(), results_.begin() + static_cast<std::ptrdiff_t>(i),
                         [](const Result& r) { return r.wanted; });
  }

  std::vector<Result> wanted() const {
    std::vector<Result> list;
    std::ranges::copy_if(results_, std::back_inserter(list), [](const Result& r) { return r.wanted; });
    return list;
  }

  std::string tables() const {
    std::string in, out;
    for (const Input& i : inputs_) in += "\"" + i.name + "\", ";
    const std::vector<Result> list = wanted();
    for (const Result& r : list) out += "\"" + r.name + "\", ";
    const auto names = [&](const char* suffix, const std::string& all, std::size_t n) {
      const std::string count = std::to_string(n);
      return head("const char* ", suffix, "casadi_int i") + " {\n  static const char* const names[] = {" + all +
             "0};\n  return i >= 0 && i < " + count + " ? names[i] : 0;\n}\n\n";
    };
    return head("casadi_int ", "_n_in", "void") + " { return " + std::to_string(inputs_.size()) + "; }\n\n" +
           head("casadi_int ", "_n_out", "void") + " { return " + std::to_string(list.size()) + "; }\n\n" +
           names("_name_in", in, inputs_.size()) + names("_name_out", out, list.size());
  }

  /// Writes the patterns of CasADi: {rows, columns, 1} of a dense matrix, of an empty one {rows, columns, 0, ...}.
  std::string sparsity() const {
    const auto pattern = [](std::int64_t rows, std::int64_t columns, bool dense) {
      std::string s = "{" + text(rows) + ", " + text(columns);
      for (std::int64_t c = 0; c < (dense ? 1 : columns + 1); ++c) s += dense ? ", 1" : ", 0";
      return s + "}";
    };
    const auto cases = [&](const char* suffix, const std::vector<std::string>& patterns) {
      std::string s = head("const casadi_int* ", suffix, "casadi_int i") + " {\n", all;
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        const std::string n = "s" + std::to_string(i);
        s += "  static const casadi_int " + n + "[] = " + patterns[i] + ";\n";
        all += "    case " + std::to_string(i) + ": return " + n + ";\n";
      }
      return s + "  switch (i) {\n" + all + "    default: return 0;\n  }\n}\n\n";
    };
    std::vector<std::string> in, out;
    for (const Input& i : inputs_) in.push_back(pattern(i.elements, 1, i.read));
    for (const Result& r : wanted()) out.push_back(pattern(r.rows, r.columns, r.given));
    return cases("_sparsity_in", in) + cases("_sparsity_out", out);
  }

  std::string work() const {
    std::string w = text(doubles());
    if (has_instance())
      w += " + (casadi_int)((sizeof(" + callee_.instance + ") + 63 + sizeof(casadi_real) - 1) / sizeof(casadi_real))";
    return head("int ", "_work", "casadi_int* sz_arg, casadi_int* sz_res, casadi_int* sz_iw, casadi_int* sz_w") +
           " {\n  if (sz_arg) *sz_arg = " + std::to_string(inputs_.size()) +
           ";\n  if (sz_res) *sz_res = " + std::to_string(wanted().size()) +
           ";\n  if (sz_iw) *sz_iw = 0;\n  if (sz_w) *sz_w = " + w + ";\n  return 0;\n}\n\n";
  }

  std::string name_;
  CasadiCallee callee_;
  std::vector<Input> inputs_;
  std::vector<Result> results_;
  std::vector<std::size_t> order_;
};

Entry primal_of(const CasadiFunction& f) {
  Entry e(f.name, f.primal);
  std::vector<std::size_t> order;
  for (const auto& i : f.inputs) e.input(i.name, i.elements, true);
  for (const auto& r : f.results) {
    order.push_back(order.size());
    e.result({.name = r.name, .rows = r.elements});
  }
  e.order(std::move(order));
  return e;
}

Entry jacobian_of(const CasadiFunction& f) {
  Entry e("jac_" + f.name, f.jacobian);
  for (const auto& i : f.inputs) e.input(i.name, i.elements, true);
  for (const auto& r : f.results) e.input("out_" + r.name, r.elements, false);
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < f.results.size(); ++k)
    for (std::size_t i = 0; i < f.inputs.size(); ++i) {
      const auto is = [&](const JacobianBlock& b) { return b.result == k && b.input == i; };
      const auto found = std::ranges::find_if(f.blocks, is);
      const bool zero = found == f.blocks.end() || found->zero;
      e.result({.name = "jac_" + f.results[k].name + "_" + f.inputs[i].name,
                .rows = f.results[k].elements,
                .columns = f.inputs[i].elements,
                .given = !zero,
                .transposed = !f.column_major && f.results[k].elements > 1 && f.inputs[i].elements > 1});
    }
  std::size_t next = f.results.size() * f.inputs.size();  // of what the C function gives and CasADi does not get
  const auto dropped = [&](std::int64_t elements) {
    e.result({.name = {}, .rows = elements, .wanted = false});
    order.push_back(next++);
  };
  if (f.jacobian_results)
    for (const auto& r : f.results) dropped(r.elements);
  for (const JacobianBlock& b : f.blocks) {
    if (b.zero)
      dropped(f.results[b.result].elements * f.inputs[b.input].elements);
    else
      order.push_back(b.result * f.inputs.size() + b.input);
  }
  e.order(std::move(order));
  return e;
}

constexpr const char* kBegin = R"(#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef casadi_real
#define casadi_real double
#endif
#ifndef casadi_int
#define casadi_int long long int
#endif
#ifndef CASADI_SYMBOL_EXPORT
#if defined(_WIN32) || defined(__CYGWIN__)
#define CASADI_SYMBOL_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define CASADI_SYMBOL_EXPORT __attribute__((visibility("default")))
#else
#define CASADI_SYMBOL_EXPORT
#endif
#endif

)";
constexpr const char* kEnd = R"(#ifdef __cplusplus
}
#endif
)";

}  // namespace

std::string casadi_wrapper(const CasadiFunction& f) {
  check(f);
  std::string s = "/* " + f.name + " as an external function of CasADi (3.6 and later). */\n";
  if (!f.include.empty()) s += "#include \"" + f.include + "\"\n";
  s += kBegin + primal_of(f).str();
  if (!f.jacobian.function.empty()) s += jacobian_of(f).str();
  return s + kEnd;
}

}  // namespace ferrite::exchange
