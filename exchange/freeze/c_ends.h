#pragma once
/// The inputs, outputs and states of a frozen net, with their names in C.
#include <string>
#include <vector>

#include "ferrite/exchange/freeze/frozen_stages.h"

namespace ferrite::exchange::detail {

/// The names of a net's inputs, outputs and states in C: "in_x", "out_y", "h".
struct Names {
  std::vector<std::string> inputs, outputs, states;
};

/// The inputs and outputs of a net: their types and names.
struct Ends {
  std::vector<Spec> inputs, outputs;
  Names names;

  /// Returns the parameters of a function, ", const float *x, float *y", with the names that users see or with those of
  /// the source.
  std::string parameters(bool shown) const { return inputs_of(shown) + outputs_of(shown); }
  std::string inputs_of(bool shown) const { return listed(inputs, names.inputs, "const ", shown); }
  std::string outputs_of(bool shown) const { return listed(outputs, names.outputs, "", shown); }

 private:
  static std::string listed(const std::vector<Spec>& specs, const std::vector<std::string>& names, const char* before,
                            bool shown);
};

/// Returns the states of all stages; a stage with a window also counts its rows.
std::vector<FrozenState> states_of(const std::vector<FrozenStage>& stages);

/// Returns the ends of a net whose states are `states`.
Ends ends_of(const std::vector<FrozenStage>& stages, const std::vector<FrozenState>& states);

/// Returns the name of an input or output as users see it: "in_x" -> "x".
std::string seen(const std::string& name);

/// Returns a name in capitals.
std::string upper(std::string name);

}  // namespace ferrite::exchange::detail
