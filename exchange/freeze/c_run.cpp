/// Writes the functions of a frozen file.
#include "ferrite/exchange/freeze/c_run.h"

#include <algorithm>

namespace ferrite::exchange::detail {

void RunWriter::write(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                      const CStates& states) {
  const auto add = [this](const std::vector<ValueId>& values, const std::vector<std::string>& names,
                          const std::string& before, std::vector<std::string>& own) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      own.push_back(before + names[i]);
      parameters_ += std::string(", ") + (before == "in_" ? "const " : "") + std::string(c_type(spec(values[i]).dtype)) +
                     " *" + own.back();
    }
  };
  add(p_.inputs, inputs, "in_", inputs_), add(p_.outputs, outputs, "out_", outputs_);
  place_ends(states);
  CText t(1);
  states.write_room(t);
  body_.write(t);
  for (std::size_t k = 0; k < p_.states.size(); ++k) {
    const FrozenState& s = p_.states[k];
    states.write_commit(t, k, s.keeping == Keeping::counts ? "" : body_.at(s.next, 0), s.appended);
  }
  for (std::size_t i = 0; i < p_.outputs.size(); ++i)
    if (const std::string from = body_.at(p_.outputs[i], 0); from != outputs_[i])
      write_copy(t, outputs_[i], from, spec(p_.outputs[i]).shape.numel());
  statements_ = t.str();
}

std::string RunWriter::text(bool on_stack) const {
  CText t;
  t.open((function_ == "nf_run" ? "int " : "static int ") + function_ + "(nf_self *n" + parameters_ + ")");
  body_.work().write_names(t, on_stack);
  t.append(statements_);
  t.line("(void)n;");
  for (const std::string& x : inputs_) t.line("(void)" + x + ";");
  t.line("return 0;");
  t.close();
  return t.str() + "\n";
}

bool RunWriter::is_output(ValueId v) const { return std::ranges::find(p_.outputs, v) != p_.outputs.end(); }

void RunWriter::place_ends(const CStates& states) {
  for (std::size_t i = 0; i < p_.inputs.size(); ++i) body_.place(p_.inputs[i], {inputs_[i], false});
  for (std::size_t k = 0; k < p_.states.size(); ++k) {
    const FrozenState& s = p_.states[k];
    body_.place(s.now, {states.where(k), states.is_padded(k)});
    if (s.keeping == Keeping::line) body_.place(s.next, {states.where(k), false});
  }
  for (std::size_t k = 0; k < p_.states.size(); ++k) {
    const FrozenState& s = p_.states[k];
    if (body_.has_place(s.next) || s.keeping == Keeping::counts) continue;
    if (s.keeping == Keeping::pair) body_.place(s.next, {states.next_place(k), states.is_padded(k)});
    if (s.keeping == Keeping::value && !is_output(s.next) && in_place(s))
      body_.place(s.next, {states.where(k), states.is_padded(k)});
  }
  for (std::size_t i = 0; i < p_.outputs.size(); ++i)
    if (!body_.has_place(p_.outputs[i])) body_.place(p_.outputs[i], {outputs_[i], false});
}

/// Returns whether the next value of a state can be written over the present one: one loop makes it, element by
/// element, nothing reads the present value later, and no step may fail.
bool RunWriter::in_place(const FrozenState& s) const {
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
    if (store && body_.multiplies(step.loop, s.now)) return false;
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

}  // namespace ferrite::exchange::detail
