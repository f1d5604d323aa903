/// Writes the header and the source of a frozen program.
#include "ferrite/exchange/freeze/c_file.h"

#include <algorithm>
#include <set>

#include "ferrite/exchange/freeze/c_body.h"
#include "ferrite/exchange/freeze/c_text.h"
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

/// Bytes of working memory up to which it lies on the stack.
constexpr std::int64_t kStackBytes = 8 << 10;
constexpr std::int64_t kFewFrames = 8;

class FileWriter {
 public:
  FileWriter(const FrozenProgram& p, const FreezeOptions& options, const FileFacts& facts, bool steps)
      : p_(p), options_(options), facts_(facts), steps_(steps), body_(module_, p.lowered) {
    CNames names;
    for (const std::string& x : p.input_names) inputs_.push_back(names.claim(x));
    for (const std::string& y : p.output_names) outputs_.push_back(names.claim(y));
    for (std::vector<std::string>* list : {&inputs_, &outputs_})
      for (std::string& name : *list) name = (list == &inputs_ ? "in_" : "out_") + name;
    for (const FrozenState& s : p.states) states_.push_back(names.claim(s.name));
  }

  FrozenNet write() {
    place_ends();
    CText body(1);
    body_.write(body);
    on_stack_ = body_.work().bytes() <= kStackBytes;
    FrozenNet net{header(), source(body.str())};
    for (std::string* t : {&net.header, &net.source}) {
      *t = replaced(*t, "nf_self", options_.name);
      *t = replaced(*t, "nf_", options_.name + "_");
      *t = replaced(*t, "NF_", upper(options_.name) + "_");
    }
    return net;
  }

 private:
  const Spec& spec(ValueId v) const { return p_.lowered.graph.values[v]; }

  // ---- places -----------------------------------------------------------------------------------------------

  std::int64_t capacity(const FrozenState& s) const {
    return s.spec.shape[0] + s.appended + std::max(s.spec.shape[0], kFewFrames * s.appended);
  }
  std::string where(std::size_t k) const {
    const FrozenState& s = p_.states[k];
    const std::string member = "n->" + states_[k];
    return s.keeping == Keeping::line ? member + " + n->" + states_[k] + "_at * " + text(s.frame) : member;
  }
  void place_ends() {
    for (std::size_t i = 0; i < p_.inputs.size(); ++i) body_.place(p_.inputs[i], {inputs_[i], false});
    for (std::size_t k = 0; k < p_.states.size(); ++k) {
      const FrozenState& s = p_.states[k];
      body_.place(s.now, {where(k), false});
      if (s.keeping == Keeping::line) body_.place(s.next, {where(k), false});
    }
    for (std::size_t k = 0; k < p_.states.size(); ++k)
      if (p_.states[k].keeping == Keeping::value && !is_output(p_.states[k].next) && !body_.has_place(p_.states[k].next) &&
          in_place(p_.states[k]))
        body_.place(p_.states[k].next, {where(k), false});
    for (std::size_t i = 0; i < p_.outputs.size(); ++i)
      if (!body_.has_place(p_.outputs[i])) body_.place(p_.outputs[i], {outputs_[i], false});
  }
  bool is_output(ValueId v) const { return std::ranges::find(p_.outputs, v) != p_.outputs.end(); }

  /// Returns whether the next value of a state can be written over the present one: one loop makes it, element by
  /// element, nothing reads the present value later, and no step may fail.
  bool in_place(const FrozenState& s) const {
    bool written = false;
    for (const LoweredStep& step : p_.lowered.steps) {
      if (!step.is_loop) {
        if (step.node->op->name == "index_select" || step.node->op->name == "checked") return false;
        for (const LoweredWindow& w : step.in)
          if (w.value == s.now && written) return false;
        for (const LoweredWindow& w : step.out)
          if (w.value == s.next) return false;
        continue;
      }
      const LoweredAccess* store = nullptr;
      int stores = 0;
      for (const LoweredInstruction& i : step.loop.instructions) {
        const LoweredAccess* a = i.access < step.loop.accesses.size() ? &step.loop.accesses[i.access] : nullptr;
        if (i.step == LoweredInstruction::Step::store && a->value == s.next) store = a, ++stores;
        if (i.step == LoweredInstruction::Step::across && a->value == s.next) return false;
      }
      if (store && (written || stores > 1 || step.loop.reduced || step.loop.across != LoweredLoop::Across::none))
        return false;
      for (const LoweredInstruction& i : step.loop.instructions) {
        if (i.step != LoweredInstruction::Step::load) continue;
        const LoweredAccess& a = step.loop.accesses[i.access];
        if (a.value != s.now) continue;
        if (written) return false;
        if (store && (a.offset != store->offset || !(a.strides == store->strides) || !a.whole)) return false;
      }
      written = written || store;
    }
    return written;
  }

  // ---- the header ---------------------------------------------------------------------------------------------

  std::string head(std::string_view file) const {
    std::string t = "/* " + options_.name + std::string(file) + ": " + c_comment(facts_.what) + "\n";
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(facts_.hash));
    t += "   Written by Ferrite " FERRITE_VERSION ": " + c_comment(options_.command) + "\n   Model " + hash +
         ". Do not edit. */\n";
    return t;
  }
  std::string parameter(Dtype t, const std::string& name, bool constant) const {
    return (constant ? "const " : "") + std::string(t == Dtype::boolean ? "int32_t" : c_type(t)) + " *" + name;
  }
  std::string parameters() const {
    std::string all;
    for (std::size_t i = 0; i < inputs_.size(); ++i) all += ", " + parameter(spec(p_.inputs[i]).dtype, inputs_[i], true);
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      all += ", " + parameter(spec(p_.outputs[i]).dtype, outputs_[i], false);
    return all;
  }
  std::int64_t saved_bytes() const {
    std::int64_t n = 0;
    for (const FrozenState& s : p_.states) n += s.spec.shape.numel() * memory_size(s.spec.dtype);
    return n;
  }
  std::int64_t memory_size(Dtype t) const {
    return t == Dtype::boolean ? (module_.has_doubles() ? 8 : 4) : size_of(t);
  }

  std::string members() const {
    CText t(1);
    for (std::size_t k = 0; k < p_.states.size(); ++k) {
      const FrozenState& s = p_.states[k];
      const std::int64_t n = s.keeping == Keeping::line ? capacity(s) * s.frame : s.spec.shape.numel();
      std::string type(c_type(s.spec.dtype));
      if (s.spec.dtype == Dtype::boolean) type = module_.has_doubles() ? "int64_t" : "int32_t";
      t.line(type + " " + states_[k] + "[" + text(std::max<std::int64_t>(n, 1)) + "];");
      if (s.keeping == Keeping::line) t.line("int32_t " + states_[k] + "_at;");
    }
    if (!on_stack_)
      for (const auto& [dtype, n] : body_.work().elements)
        if (n > 0) t.line(work_type(dtype) + " " + CWork::name(dtype) + "[" + text(n + 16) + "];");
    if (t.str().empty()) t.line("char nothing;");
    return t.str();
  }
  std::string work_type(Dtype t) const {
    return t == Dtype::boolean ? (module_.has_doubles() ? "int64_t" : "int32_t") : std::string(c_type(t));
  }

  std::string header() const {
    CText t;
    const std::string guard = "NF_H";
    t.append(head(".h"));
    t.line("#ifndef " + guard);
    t.line("#define " + guard);
    t.line("#include <stdint.h>");
    t.line("#ifdef __cplusplus");
    t.line("extern \"C\" {");
    t.line("#endif");
    t.append("\n/* The numbers that a step reads and writes, and the bytes that nf_save writes. */\n");
    const auto sizes = [&](const std::vector<ValueId>& values, const std::vector<std::string>& names,
                           const std::string& alone) {
      for (std::size_t i = 0; i < values.size(); ++i)
        t.line("#define NF_" + (values.size() == 1 ? alone : upper(names[i].substr(names[i].find('_') + 1))) + " " + text(spec(values[i]).shape.numel()));
    };
    sizes(p_.inputs, inputs_, "INPUTS");
    sizes(p_.outputs, outputs_, "OUTPUTS");
    t.line("#define NF_SAVED_BYTES " + text(saved_bytes()));
    t.append("\n/* What functions return besides 0: an index outside its table, full states, states that no step leaves. */\n");
    t.line("#define NF_BAD_INDEX 1");
    t.line("#define NF_FULL 2");
    t.line("#define NF_BAD_STATE 3");
    t.append("\n/* One instance. Its members are not for others. */\n");
    t.line("typedef struct nf_self {");
    t.append(members());
    t.line("} nf_self;");
    functions_of(t);
    t.line("#ifdef __cplusplus");
    t.line("}");
    t.line("#endif");
    t.line("#endif");
    return t.str();
  }
  void functions_of(CText& t) const {
    t.append("\n/* Prepares an instance and begins a sequence. Call it before anything else. */\n");
    t.line("void nf_init(nf_self *n);");
    if (steps_) {
      t.append("/* Runs one step. Returns 0, or an error; then no state has changed. */\n");
      t.line("int nf_step(nf_self *n" + parameters() + ");");
      t.append("/* Runs `steps` steps on rows of inputs and outputs. Returns the error of the first step that fails. */\n");
      t.line("int nf_steps(nf_self *n, int32_t steps" + parameters() + ");");
      t.append("/* Begins a new sequence. */\n");
      t.line("void nf_reset(nf_self *n);");
      t.append("/* Writes the states to NF_SAVED_BYTES bytes, and reads them back. */\n");
      t.line("void nf_save(const nf_self *n, void *to);");
      t.line("int nf_restore(nf_self *n, const void *from);");
    } else {
      t.append("/* Runs the program. Returns 0, or an error. */\n");
      t.line("int nf_run(nf_self *n" + parameters() + ");");
    }
    t.append("/* Compares stored runs with this build, bit by bit: 0 if they agree, else the number of the first that\n"
             "   differs. Compilers change bits if they are told to (-ffast-math). Begins a new sequence. */\n");
    t.line("int nf_check(nf_self *n);");
  }

  // ---- the source ---------------------------------------------------------------------------------------------

  std::string source(const std::string& body) {
    CText run;
    write_run(run, body);
    CText rest;
    if (steps_) {
      write_reset(rest), write_steps(rest), write_save(rest), write_restore(rest);
    } else {
      rest.open("void nf_init(nf_self *n)");
      write_zero_work(rest);
      rest.line("(void)n;");
      rest.close();
    }
    write_check(rest);
    std::string t = head(".c");
    t += "#include \"nf_self.h\"\n#include <stddef.h>\n" + std::string(module_.calls_library() ? "#include <math.h>\n" : "");
    t += prelude();
    t += module_.functions();
    t += "\n/* ---- weights ---- */\n\n" + module_.constants();
    t += "\n/* ---- " + std::string(steps_ ? "the step" : "the program") + " ---- */\n\n" + run.str() + rest.str();
    return t;
  }
  std::string prelude() const {
    std::string t = module_.has_doubles() ? "typedef int64_t nf_mask;\n" : "typedef int32_t nf_mask;\n";
    return t;
  }
  void write_zero_work(CText& t) const {
    if (on_stack_) return;
    for (const auto& [dtype, n] : body_.work().elements)
      if (n > 0) t.line("for (ptrdiff_t i = 0; i < " + text(n + 16) + "; ++i) n->" + CWork::name(dtype) + "[i] = 0;");
  }

  void write_run(CText& t, const std::string& body) {
    t.open(steps_ ? "static int nf_once(nf_self *n" + parameters() + ")" : "int nf_run(nf_self *n" + parameters() + ")");
    for (const auto& [dtype, n] : body_.work().elements) {
      if (n == 0) continue;
      if (on_stack_)
        t.line(std::string(c_type(dtype)) + " " + CWork::name(dtype) + "[" + text(n + 16) + "] NF_ALIGNED;");
      else
        t.line(std::string(c_type(dtype)) + " *const " + CWork::name(dtype) + " = n->" + CWork::name(dtype) + ";");
    }
    for (std::size_t k = 0; k < p_.states.size(); ++k)
      if (p_.states[k].keeping == Keeping::counts)
        for (const FrozenState& s : p_.states)
          if (s.keeping == Keeping::store) {
            t.line("for (int b = 0; b < " + text(s.spec.shape[0]) + "; ++b) if (n->" + states_[k] + "[b] >= " +
                   text(s.spec.shape[1]) + ") return NF_FULL;");
            break;
          }
    t.append(body);
    for (std::size_t k = 0; k < p_.states.size(); ++k) write_commit(t, k);
    for (std::size_t i = 0; i < p_.outputs.size(); ++i) {
      const std::string from = body_.at(p_.outputs[i], 0);
      if (from != outputs_[i]) copy(t, outputs_[i], from, spec(p_.outputs[i]).shape.numel());
    }
    t.line("(void)n;");
    t.line("return 0;");
    t.close();
  }
  static void copy(CText& t, const std::string& to, const std::string& from, std::int64_t n) {
    t.line("for (ptrdiff_t i = 0; i < " + text(n) + "; ++i) (" + to + ")[i] = (" + from + ")[i];");
  }
  void write_commit(CText& t, std::size_t k) const {
    const FrozenState& s = p_.states[k];
    const std::string at = "n->" + states_[k] + "_at";
    switch (s.keeping) {
      case Keeping::value:
        if (body_.at(s.next, 0) != where(k)) copy(t, where(k), body_.at(s.next, 0), s.spec.shape.numel());
        break;
      case Keeping::line:
        t.line(at + " += " + text(s.appended) + ";");
        t.open("if (" + at + " + " + text(s.spec.shape[0] + s.appended) + " > " + text(capacity(s)) + ")");
        copy(t, "n->" + states_[k], where(k), s.spec.shape[0] * s.frame);
        t.line(at + " = 0;");
        t.close();
        break;
      case Keeping::store: {
        std::string counts;
        for (std::size_t c = 0; c < p_.states.size(); ++c)
          if (p_.states[c].keeping == Keeping::counts) counts = "n->" + states_[c] + "[b]";
        t.line("for (ptrdiff_t b = 0; b < " + text(s.spec.shape[0]) + "; ++b)");
        t.line("  for (ptrdiff_t i = 0; i < " + text(s.frame) + "; ++i)");
        t.line("    n->" + states_[k] + "[(b * " + text(s.spec.shape[1]) + " + (ptrdiff_t)" + counts + ") * " + text(s.frame) +
               " + i] = (" + body_.at(s.next, 0) + ")[b * " + text(s.frame) + " + i];");
        break;
      }
      case Keeping::counts:
        t.line("for (ptrdiff_t b = 0; b < " + text(s.spec.shape[0]) + "; ++b) ++n->" + states_[k] + "[b];");
        break;
    }
  }

  void write_reset(CText& t) {
    t.open("void nf_reset(nf_self *n)");
    for (std::size_t k = 0; k < p_.states.size(); ++k) {
      const FrozenState& s = p_.states[k];
      const std::int64_t n = s.spec.shape.numel();
      const std::byte* raw = s.first.raw();
      const bool zero = std::all_of(raw, raw + n * size_of(s.spec.dtype), [](std::byte b) { return b == std::byte{0}; });
      if (zero) {
        t.line("for (ptrdiff_t i = 0; i < " + text(n) + "; ++i) n->" + states_[k] + "[i] = 0;");
      } else {
        copy(t, "n->" + states_[k], module_.constant(s.first, "first value of " + s.name), n);
      }
      if (s.keeping == Keeping::line) t.line("n->" + states_[k] + "_at = 0;");
    }
    t.line("(void)n;");
    t.close();
    t.open("void nf_init(nf_self *n)");
    write_zero_work(t);
    t.line("nf_reset(n);");
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
    pass(p_.inputs, inputs_), pass(p_.outputs, outputs_);
    t.line("int nf_step(nf_self *n" + parameters() + ") { return nf_once(n" + given + "); }");
    t.open("int nf_steps(nf_self *n, int32_t steps" + parameters() + ")");
    t.open("for (ptrdiff_t t = 0; t < steps; ++t)");
    t.line("const int error = nf_once(n" + rows + ");");
    t.line("if (error != 0) return error;");
    t.close();
    t.line("return 0;");
    t.close();
  }
  void write_save(CText& t) const {
    t.open("void nf_save(const nf_self *n, void *to)");
    t.line("unsigned char *at = (unsigned char *)to;");
    each_saved(t, "nf_bytes(at, ", ", ");
    t.line("(void)n; (void)at;");
    t.close();
  }
  /// Writes copies of all states.
  void each_saved(CText& t, const std::string&, const std::string&) const {
    for (std::size_t k = 0; k < p_.states.size(); ++k) {
      const std::string bytes = text(p_.states[k].spec.shape.numel() * memory_size(p_.states[k].spec.dtype));
      t.line("at = nf_bytes(at, " + where(k) + ", " + bytes + ");");
    }
  }
  void write_restore(CText& t) const {
    t.open("int nf_restore(nf_self *n, const void *from)");
    t.line("const unsigned char *at = (const unsigned char *)from;");
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < p_.states.size(); ++k) {
      const FrozenState& s = p_.states[k];
      if (s.keeping == Keeping::counts) {
        t.line("int64_t counts[" + text(s.spec.shape[0]) + "];");
        t.line("nf_bytes(counts, at + " + text(offset) + ", " + text(s.spec.shape[0] * 8) + ");");
        for (const FrozenState& store : p_.states)
          if (store.keeping == Keeping::store) {
            t.line("for (int b = 0; b < " + text(s.spec.shape[0]) + "; ++b) if (counts[b] < 0 || counts[b] > " +
                   text(store.spec.shape[1]) + ") return NF_BAD_STATE;");
            break;
          }
      }
      offset += s.spec.shape.numel() * memory_size(s.spec.dtype);
    }
    for (std::size_t k = 0; k < p_.states.size(); ++k) {
      const std::string bytes = text(p_.states[k].spec.shape.numel() * memory_size(p_.states[k].spec.dtype));
      if (p_.states[k].keeping == Keeping::line) t.line("n->" + states_[k] + "_at = 0;");
      t.line("nf_bytes(n->" + states_[k] + ", at, " + bytes + "); at += " + bytes + ";");
    }
    t.line("(void)n; (void)at;");
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
        t.line((elements > 256 ? "static " : "") + work_type(spec(values[i]).dtype) + " " + names[i] + "[" +
               text(elements) + "];");
        given += ", " + names[i];
      }
    };
    arrays(p_.inputs, inputs_), arrays(p_.outputs, outputs_);
    t.line("nf_init(n);");
    t.open("for (int s = 0; s < " + text(std::ssize(facts_.check)) + "; ++s)");
    t.line("uint32_t sum = 2166136261U;");
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Dtype d = spec(p_.inputs[i]).dtype;
      t.open("for (int i = 0; i < " + text(spec(p_.inputs[i]).shape.numel()) + "; ++i)");
      t.line("state = state * 1664525U + 1013904223U;");
      t.line(inputs_[i] + "[i] = " +
             (is_float(d) ? "(" + std::string(c_type(d)) + ")((int32_t)(state >> 8) - 8388608) / 8388608"
                          : "(" + work_type(d) + ")(state >> 31)") +
             ";");
      t.close();
    }
    t.line("if (" + std::string(steps_ ? "nf_once" : "nf_run") + "(n" + given + ") != 0) return s + 1;");
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      t.line("sum = nf_sum_of_bits(" + outputs_[i] + ", (ptrdiff_t)sizeof " + outputs_[i] + ", sum);");
    t.line("if (sum != expected[s]) return s + 1;");
    t.close();
    t.line("nf_init(n);");
    t.line("return 0;");
    t.close();
  }

  const FrozenProgram& p_;
  const FreezeOptions& options_;
  const FileFacts& facts_;
  bool steps_, on_stack_ = true;
  CModule module_;
  CBody body_;
  std::vector<std::string> inputs_, outputs_, states_;
};

}  // namespace

FrozenNet write_file(const FrozenProgram& program, const FreezeOptions& options, const FileFacts& facts, bool steps) {
  return FileWriter(program, options, facts, steps).write();
}

}  // namespace ferrite::exchange::detail
