/// Writes the functions of a frozen file.
#include "ferrite/exchange/freeze/c_run.h"

#include <algorithm>

namespace ferrite::exchange::detail {
namespace {

bool is_public(const std::string& function) {
  return function == "nf_run" || function == "nf_train" || function == "nf_predict";
}

}  // namespace

void RunWriter::write(std::vector<std::string> inputs, std::vector<std::string> outputs, const CStates& states,
                      std::size_t first, bool apart) {
  inputs_ = std::move(inputs), outputs_ = std::move(outputs);
  place_ends(states, first);
  CText appends(1), rest(1), commits(1);
  states.write_room(appends, first, p_.states.size());
  body_.write(apart ? appends : rest, rest);
  for (std::size_t i = 0; i < p_.outputs.size(); ++i)
    if (const std::string from = body_.at(p_.outputs[i], 0); from != outputs_[i])
      write_copy(rest, outputs_[i], from, spec(p_.outputs[i]).shape.numel());
  for (std::size_t k = 0; k < p_.states.size(); ++k) {
    const FrozenState& s = p_.states[k];
    states.write_commit(commits, first + k, s.keeping == Keeping::counts ? "" : body_.at(s.next, 0), s.appended,
                        body_.module());
  }
  appends_ = appends.str(), statements_ = rest.str(), commits_ = commits.str();
}

std::string RunWriter::text(bool on_stack) const {
  CText t;
  std::string parameters;
  const auto add = [&](const std::vector<ValueId>& values, const std::vector<std::string>& names, const char* before) {
    for (std::size_t i = 0; i < values.size(); ++i)
      parameters += std::string(", ") + before + std::string(c_type(spec(values[i]).dtype)) + " *" + names[i];
  };
  add(p_.inputs, inputs_, "const "), add(p_.outputs, outputs_, "");
  t.open((is_public(function_) ? "int " : "static int ") + function_ + "(nf_self *n" + parameters + ")");
  body_.work().write_names(t, on_stack);
  t.append(appends_ + statements_ + commits_);
  t.line("(void)n;");
  for (const std::vector<std::string>* names : {&inputs_, &outputs_})
    for (const std::string& x : *names) t.line("(void)" + x + ";");
  t.line("return 0;");
  t.close();
  return t.str() + "\n";
}

bool RunWriter::is_output(ValueId v) const { return std::ranges::find(p_.outputs, v) != p_.outputs.end(); }

void RunWriter::place_ends(const CStates& states, std::size_t first) {
  for (std::size_t i = 0; i < p_.inputs.size(); ++i) body_.place(p_.inputs[i], {inputs_[i]});
  for (const Graph::Constant& c : p_.lowered.graph.constants)
    if (is_output(c.value) || std::ranges::any_of(p_.states, [&](const FrozenState& s) { return s.next == c.value; }))
      body_.place(c.value, {body_.module().constant(c.tensor, "constant")});
  for (std::size_t k = 0; k < p_.states.size(); ++k) {
    const FrozenState& s = p_.states[k];
    const CPlace here{states.where(first + k), states.room(first + k)};
    body_.place(s.now, here);
    if (s.keeping == Keeping::line) body_.place(s.next, here);
  }
  for (std::size_t k = 0; k < p_.states.size(); ++k) {
    const FrozenState& s = p_.states[k];
    if (body_.has_place(s.next) || s.keeping == Keeping::counts) continue;
    const std::int64_t room = states.room(first + k);
    if (s.keeping == Keeping::pair) body_.place(s.next, {states.next_place(first + k), room});
    if (s.keeping == Keeping::value && !is_output(s.next) && in_place(s))
      body_.place(s.next, {states.where(first + k), room});
  }
  for (std::size_t i = 0; i < p_.outputs.size(); ++i)
    if (!body_.has_place(p_.outputs[i])) body_.place(p_.outputs[i], {outputs_[i]});
}

namespace {

/// Returns whether an operation may end a step with an error.
bool may_fail(const Primitive& op) {
  constexpr std::string_view names[] = {"checked",      "gather",        "index_add", "index_select",
                                        "plane_gather", "plane_scatter", "scatter",   "scatter_add"};
  return std::ranges::find(names, op.name) != std::end(names);
}

}  // namespace

/// Returns whether the next value of a state can be written over the present one: one loop makes it, element by
/// element, nothing reads the present value later, and no step may fail.
bool RunWriter::in_place(const FrozenState& s) const {
  bool written = false;
  if (is_output(s.now)) return false;
  for (const LoweredStep& step : p_.lowered.steps) {
    if (!step.is_loop) {
      if (may_fail(*step.node->op)) return false;
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
