#pragma once
/// What the folders of frozen nets share: the names in their texts, and what they must know of a net.
#include <cstdint>
#include <string>
#include <string_view>

#include "ferrite/exchange/freeze.h"

namespace ferrite::exchange::detail {

/// The numbers that a step of a frozen net reads and writes.
struct StepPorts {
  std::int64_t inputs = 0, outputs = 0;
  bool has_steps = false;  ///< whether it has the function `<name>_steps`: a net that strides or looks ahead has not
};

/// Reads the ports from the header of a net that was frozen with this name. Throws ValueError unless the net is the
/// step of a stream with one input and one output of floats.
StepPorts step_ports(const FrozenNet& net, const std::string& name);

/// Returns a text with the name of a net for "@name", and in capitals for "@NAME".
std::string named(std::string_view text, const std::string& name);

}  // namespace ferrite::exchange::detail
