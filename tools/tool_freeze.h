#pragma once
/// The command `ferrite freeze`: writes nets as C.
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace ferrite::tools {

/// The options of `ferrite freeze`.
struct FreezeChoice {
  std::string output;               ///< the source to write, "net.c"; the header lies beside it
  std::string name;                 ///< beginning of the names in C; empty: the output's name
  std::int64_t batch = 1;           ///< rows of a step
  std::int64_t steps = 0;           ///< a whole program over this many steps; 0: one step of a stream
  std::int64_t block = 32;          ///< steps that run at once where none waits for another; 0: one at a time
  std::string time;                 ///< of an ONNX model: the name of the dimension of time
  std::vector<std::string> states;  ///< of an ONNX model: "input=output", pairs that are a state
  std::vector<std::string> sizes;   ///< of an ONNX model: "name=extent", for dimensions that have names
  bool jacobian = false;            ///< whether to write the step's derivatives, too
  bool casadi = false;              ///< whether to write the step and its derivatives for CasADi, too
};

/// Writes a net, in words or in a file (subject.h), or an ONNX model as C: `output` and the header beside it. With
/// `jacobian`, writes <name>_jacobian.c and its header there, too, in f64; with `casadi`, <name>_step*.c. Throws
/// what reading and freezing throw, and ValueError for an output whose ending is not .c or whose name is no identifier.
void freeze_net(const std::string& net, const FreezeChoice& choice, std::ostream& out);

}  // namespace ferrite::tools
