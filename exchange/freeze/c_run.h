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
  RunWriter(CModule& module, const FrozenProgram& program, std::string function)
      : p_(program), function_(std::move(function)), body_(module, program) {}

  /// Writes the statements, with these names of parameters.
  void write(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, const CStates& states);
  /// Returns the function, with its working memory on the stack or in the struct.
  std::string text(bool on_stack) const;
  const CWork& work() const { return body_.work(); }

 private:
  const Spec& spec(ValueId v) const { return p_.lowered.graph.values[v]; }
  void place_ends(const CStates& states);
  bool is_output(ValueId v) const;
  bool in_place(const FrozenState& s) const;

  const FrozenProgram& p_;
  std::string function_, parameters_, statements_;
  std::vector<std::string> inputs_, outputs_;
  CBody body_;
};

}  // namespace ferrite::exchange::detail
