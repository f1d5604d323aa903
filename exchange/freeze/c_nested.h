#pragma once
/// Programs that run within a step of another one: stages of scans, operations as other operations define them.
#include <string>
#include <vector>

#include "ferrite/exchange/freeze/c_body.h"

namespace ferrite::exchange::detail {

/// Rewrites a graph for C: composites, and operations without a form in C, become the operations that they are made of;
/// recurrent layers become scans. The bits stay the same. Throws ExportError if a value is read that nothing computes
/// then.
void expand_for_c(Graph& g);

/// A program inside another one.
class CNested {
 public:
  /// Prepares a graph. `outer` is the program in whose step it runs.
  CNested(CBody& outer, Graph graph);

  std::size_t results() const { return program_.lowered.graph.outputs.size(); }
  /// Says where an input lies.
  void input(std::size_t i, const std::string& at) { body_.place(program_.lowered.graph.inputs[i], {at}); }
  /// Says where a result goes. A result may go to several places.
  void output(std::size_t i, const std::string& at);
  /// Returns whether a result is an input of the program.
  bool is_input(std::size_t result) const;
  /// Returns whether a result is a constant or has a place already.
  bool has_place(std::size_t result) const;
  /// Writes the steps, and copies of results that lie elsewhere.
  void write(CText& to);
  /// Returns where a result lies after the steps.
  std::string result(std::size_t i) const;

 private:
  struct Copy {
    std::size_t result;
    std::string to;
  };
  FrozenProgram program_;
  CBody body_;
  std::vector<Copy> copies_;
};

}  // namespace ferrite::exchange::detail
