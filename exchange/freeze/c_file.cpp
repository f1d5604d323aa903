/// Writes the header and the source of a frozen program.
#include "ferrite/exchange/freeze/c_file.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "ferrite/exchange/freeze/c_body.h"
#include "ferrite/exchange/freeze/c_run.h"
#include "ferrite/exchange/freeze/c_stages.h"
#include "ferrite/exchange/freeze/c_states.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops.h"

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

Names names_of(const FrozenProgram& first, const FrozenProgram& last, const std::vector<FrozenState>& states) {
  CNames names;
  Names n;
  for (const std::string& x : first.input_names) n.inputs.push_back("in_" + names.claim(x));
  for (const std::string& y : last.output_names) n.outputs.push_back("out_" + names.claim(y));
  for (const FrozenState& s : states) n.states.push_back(names.claim(s.name));
  return n;
}

/// Returns the states of all stages; a stage with a window also counts its rows.
std::vector<FrozenState> states_of(const std::vector<FrozenStage>& stages) {
  std::vector<FrozenState> all;
  for (const FrozenStage& s : stages) {
    all.insert(all.end(), s.program.states.begin(), s.program.states.end());
    if (s.window)
      all.push_back({.name = "rows", .keeping = Keeping::counts, .spec = {{1}, Dtype::i64}, .first = zeros({1}, Dtype::i64)});
  }
  return all;
}

/// Returns the name of an input or output as users see it: "in_x" -> "x".
std::string seen(const std::string& name) { return name.substr(name.find('_') + 1); }

// ---- the header -------------------------------------------------------------------------------------------------

std::string head(const FreezeOptions& options, const FileFacts& facts, std::string_view file) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(facts.hash));
  return "/* " + options.name + std::string(file) + ": " + c_comment(facts.what) + "\n   Written by Ferrite " +
         FERRITE_VERSION + ": " + c_comment(options.command) + "\n   Model " + hash + ". Do not edit. */\n";
}

/// Returns the parameters of a function for all inputs and outputs.
struct Ends {
  std::vector<Spec> inputs, outputs;
  Names names;

  std::string parameters(bool shown) const { return inputs_of(shown) + outputs_of(shown); }
  std::string inputs_of(bool shown) const { return listed(inputs, names.inputs, "const ", shown); }
  std::string outputs_of(bool shown) const { return listed(outputs, names.outputs, "", shown); }

 private:
  static std::string listed(const std::vector<Spec>& specs, const std::vector<std::string>& names, const char* before,
                            bool shown) {
    std::string all;
    for (std::size_t i = 0; i < specs.size(); ++i)
      all += std::string(", ") + before + std::string(c_type(specs[i].dtype)) + " *" + (shown ? seen(names[i]) : names[i]);
    return all;
  }
};

Ends ends_of(const std::vector<FrozenStage>& stages, Names names) {
  Ends e{{}, {}, std::move(names)};
  const FrozenProgram &first = stages.front().program, &last = stages.back().program;
  for (const ValueId v : first.inputs) e.inputs.push_back(first.lowered.graph.values[v]);
  for (const ValueId v : last.outputs) e.outputs.push_back(last.lowered.graph.values[v]);
  return e;
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
constexpr std::string_view kStagedFunctions = R"(
/* What a step returns that gives no output: the net strides, or looks ahead. */
#define NF_NOTHING (-1)

/* Prepares an instance and begins a sequence. Call it before anything else. */
void nf_init(nf_self *n);
/* Runs one step. Returns 0 if it gives an output, NF_NOTHING if it gives none, or an error; then no state has changed.
   Inputs and outputs must not overlap. */
int nf_step(nf_self *n$P);
/* Gives the next of the outputs that come after the last input: 0, or NF_NOTHING when there are no more. */
int nf_finish(nf_self *n$O);
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
  FileWriter(const std::vector<FrozenStage>& stages, const FrozenProgram* block, const FreezeOptions& options,
             const FileFacts& facts, bool steps)
      : stages_(stages),
        block_(block),
        options_(options),
        facts_(facts),
        steps_(steps),
        staged_(stages.size() > 1 || stages[0].window),
        all_(states_of(stages)),
        ends_(ends_of(stages, names_of(stages.front().program, stages.back().program, all_))),
        states_(all_, ends_.names.states, most_appended(), has_doubles()) {
    if (staged_) {
      several_.emplace(module_, stages);
    } else {
      run_.emplace(module_, stages[0].program, steps ? "nf_once" : "nf_run");
    }
    if (block) block_run_.emplace(module_, *block, "nf_block");
  }

  FrozenNet write() {
    if (staged_) {
      several_->write(ends_.names.inputs[0], ends_.names.outputs[0], states_, ticks());
      work_ = several_->work();
    } else {
      run_->write(ends_.names.inputs, ends_.names.outputs, states_);
      work_ = run_->work();
    }
    if (block_) {
      block_run_->write(ends_.names.inputs, ends_.names.outputs, states_);
      work_.widen(block_run_->work());
    }
    std::string runs = staged_ ? several_->text(work_.on_stack()) : run_->text(work_.on_stack());
    if (block_) runs += block_run_->text(work_.on_stack());
    FrozenNet net{header(), source(runs)};
    for (std::string* t : {&net.header, &net.source}) {
      *t = replaced(*t, "nf_self", options_.name);
      *t = replaced(*t, "nf_", options_.name + "_");
      *t = replaced(*t, "NF_", upper(options_.name) + "_");
    }
    return net;
  }

 private:
  bool has_doubles() const {
    return std::ranges::any_of(stages_, [](const FrozenStage& s) {
      return std::ranges::any_of(s.program.lowered.graph.values, [](const Spec& v) { return v.dtype == Dtype::f64; });
    });
  }
  std::int64_t most_appended() const {
    std::int64_t most = 1;
    for (const FrozenState& s : all_) most = std::max(most, s.appended);
    if (block_)
      for (const FrozenState& s : block_->states) most = std::max(most, s.appended);
    return most;
  }
  /// Returns the members in which stages with windows count their rows, by stage.
  std::vector<std::string> ticks() const {
    std::vector<std::string> names;
    std::size_t state = 0;
    for (const FrozenStage& s : stages_) {
      state += s.program.states.size();
      names.push_back(s.window ? "n->" + ends_.names.states[state] : "");
      if (s.window) ++state;
    }
    return names;
  }

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
    write_sizes(t, ends_.inputs, ends_.names.inputs, "INPUTS");
    write_sizes(t, ends_.outputs, ends_.names.outputs, "OUTPUTS");
    if (steps_) t.line("#define NF_SAVED_BYTES " + text(states_.saved_bytes()));
    t.append(kErrors);
    t.line("typedef " + std::string(has_doubles() ? "int64_t" : "int32_t") + " nf_mask; /* -1: true, 0: false */");
    t.append("/* One instance. Its members are not for others. */\n");
    t.open("typedef struct nf_self");
    states_.write_members(t);
    if (!work_.on_stack()) work_.write_members(t);
    if (staged_) t.line("int32_t finished;");
    if (states_.size() == 0 && work_.on_stack() && !staged_) t.line("char nothing;");
    t.close(" nf_self;");
    const std::string_view functions = staged_ ? kStagedFunctions : steps_ ? kStepFunctions : kProgramFunctions;
    t.append(replaced(replaced(std::string(functions), "$P", ends_.parameters(true)), "$O", ends_.outputs_of(true)));
    t.append(kCheckFunction);
    t.line("#ifdef __cplusplus");
    t.line("}");
    t.line("#endif");
    t.line("#endif");
    return t.str();
  }
  static void write_sizes(CText& t, const std::vector<Spec>& specs, const std::vector<std::string>& names,
                          const std::string& alone) {
    for (std::size_t i = 0; i < specs.size(); ++i)
      t.line("#define NF_" + (specs.size() == 1 ? alone : upper(seen(names[i]))) + " " + text(specs[i].shape.numel()));
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
    const std::string library =
        module_.calls_library() ? "#include <math.h>\n" : "#if !defined(__GNUC__)\n#include <math.h>\n#endif\n";
    return head(options_, facts_, ".c") + "#include \"nf_self.h\"\n#include <stddef.h>\n" + library +
           (short_rows() ? kShortRows : "") + module_.functions() + "\n/* ---- weights ---- */\n\n" + module_.constants() + "\n/* ---- " +
           (steps_ ? "the step" : "the program") + " ---- */\n\n" + runs + rest.str() + c_end();
  }
  /// Returns whether vectors of 32 bytes suit the net better than those of 64: no row fills two of the latter.
  bool short_rows() const {
    return !block_ && !all_.empty() &&
           std::ranges::all_of(all_, [](const FrozenState& s) { return s.spec.shape.numel() < 32; });
  }
  void write_reset(CText& t) {
    t.open("void nf_reset(nf_self *n)");
    states_.write_reset(t, module_);
    if (staged_) t.line("n->finished = 0;");
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
    const auto pass = [&](const std::vector<Spec>& specs, const std::vector<std::string>& names) {
      for (std::size_t i = 0; i < specs.size(); ++i) {
        given += ", " + names[i];
        rows += ", " + names[i] + " + t * " + text(specs[i].shape.numel());
      }
    };
    pass(ends_.inputs, ends_.names.inputs), pass(ends_.outputs, ends_.names.outputs);
    const std::string parameters = ends_.parameters(false);
    t.line("int nf_step(nf_self *n" + parameters + ") { return " + (staged_ ? "nf_from(n, 0" : "nf_once(n") + given + "); }");
    if (staged_) return t.append(several_->finish());
    t.open("int nf_steps(nf_self *n, int32_t steps" + parameters + ")");
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
    const auto arrays = [&](const std::vector<Spec>& specs, const std::vector<std::string>& names) {
      for (std::size_t i = 0; i < specs.size(); ++i) {
        const std::int64_t elements = std::max<std::int64_t>(specs[i].shape.numel(), 1);
        t.line((elements > 256 ? "static " : "") + std::string(c_type(specs[i].dtype)) + " " + names[i] + "[" +
               text(elements) + "];");
        given += ", " + names[i];
      }
    };
    arrays(ends_.inputs, ends_.names.inputs), arrays(ends_.outputs, ends_.names.outputs);
    t.line("nf_init(n);");
    t.open("for (int s = 0; s < " + text(std::ssize(facts_.check)) + "; ++s)");
    t.line("uint32_t sum = 2166136261U;");
    for (std::size_t i = 0; i < ends_.inputs.size(); ++i) {
      const Dtype d = ends_.inputs[i].dtype;
      t.open("for (int i = 0; i < " + text(ends_.inputs[i].shape.numel()) + "; ++i)");
      t.line("state = state * 1664525U + 1013904223U;");
      t.line(ends_.names.inputs[i] + "[i] = " +
             (is_float(d) ? "(" + std::string(c_type(d)) + ")((int32_t)(state >> 8) - 8388608) / 8388608"
                          : "(" + std::string(c_type(d)) + ")(state >> 31)") +
             ";");
      t.close();
    }
    t.line("const int result = " + std::string(staged_ ? "nf_from(n, 0" : steps_ ? "nf_once(n" : "nf_run(n") + given + ");");
    t.line("if (result > 0) return s + 1;");
    for (const std::string& y : ends_.names.outputs)
      t.line("if (result == 0) sum = nf_sum_of_bits(" + y + ", (ptrdiff_t)sizeof " + y + ", sum);");
    t.line("if (sum != expected[s]) return s + 1;");
    t.close();
    t.line("nf_init(n);");
    t.line("return 0;");
    t.close();
  }

  const std::vector<FrozenStage>& stages_;
  const FrozenProgram* block_;
  const FreezeOptions& options_;
  const FileFacts& facts_;
  bool steps_, staged_;
  std::vector<FrozenState> all_;  ///< the states of all stages
  Ends ends_;
  CModule module_;
  std::optional<RunWriter> run_, block_run_;
  std::optional<StagesWriter> several_;
  CStates states_;
  CWork work_;
};

}  // namespace

FrozenNet write_file(const std::vector<FrozenStage>& stages, const FrozenProgram* block, const FreezeOptions& options,
                     const FileFacts& facts, bool steps) {
  return FileWriter(stages, block, options, facts, steps).write();
}

}  // namespace ferrite::exchange::detail
