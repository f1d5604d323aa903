#pragma once
/// One function of a frozen file: a step, several steps at once, or a whole program.
#include <string>
#include <vector>

#include "ferrite/exchange/freeze/c_body.h"
#include "ferrite/exchange/freeze/c_states.h"

namespace ferrite::exchange::detail {

/// Writes the function that runs a program once and commits its states.
class RunWriter {
 public:
  RunWriter(CModule& module, const FrozenProgram& program, std::string function = {})
      : p_(program), function_(std::move(function)), body_(module, program) {}

  /// Writes the statements, with these names of inputs and outputs; the program's first state is the `first`-th of all.
  /// With `apart`, appending frames is a part of its own.
  void write(std::vector<std::string> inputs, std::vector<std::string> outputs, const CStates& states,
             std::size_t first = 0, bool apart = false);
  /// Returns the whole function, with its working memory on the stack or in the struct.
  std::string text(bool on_stack) const;
  /// Return the parts of the function: what appends rows to lines and reads nothing else, what computes the outputs,
  /// and what makes the next states the present ones.
  const std::string& appends() const { return appends_; }
  const std::string& statements() const { return statements_; }
  const std::string& commits() const { return commits_; }
  const CWork& work() const { return body_.work(); }
  /// Leaves memory to others, which keep next states there (CBody::begin_after).
  void begin_after(const CWork& others) { body_.begin_after(others); }

 private:
  const Spec& spec(ValueId v) const { return p_.lowered.graph.values[v]; }
  void place_ends(const CStates& states, std::size_t first);
  bool is_output(ValueId v) const;
  bool in_place(const FrozenState& s) const;

  const FrozenProgram& p_;
  std::string function_, appends_, statements_, commits_;
  std::vector<std::string> inputs_, outputs_;
  CBody body_;
};

}  // namespace ferrite::exchange::detail
