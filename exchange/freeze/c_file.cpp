/// Writes the header and the source of a frozen program.
#include "ferrite/exchange/freeze/c_file.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "ferrite/exchange/freeze/c_body.h"
#include "ferrite/exchange/freeze/c_lanes.h"
#include "ferrite/exchange/freeze/c_run.h"
#include "ferrite/exchange/freeze/c_states.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::exchange::detail {

double CheckInputs::next(bool integer) {
  state_ = state_ * 1664525U + 1013904223U;
  if (integer) return static_cast<double>(state_ >> 31);
  return static_cast<double>(static_cast<std::int32_t>(state_ >> 8) - (1 << 23)) / (1 << 23);
}

std::uint32_t check_sum(const void* bytes, std::size_t n, std::uint32_t sum) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < n; ++i) sum = (sum ^ at[i]) * 16777619U;
  return sum;
}

namespace {

std::string text(std::int64_t n) { return std::to_string(n); }

std::string upper(std::string s) {
  for (char& c : s) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return s;
}

/// Makes names of C of any names: letters, digits and underlines, each once.
class CNames {
 public:
  std::string claim(const std::string& wanted) {
    std::string name;
    for (const char c : wanted) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      const bool digit = c >= '0' && c <= '9';
      if (letter || (digit && !name.empty())) name += c;
      if (!letter && !digit && !name.empty() && name.back() != '_') name += '_';
    }
    if (name.empty()) name = "s";
    std::string own = name;
    for (int i = 2; !taken_.insert(own).second; ++i) own = name + "_" + std::to_string(i);
    return own;
  }

 private:
  /// Words that no member or parameter may be called.
  std::set<std::string> taken_{"auto",   "break",  "case",   "char",   "const",  "continue", "default", "do",
                               "double", "else",   "enum",   "extern", "float",  "for",      "goto",    "if",
                               "int",    "long",   "return", "short",  "signed", "sizeof",   "static",  "struct",
                               "switch", "typedef", "union", "unsigned", "void", "while",    "class",   "new",
                               "this",   "delete", "template", "work_f", "work_d", "work_i", "work_l", "work_m", "n",
                               "steps"};
};

/// The names of a net's inputs, outputs and states in C.
struct Names {
  std::vector<std::string> inputs, outputs, states;  ///< "x", "y", "h"
};

Names names_of(const FrozenProgram& p) {
  CNames names;
  Names n;
  for (const std::string& x : p.input_names) n.inputs.push_back(names.claim(x));
  for (const std::string& y : p.output_names) n.outputs.push_back(names.claim(y));
  for (const FrozenState& s : p.states) n.states.push_back(names.claim(s.name));
  return n;
}

// ---- the header -------------------------------------------------------------------------------------------------

std::string head(const FreezeOptions& options, const FileFacts& facts, std::string_view file) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(facts.hash));
  return "/* " + options.name + std::string(file) + ": " + c_comment(facts.what) + "\n   Written by Ferrite " +
         FERRITE_VERSION + ": " + c_comment(options.command) + "\n   Model " + hash + ". Do not edit. */\n";
}

/// Returns the parameters of a function for all inputs and outputs.
std::string parameters(const FrozenProgram& p, const Names& names) {
  std::string all;
  const auto add = [&](const std::vector<ValueId>& values, const std::vector<std::string>& list, const char* before) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Dtype t = p.lowered.graph.values[values[i]].dtype;
      all += std::string(", ") + before + (t == Dtype::boolean ? "nf_mask" : std::string(c_type(t))) + " *" + list[i];
    }
  };
  add(p.inputs, names.inputs, "const "), add(p.outputs, names.outputs, "");
  return all;
}

constexpr std::string_view kStepFunctions = R"(
/* Prepares an instance and begins a sequence. Call it before anything else. */
void nf_init(nf_self *n);
/* Runs one step. Returns 0, or an error; then no state has changed. Inputs and outputs must not overlap. */
int nf_step(nf_self *n$P);
/* Runs `steps` steps on rows of inputs and outputs. Returns 0, or the error of the first step that fails. */
int nf_steps(nf_self *n, int32_t steps$P);
/* Begins a new sequence. */
void nf_reset(nf_self *n);
/* Writes the states to NF_SAVED_BYTES bytes, and reads them back. */
void nf_save(const nf_self *n, void *to);
int nf_restore(nf_self *n, const void *from);
)";
constexpr std::string_view kProgramFunctions = R"(
/* Prepares an instance. Call it before anything else. */
void nf_init(nf_self *n);
/* Runs the program. Returns 0, or an error. Inputs and outputs must not overlap. */
int nf_run(nf_self *n$P);
)";
constexpr std::string_view kCheckFunction = R"(/* Compares stored runs with this build, bit by bit: 0 if they agree, else the number of the first that differs.
   Compilers change bits if they are told to (-ffast-math). Begins a new sequence. */
int nf_check(nf_self *n);

)";
constexpr std::string_view kErrors = R"(
/* What functions return besides 0: an index outside its table, full states, states that no step leaves. */
#define NF_BAD_INDEX 1
#define NF_FULL 2
#define NF_BAD_STATE 3

)";

constexpr const char* kShortRows = R"(#if !defined(NF_VECTOR_BYTES) && defined(__GNUC__) && defined(__AVX512F__)
#define NF_VECTOR_BYTES 32 /* faster than 64 for the short rows of this net */
#endif
)";

class FileWriter {
 public:
  FileWriter(const FrozenProgram& p, const FrozenProgram* block, const FreezeOptions& options, const FileFacts& facts,
             bool steps)
      : p_(p),
        block_(block),
        options_(options),
        facts_(facts),
        steps_(steps),
        names_(names_of(p)),
        run_(module_, p, steps ? "nf_once" : "nf_run"),
        states_(p.states, names_.states, most_appended(), has_doubles(p)) {
    if (block) block_run_.emplace(module_, *block, "nf_block");
  }

  FrozenNet write() {
    run_.write(names_.inputs, names_.outputs, states_);
    if (block_) block_run_->write(names_.inputs, names_.outputs, states_);
    work_ = run_.work();
    if (block_) work_.widen(block_run_->work());
    FrozenNet net{header(), source(run_.text(work_.on_stack()) + (block_ ? block_run_->text(work_.on_stack()) : ""))};
    for (std::string* t : {&net.header, &net.source}) {
      *t = replaced(*t, "nf_self", options_.name);
      *t = replaced(*t, "nf_", options_.name + "_");
      *t = replaced(*t, "NF_", upper(options_.name) + "_");
    }
    return net;
  }

 private:
  static bool has_doubles(const FrozenProgram& p) {
    return std::ranges::any_of(p.lowered.graph.values, [](const Spec& s) { return s.dtype == Dtype::f64; });
  }
  std::int64_t most_appended() const {
    std::int64_t most = 1;
    for (const FrozenProgram* p : {&p_, block_})
      if (p)
        for (const FrozenState& s : p->states) most = std::max(most, s.appended);
    return most;
  }
  const Spec& spec(ValueId v) const { return p_.lowered.graph.values[v]; }

  std::string header() const {
    CText t;
    t.append(head(options_, facts_, ".h"));
    t.line("#ifndef NF_H");
    t.line("#define NF_H");
    t.line("#include <stdint.h>");
    t.line("#ifdef __cplusplus");
    t.line("extern \"C\" {");
    t.line("#endif");
    t.append("\n/* The numbers that a run reads and writes" + std::string(steps_ ? ", and the bytes that nf_save writes" : "") +
             ". */\n");
    write_sizes(t, p_.inputs, names_.inputs, "INPUTS"), write_sizes(t, p_.outputs, names_.outputs, "OUTPUTS");
    if (steps_) t.line("#define NF_SAVED_BYTES " + text(states_.saved_bytes()));
    t.append(kErrors);
    t.line("typedef " + std::string(has_doubles(p_) ? "int64_t" : "int32_t") + " nf_mask; /* -1: true, 0: false */");
    t.append("/* One instance. Its members are not for others. */\n");
    t.open("typedef struct nf_self");
    states_.write_members(t);
    if (!work_.on_stack()) work_.write_members(t);
    if (states_.size() == 0 && work_.on_stack()) t.line("char nothing;");
    t.close(" nf_self;");
    t.append(replaced(std::string(steps_ ? kStepFunctions : kProgramFunctions), "$P", parameters(p_, names_)));
    t.append(kCheckFunction);
    t.line("#ifdef __cplusplus");
    t.line("}");
    t.line("#endif");
    t.line("#endif");
    return t.str();
  }
  void write_sizes(CText& t, const std::vector<ValueId>& values, const std::vector<std::string>& names,
                   const std::string& alone) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      t.line("#define NF_" + (values.size() == 1 ? alone : upper(names[i])) + " " + text(spec(values[i]).shape.numel()));
  }

  // ---- the source -------------------------------------------------------------------------------------------------

  std::string source(const std::string& runs) {
    CText rest;
    if (steps_) {
      write_reset(rest), write_steps(rest);
      rest.open("void nf_save(const nf_self *n, void *to)");
      states_.write_save(rest);
      rest.close();
      rest.open("int nf_restore(nf_self *n, const void *from)");
      states_.write_restore(rest);
      rest.close();
    }
    write_init(rest);
    write_check(rest);
    const std::string library = module_.calls_library() ? "#include <math.h>\n" : "";
    return head(options_, facts_, ".c") + "#include \"nf_self.h\"\n#include <stddef.h>\n" + library +
           (short_rows() ? kShortRows : "") + module_.functions() + "\n/* ---- weights ---- */\n\n" + module_.constants() + "\n/* ---- " +
           (steps_ ? "the step" : "the program") + " ---- */\n\n" + runs + rest.str() + c_end();
  }
  /// Returns whether vectors of 32 bytes suit the net better than those of 64: no row fills two of the latter.
  bool short_rows() const {
    if (block_ && block_->lanes) return widest_product(*block_) <= 12;
    return !block_ && std::ranges::all_of(p_.states, [](const FrozenState& s) { return s.spec.shape.numel() < 32; }) &&
           p_.states.size() > 0;
  }
  void write_reset(CText& t) {
    t.open("void nf_reset(nf_self *n)");
    states_.write_reset(t, module_);
    t.close();
  }
  void write_init(CText& t) const {
    t.open("void nf_init(nf_self *n)");
    if (!work_.on_stack()) work_.write_zeros(t);
    t.line(steps_ ? "nf_reset(n);" : "(void)n;");
    t.close();
  }
  void write_steps(CText& t) const {
    std::string given, rows;
    const auto pass = [&](const std::vector<ValueId>& values, const std::vector<std::string>& names) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        given += ", " + names[i];
        rows += ", " + names[i] + " + t * " + text(spec(values[i]).shape.numel());
      }
    };
    pass(p_.inputs, names_.inputs), pass(p_.outputs, names_.outputs);
    t.line("int nf_step(nf_self *n" + parameters(p_, names_) + ") { return nf_once(n" + given + "); }");
    t.open("int nf_steps(nf_self *n, int32_t steps" + parameters(p_, names_) + ")");
    t.line("ptrdiff_t t = 0;");
    const auto loop = [&](const std::string& function, std::int64_t n) {
      t.open("for (; t + " + text(n) + " <= steps; t += " + text(n) + ")");
      t.line("const int error = " + function + "(n" + rows + ");");
      t.line("if (error != 0) return error;");
      t.close();
    };
    if (block_) loop("nf_block", block_->steps);
    loop("nf_once", 1);
    t.line("return 0;");
    t.close();
  }

  void write_check(CText& t) const {
    std::string sums, given;
    for (const std::uint32_t s : facts_.check) sums += (sums.empty() ? "" : ", ") + std::to_string(s) + "U";
    t.open("int nf_check(nf_self *n)");
    t.line("static const uint32_t expected[" + text(std::ssize(facts_.check)) + "] = {" + sums + "};");
    t.line("uint32_t state = 1;");
    const auto arrays = [&](const std::vector<ValueId>& values, const std::vector<std::string>& names) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t elements = std::max<std::int64_t>(spec(values[i]).shape.numel(), 1);
        t.line((elements > 256 ? "static " : "") + std::string(c_type(spec(values[i]).dtype)) + " " + names[i] + "[" +
               text(elements) + "];");
        given += ", " + names[i];
      }
    };
    arrays(p_.inputs, names_.inputs), arrays(p_.outputs, names_.outputs);
    t.line("nf_init(n);");
    t.open("for (int s = 0; s < " + text(std::ssize(facts_.check)) + "; ++s)");
    t.line("uint32_t sum = 2166136261U;");
    for (std::size_t i = 0; i < names_.inputs.size(); ++i) {
      const Dtype d = spec(p_.inputs[i]).dtype;
      t.open("for (int i = 0; i < " + text(spec(p_.inputs[i]).shape.numel()) + "; ++i)");
      t.line("state = state * 1664525U + 1013904223U;");
      t.line(names_.inputs[i] + "[i] = " +
             (is_float(d) ? "(" + std::string(c_type(d)) + ")((int32_t)(state >> 8) - 8388608) / 8388608"
                          : "(" + std::string(c_type(d)) + ")(state >> 31)") +
             ";");
      t.close();
    }
    t.line("if (" + std::string(steps_ ? "nf_once" : "nf_run") + "(n" + given + ") != 0) return s + 1;");
    for (const std::string& y : names_.outputs) t.line("sum = nf_sum_of_bits(" + y + ", (ptrdiff_t)sizeof " + y + ", sum);");
    t.line("if (sum != expected[s]) return s + 1;");
    t.close();
    t.line("nf_init(n);");
    t.line("return 0;");
    t.close();
  }

  const FrozenProgram& p_;
  const FrozenProgram* block_;
  const FreezeOptions& options_;
  const FileFacts& facts_;
  bool steps_;
  Names names_;
  CModule module_;
  RunWriter run_;
  std::optional<RunWriter> block_run_;
  CStates states_;
  CWork work_;
};

}  // namespace

FrozenNet write_file(const FrozenProgram& program, const FrozenProgram* block, const FreezeOptions& options,
                     const FileFacts& facts, bool steps) {
  return FileWriter(program, block, options, facts, steps).write();
}

}  // namespace ferrite::exchange::detail
