/// Writes the wrapper: tables of sizes and names, and functions that call C functions on CasADi's arrays.
#include "ferrite/exchange/freeze_casadi.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "ferrite/exchange/freeze.h"
#include "ferrite/exchange/freeze/c_text.h"

namespace ferrite::exchange {
namespace {

using detail::text;
using Arguments = std::vector<CasadiFunction::Argument>;

// ---- checks -----------------------------------------------------------------------------------------------

bool is_identifier(const std::string& name) {
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && std::ranges::all_of(name, letter) && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
}

void check_name(const std::string& name, const char* what) {
  if (!is_identifier(name))
    throw ValueError("casadi_wrapper: the " + std::string(what) + " '" + name + "' must be a C identifier");
}

void check_blocks(const CasadiFunction::Blocks& b, std::size_t results, std::size_t inputs) {
  check_name(b.callee.function, "function");
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (const JacobianBlock& k : b.blocks)
    if (k.result >= results || k.input >= inputs || !pairs.insert({k.result, k.input}).second)
      throw ValueError("casadi_wrapper: block " + std::to_string(k.result) + ", " + std::to_string(k.input) + " of '" +
                       b.callee.function + "' does not exist or is given twice");
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
  if (!f.jacobian.callee.function.empty()) check_blocks(f.jacobian, f.results.size(), f.inputs.size());
  if (!f.adjoint.function.empty()) check_name(f.adjoint.function, "function");
  if (f.hessian.callee.function.empty()) return;
  if (f.adjoint.function.empty() || f.jacobian.callee.function.empty())
    throw ValueError("casadi_wrapper: '" + f.name + "' has a Hessian but no adjoint or no Jacobian");
  check_blocks(f.hessian, f.inputs.size(), f.inputs.size() + f.results.size());
}

// ---- one external function --------------------------------------------------------------------------------

/// One external function: what CasADi passes in and gets, and the C functions that compute it.
class Entry {
 public:
  struct Input {
    std::string name;
    std::int64_t elements = 0;
    bool read = true;  ///< whether a C function reads it; if not, CasADi sees an empty pattern
  };
  struct Result {
    std::string name;
    std::int64_t rows = 0, columns = 1;
    bool given = true;  ///< whether a C function gives it; if not, CasADi sees an empty pattern
  };
  /// An array that a C function writes: the elements of a result, or some that CasADi does not get.
  struct Target {
    std::int64_t elements = 0;
    std::optional<std::size_t> result{};
    bool transposed = false;  ///< whether it is row-major, while CasADi wants columns
  };
  struct Call {
    CasadiCallee callee;
    std::vector<std::size_t> inputs;
    std::vector<Target> targets{};
  };

  explicit Entry(std::string name) : name_(std::move(name)) {}

  std::size_t input(Input i) {
    inputs_.push_back(std::move(i));
    return inputs_.size() - 1;
  }
  std::size_t result(Result r) {
    results_.push_back(std::move(r));
    return results_.size() - 1;
  }
  void call(Call c) { calls_.push_back(std::move(c)); }

  std::string str() const { return function() + tables() + sparsity() + work(); }

 private:
  std::string head(const std::string& type, const std::string& suffix, const std::string& arguments) const {
    return "CASADI_SYMBOL_EXPORT " + type + name_ + suffix + "(" + arguments + ")";
  }

  std::int64_t zeros() const {
    std::int64_t n = 0;
    for (const Input& i : inputs_)
      if (i.read) n = std::max(n, i.elements);
    return n;
  }

  /// Returns the doubles of the work array before the instance: zeros, then the targets of one call.
  std::int64_t doubles() const {
    std::int64_t most = 0;
    for (const Call& c : calls_) {
      std::int64_t n = 0;
      for (const Target& t : c.targets) n += t.elements;
      most = std::max(most, n);
    }
    return zeros() + most;
  }

  static std::string res(std::size_t k) { return "res[" + text(k) + "]"; }

  std::string function() const {
    std::string s =
        head("int ", "", "const casadi_real** arg, casadi_real** res, casadi_int* iw, casadi_real* w, int mem");
    s += " {\n  (void)iw, (void)mem;\n";
    if (zeros() > 0) s += "  for (casadi_int i = 0; i < " + text(zeros()) + "; ++i) w[i] = 0;\n";
    for (const Call& c : calls_) s += block(c);
    return s + "  return 0;\n}\n\n";
  }

  /// Writes one call: under the condition that CasADi wants something of it.
  std::string block(const Call& c) const {
    std::string wanted, places, after;
    std::int64_t at = zeros();
    for (std::size_t k = 0; k < c.targets.size(); ++k) {
      const Target& t = c.targets[k];
      const std::string y = "y" + text(k), place = "w + " + text(at);
      at += t.elements;
      if (t.result) wanted += (wanted.empty() ? "" : " || ") + res(*t.result);
      const bool direct = t.result && !t.transposed;
      places += "    casadi_real* const " + y + " = " +
                (direct ? res(*t.result) + " ? " + res(*t.result) + " : " + place : place) + ";\n";
      if (t.result && t.transposed) after += transposition(*t.result, y);
    }
    if (wanted.empty()) return {};
    std::string s = "  if (" + wanted + ") {\n" + places;
    if (!c.callee.instance.empty())
      s += "    " + c.callee.instance + "* const instance = (" + c.callee.instance + "*)(void*)(((uintptr_t)(w + " +
           text(doubles()) + ") + 63) / 64 * 64);\n";
    if (!c.callee.init.empty())
      s += "    " + c.callee.init + "(" + (c.callee.instance.empty() ? "" : "instance") + ");\n";
    return s + "    if (" + c.callee.function + "(" + arguments(c) + ")) return 1;\n" + after + "  }\n";
  }

  std::string transposition(std::size_t result, const std::string& y) const {
    const std::string rows = text(results_[result].rows), columns = text(results_[result].columns);
    return "    if (" + res(result) + ") {\n      for (casadi_int i = 0; i < " + rows +
           "; ++i)\n        for (casadi_int j = 0; j < " + columns + "; ++j) " + res(result) + "[j * " + rows +
           " + i] = " + y + "[i * " + columns + " + j];\n    }\n";
  }

  static std::string arguments(const Call& c) {
    std::string s = c.callee.instance.empty() ? "" : "instance";
    const auto add = [&](const std::string& a) { s += (s.empty() ? "" : ", ") + a; };
    for (const std::size_t i : c.inputs) add("arg[" + text(i) + "] ? arg[" + text(i) + "] : w");
    for (std::size_t k = 0; k < c.targets.size(); ++k) add("y" + text(k));
    return s;
  }

  std::string tables() const {
    std::string in, out;
    for (const Input& i : inputs_) in += "\"" + i.name + "\", ";
    for (const Result& r : results_) out += "\"" + r.name + "\", ";
    const auto names = [&](const char* suffix, const std::string& all, std::size_t n) {
      return head("const char* ", suffix, "casadi_int i") + " {\n  static const char* const names[] = {" + all +
             "0};\n  return i >= 0 && i < " + text(n) + " ? names[i] : 0;\n}\n\n";
    };
    return head("casadi_int ", "_n_in", "void") + " { return " + text(inputs_.size()) + "; }\n\n" +
           head("casadi_int ", "_n_out", "void") + " { return " + text(results_.size()) + "; }\n\n" +
           names("_name_in", in, inputs_.size()) + names("_name_out", out, results_.size());
  }

  /// Writes the patterns of CasADi: {rows, columns, 1} of a dense matrix, {rows, columns, 0, ...} of an empty one.
  std::string sparsity() const {
    const auto pattern = [](std::int64_t rows, std::int64_t columns, bool dense) {
      std::string s = "{" + text(rows) + ", " + text(columns) + (dense ? ", 1" : "");
      for (std::int64_t c = 0; !dense && c <= columns; ++c) s += ", 0";
      return s + "}";
    };
    const auto cases = [&](const char* suffix, const std::vector<std::string>& patterns) {
      std::string s = head("const casadi_int* ", suffix, "casadi_int i") + " {\n", all;
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        s += "  static const casadi_int s" + text(i) + "[] = " + patterns[i] + ";\n";
        all += "    case " + text(i) + ": return s" + text(i) + ";\n";
      }
      return s + "  switch (i) {\n" + all + "    default: return 0;\n  }\n}\n\n";
    };
    std::vector<std::string> in, out;
    for (const Input& i : inputs_) in.push_back(pattern(i.elements, 1, i.read));
    for (const Result& r : results_) out.push_back(pattern(r.rows, r.columns, r.given));
    return cases("_sparsity_in", in) + cases("_sparsity_out", out);
  }

  std::string work() const {
    std::string bytes;
    for (const Call& c : calls_)
      if (!c.callee.instance.empty()) bytes += " + sizeof(" + c.callee.instance + ")";
    std::string w = text(doubles());
    if (!bytes.empty()) w += " + (casadi_int)((64" + bytes + " + sizeof(casadi_real) - 1) / sizeof(casadi_real))";
    return head("int ", "_work", "casadi_int* sz_arg, casadi_int* sz_res, casadi_int* sz_iw, casadi_int* sz_w") +
           " {\n  if (sz_arg) *sz_arg = " + text(inputs_.size()) +
           ";\n  if (sz_res) *sz_res = " + text(results_.size()) +
           ";\n  if (sz_iw) *sz_iw = 0;\n  if (sz_w) *sz_w = " + w + ";\n  return 0;\n}\n\n";
  }

  std::string name_;
  std::vector<Input> inputs_;
  std::vector<Result> results_;
  std::vector<Call> calls_;
};

// ---- the function and its derivatives ---------------------------------------------------------------------

/// Adds the inputs that each function of a family has, and returns the positions of those that C functions read.
std::vector<std::size_t> add_inputs(Entry& e, const CasadiFunction& f, bool outputs, bool cotangents) {
  std::vector<std::size_t> read;
  for (const auto& i : f.inputs) read.push_back(e.input({i.name, i.elements, true}));
  for (const auto& r : f.results)
    if (outputs) e.input({"out_" + r.name, r.elements, false});
  for (const auto& r : f.results)
    if (cotangents) read.push_back(e.input({"adj_" + r.name, r.elements, true}));
  return read;
}

Entry primal_of(const CasadiFunction& f) {
  Entry e(f.name);
  Entry::Call call{f.primal, add_inputs(e, f, false, false)};
  for (const auto& r : f.results) call.targets.push_back({r.elements, e.result({r.name, r.elements})});
  e.call(std::move(call));
  return e;
}

/// Returns the targets of a C function that gives blocks; `place(block)` returns the result that a block is, if any.
template <class Place>
std::vector<Entry::Target> targets_of(const CasadiFunction::Blocks& b, const Arguments& results,
                                      const Arguments& inputs, const Place& place) {
  std::vector<Entry::Target> targets;
  if (b.results)
    for (const auto& r : results) targets.push_back({r.elements});
  for (const JacobianBlock& k : b.blocks) {
    const std::int64_t rows = results[k.result].elements, columns = inputs[k.input].elements;
    targets.push_back(
        {rows * columns, k.zero ? std::optional<std::size_t>() : place(k), !b.column_major && rows > 1 && columns > 1});
  }
  return targets;
}

bool is_given(const std::vector<JacobianBlock>& blocks, std::size_t result, std::size_t input) {
  return std::ranges::any_of(blocks,
                             [&](const JacobianBlock& b) { return b.result == result && b.input == input && !b.zero; });
}

Entry jacobian_of(const CasadiFunction& f) {
  Entry e("jac_" + f.name);
  Entry::Call call{f.jacobian.callee, add_inputs(e, f, true, false)};
  const std::size_t columns = f.inputs.size();
  for (std::size_t k = 0; k < f.results.size(); ++k)
    for (std::size_t i = 0; i < columns; ++i)
      e.result({"jac_" + f.results[k].name + "_" + f.inputs[i].name, f.results[k].elements, f.inputs[i].elements,
                is_given(f.jacobian.blocks, k, i)});
  call.targets = targets_of(f.jacobian, f.results, f.inputs,
                            [&](const JacobianBlock& b) { return std::optional(b.result * columns + b.input); });
  e.call(std::move(call));
  return e;
}

Entry adjoint_of(const CasadiFunction& f) {
  Entry e("adj1_" + f.name);
  Entry::Call call{f.adjoint, add_inputs(e, f, true, true)};
  for (const auto& i : f.inputs) call.targets.push_back({i.elements, e.result({"adj_" + i.name, i.elements})});
  e.call(std::move(call));
  return e;
}

/// Returns the Jacobian of the adjoint: second derivatives, and with respect to cotangents the transposed Jacobian.
Entry hessian_of(const CasadiFunction& f) {
  Entry e("jac_adj1_" + f.name);
  const std::size_t inputs = f.inputs.size(), results = f.results.size(), columns = inputs + 2 * results;
  const std::vector<std::size_t> read = add_inputs(e, f, true, true);
  for (const auto& i : f.inputs) e.input({"out_adj_" + i.name, i.elements, false});
  Arguments by = f.inputs;
  by.insert(by.end(), f.results.begin(), f.results.end());
  for (std::size_t k = 0; k < inputs; ++k) {
    const CasadiFunction::Argument& i = f.inputs[k];
    const std::string row = "jac_adj_" + i.name + "_";
    for (std::size_t j = 0; j < inputs; ++j)
      e.result({row + by[j].name, i.elements, by[j].elements, is_given(f.hessian.blocks, k, j)});
    for (const auto& r : f.results) e.result({row + "out_" + r.name, i.elements, r.elements, false});
    for (std::size_t j = 0; j < results; ++j)
      e.result(
          {row + "adj_" + f.results[j].name, i.elements, f.results[j].elements, is_given(f.jacobian.blocks, j, k)});
  }
  const auto second = [&](const JacobianBlock& b) {
    return b.input < inputs ? std::optional(b.result * columns + b.input) : std::optional<std::size_t>();
  };
  e.call({f.hessian.callee, read, targets_of(f.hessian, f.inputs, by, second)});
  const std::vector<std::size_t> first(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(inputs));
  std::vector<Entry::Target> turned = targets_of(f.jacobian, f.results, f.inputs, [&](const JacobianBlock& b) {
    return std::optional(b.input * columns + inputs + results + b.result);
  });
  // A row-major block is its transpose by columns; a column-major one has to be turned.
  for (std::size_t k = f.jacobian.results ? results : 0, b = 0; k < turned.size(); ++k, ++b)
    turned[k].transposed = f.jacobian.column_major && f.results[f.jacobian.blocks[b].result].elements > 1 &&
                           f.inputs[f.jacobian.blocks[b].input].elements > 1;
  e.call({f.jacobian.callee, first, std::move(turned)});
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
  if (!f.jacobian.callee.function.empty()) s += jacobian_of(f).str();
  if (!f.adjoint.function.empty()) s += adjoint_of(f).str();
  if (!f.hessian.callee.function.empty()) s += hessian_of(f).str();
  return s + kEnd;
}

// ---- from a step ------------------------------------------------------------------------------------------

std::vector<CasadiFile> freeze_casadi(const StepProgram& step, const CasadiOptions& options) {
  check_name(options.name, "name");
  const JacobianProgram j = jacobian_program(step, {.column_major = true});
  CasadiFunction f{
      .name = options.name, .include = options.name + "_functions.h", .inputs = {}, .results = {}, .primal = {}};
  for (std::size_t i = 0; i < j.inputs.size(); ++i) f.inputs.push_back({j.input_names[i], j.inputs[i].shape.numel()});
  for (std::size_t k = 0; k < j.results.size(); ++k)
    f.results.push_back({j.output_names[k], j.results[k].shape.numel()});
  std::vector<CasadiFile> files;
  std::string includes = "/* The functions that " + options.name + " is made of. */\n";
  const auto written = [&](const std::string& part, const auto& function, const std::vector<Spec>& inputs) {
    const std::string name = options.name + "_" + part;
    FrozenNet c = freeze(function, inputs, {.name = name, .command = options.command, .model = name});
    files.push_back({name + ".h", std::move(c.header)});
    files.push_back({name + ".c", std::move(c.source)});
    includes += "#include \"" + name + ".h\"\n";
    return CasadiCallee{name + "_run", name, name + "_init"};
  };
  f.primal = written("values", j.primal, j.inputs);
  f.jacobian = {written("jacobian", j.function, j.inputs), j.blocks, true, true};
  if (options.hessian) {
    const AdjointProgram a = adjoint_program(j);
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < j.inputs.size(); ++i) first.push_back(i);
    const JacobianProgram h = jacobian_program(a.function, a.inputs, {.inputs = first, .column_major = true});
    f.adjoint = written("adjoint", a.function, a.inputs);
    f.hessian = {written("hessian", h.function, h.inputs), h.blocks, true, true};
  }
  files.push_back({options.name + "_functions.h", std::move(includes)});
  files.push_back({options.name + ".c", casadi_wrapper(f)});
  return files;
}

}  // namespace ferrite::exchange
