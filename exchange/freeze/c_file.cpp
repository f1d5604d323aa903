/// Writes the header and the source of a frozen program.
#include "ferrite/exchange/freeze/c_file.h"

#include <algorithm>
#include <optional>

#include "ferrite/exchange/freeze/c_header.h"
#include "ferrite/exchange/freeze/c_lanes.h"
#include "ferrite/exchange/freeze/c_run.h"
#include "ferrite/exchange/freeze/c_stages.h"
#include "ferrite/exchange/freeze/c_states.h"
#include "ferrite/exchange/freeze/c_unused.h"
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

constexpr const char* kShortRows = R"(#if !defined(NF_VECTOR_BYTES) && defined(__GNUC__) && defined(__AVX512F__)
#define NF_VECTOR_BYTES 32 /* faster than 64 for the short rows of this net */
#endif
)";

/// Writes the function that compares stored steps. `call` begins the call of a step, "nf_once(n".
void write_check(CText& t, const FileFacts& facts, const Ends& ends, const CStates& states, const std::string& call,
                 CModule& module) {
  std::string sums, given;
  for (const std::uint32_t s : facts.check) sums += (sums.empty() ? "" : ", ") + std::to_string(s) + "U";
  t.open("int nf_check(nf_self *n)");
  t.line("static const uint32_t expected[" + text(std::ssize(facts.check)) + "] = {" + sums + "};");
  t.line("uint32_t state = 1;");
  const auto arrays = [&](const std::vector<Spec>& specs, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const std::int64_t elements = std::max<std::int64_t>(specs[i].shape.numel(), 1);
      t.line((elements > 256 ? "static " : "") + std::string(c_type(specs[i].dtype)) + " " + names[i] + "[" +
             text(elements) + "];");
      given += ", " + names[i];
    }
  };
  arrays(ends.inputs, ends.names.inputs), arrays(ends.outputs, ends.names.outputs);
  t.line("nf_init(n);");
  t.open("for (int s = 0; s < " + text(std::ssize(facts.check)) + "; ++s)");
  t.line("uint32_t sum = 2166136261U;");
  for (std::size_t i = 0; i < ends.inputs.size(); ++i) {
    const Dtype d = ends.inputs[i].dtype;
    t.open("for (int i = 0; i < " + text(ends.inputs[i].shape.numel()) + "; ++i)");
    t.line("state = state * 1664525U + 1013904223U;");
    t.line(ends.names.inputs[i] + "[i] = " +
           (is_float(d) ? "(" + std::string(c_type(d)) + ")((int32_t)(state >> 8) - 8388608) / 8388608"
                        : (d == Dtype::boolean ? "-(" : "(") + std::string(c_type(d)) + ")(state >> 31)") +
           ";");
    t.close();
  }
  t.line("const int result = " + call + given + ");");
  t.line("(void)result;");
  for (std::size_t i = 0; i < ends.outputs.size(); ++i) {
    const std::string& y = ends.names.outputs[i];
    const Dtype d = ends.outputs[i].dtype;
    const std::int64_t n = ends.outputs[i].shape.numel();
    if (n == 0) continue;
    if (d == Dtype::boolean) {
      t.open("for (int i = 0; result == 0 && i < " + text(n) + "; ++i)");
      t.line("const unsigned char truth = " + y + "[i] != 0;");
      t.line("sum = nf_sum_of_bits(&truth, 1, sum);");
      t.close();
    } else if (is_float(d)) {
      t.line("if (result == 0) sum = " + module.kernel("check_sum", d) + "(" + y + ", " + text(n) + ", sum);");
    } else {
      t.line("if (result == 0) sum = nf_sum_of_bits(" + y + ", (ptrdiff_t)sizeof " + y + ", sum);");
    }
  }
  if (facts.checks_states) {
    t.open("if (s == " + text(std::ssize(facts.check) - 1) + ")");
    states.write_sum(t, module);
    t.close();
  }
  t.line("if (sum != expected[s]) return s + 1;");
  t.close();
  t.line("nf_init(n);");
  t.line("return 0;");
  t.close();
}

class FileWriter {
 public:
  FileWriter(const std::vector<FrozenStage>& stages, const FrozenProgram* block, const FreezeOptions& options,
             const FileFacts& facts, Interface interface, const FrozenProgram* predict)
      : stages_(stages),
        block_(block),
        predict_(predict),
        options_(options),
        facts_(facts),
        interface_(interface),
        staged_(stages.size() > 1 || stages[0].window),
        all_(states_of(stages)),
        ends_(ends_of(stages, all_)),
        states_(all_, ends_.names.states, most_appended(), has_doubles()) {
    if (block || predict || staged_) module_.share_constants();
    if (staged_) {
      several_.emplace(module_, stages);
    } else {
      run_.emplace(module_, stages[0].program, once());
    }
    if (staged_) interface_ = Interface::stages;
    if (block) block_run_.emplace(module_, *block, "nf_block");
    if (predict) {
      predict_run_.emplace(module_, *predict, "nf_predict");
      predict_ends_ = ends_of({{*predict}}, all_);
    }
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
    if (predict_) {
      predict_run_->write(predict_ends_.names.inputs, predict_ends_.names.outputs, states_);
      work_.widen(predict_run_->work());
    }
    std::string runs = staged_ ? several_->text(work_.on_stack()) : run_->text(work_.on_stack());
    if (block_) runs += block_run_->text(work_.on_stack());
    if (predict_) runs += predict_run_->text(work_.on_stack());
    FrozenNet net{{}, source(runs)};
    net.header =
        header(options_, facts_, interface_, ends_, states_, work_, has_doubles(), predict_ ? &predict_ends_ : nullptr);
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
  bool steps() const { return interface_ == Interface::steps || interface_ == Interface::stages; }
  bool trains() const { return interface_ == Interface::training; }
  /// Returns the name of the function that runs the program once.
  std::string once() const { return steps() ? "nf_once" : trains() ? "nf_train" : "nf_run"; }
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

  // ---- the source -------------------------------------------------------------------------------------------------

  std::string source(const std::string& runs) {
    CText rest;
    if (steps()) write_reset(rest), write_steps(rest);
    if (steps() || trains()) {
      rest.open("void nf_save(const nf_self *n, void *to)");
      states_.write_save(rest);
      rest.close();
      rest.open("int nf_restore(nf_self *n, const void *from)");
      states_.write_restore(rest);
      rest.close();
    }
    write_init(rest);
    write_check(rest, facts_, ends_, states_, staged_ ? "nf_from(n, 0" : once() + "(n", module_);
    const std::string library =
        module_.calls_library() ? "#include <math.h>\n" : "#if !defined(__GNUC__)\n#include <math.h>\n#endif\n";
    return without_unused(head(options_, facts_, ".c") + "#include \"nf_self.h\"\n#include <stddef.h>\n" + library +
                          (short_rows() ? kShortRows : "") + module_.functions() + "\n/* ---- weights ---- */\n\n" +
                          module_.constants() + "\n/* ---- " + (steps() || trains() ? "the step" : "the program") +
                          " ---- */\n\n" + runs + rest.str() + c_end());
  }
  /// Returns whether vectors of 32 bytes suit the net better than those of 64: rows leave much of the latter empty.
  bool short_rows() const {
    if (block_ && block_->lanes) return widest_product(*block_) <= 12;
    return !block_ && !trains() && !all_.empty() &&
           std::ranges::all_of(all_, [](const FrozenState& s) { return s.spec.shape.numel() <= 24; });
  }
  void write_reset(CText& t) {
    t.open("void nf_reset(nf_self *n)");
    states_.write_reset(t, module_);
    if (staged_) t.line("n->finished = 0;");
    t.close();
  }
  /// Writes the function that prepares an instance. Working memory stays as it is: what a vector reads behind the end
  /// of a value is computed with and not used.
  void write_init(CText& t) {
    t.open("void nf_init(nf_self *n)");
    if (trains()) {
      states_.write_reset(t, module_);
    } else {
      t.line(steps() ? "nf_reset(n);" : "(void)n;");
    }
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
    t.line("int nf_step(nf_self *n" + parameters + ") { return " + (staged_ ? "nf_from(n, 0" : "nf_once(n") + given +
           "); }");
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

  const std::vector<FrozenStage>& stages_;
  const FrozenProgram *block_, *predict_;
  const FreezeOptions& options_;
  const FileFacts& facts_;
  Interface interface_;
  bool staged_;
  std::vector<FrozenState> all_;  ///< the states of all stages
  Ends ends_;
  CModule module_;
  std::optional<RunWriter> run_, block_run_, predict_run_;
  Ends predict_ends_;
  std::optional<StagesWriter> several_;
  CStates states_;
  CWork work_;
};

}  // namespace

FrozenNet write_file(const std::vector<FrozenStage>& stages, const FrozenProgram* block, const FreezeOptions& options,
                     const FileFacts& facts, Interface interface, const FrozenProgram* predict) {
  return FileWriter(stages, block, options, facts, interface, predict).write();
}

}  // namespace ferrite::exchange::detail
