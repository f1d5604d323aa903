#pragma once
/// The command `ferrite freeze`: writes nets as C.
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace ferrite::tools {

/// The options of `ferrite freeze`.
struct FreezeChoice {
  std::string output;                   ///< the source to write, "net.c"; the header lies beside it
  std::string arduino;                  ///< instead: the folder of a library for Arduino and PlatformIO
  std::string browser;                  ///< instead: the folder of a module for browsers
  std::string name;                     ///< beginning of the names in C; empty: the name of the output or folder
  std::int64_t batch = 1;               ///< rows of a step
  std::int64_t steps = 0;               ///< a whole program over this many steps; 0: one step of a stream
  std::optional<std::int64_t> block{};  ///< steps that run at once where none waits for another; 0: one at a time
  std::string time;                     ///< of an ONNX model: the name of the dimension of time
  std::vector<std::string> states;      ///< of an ONNX model: "input=output", pairs that are a state
  std::vector<std::string> sizes;       ///< of an ONNX model: "name=extent", for dimensions that have names
  bool jacobian = false;                ///< whether to write the step's derivatives beside `output`, too
  bool casadi = false;                  ///< whether to write the step and its derivatives for CasADi, too
};

/// Writes a net, in words or in a file (subject.h), or an ONNX model as C: `output` and the header beside it, or a
/// folder with these and what Arduino or a browser needs (exchange/freeze_folders.h). With
/// `jacobian`, writes <name>_jacobian.c and its header beside `output`, too, in f64; with `casadi`, <name>_step*.c.
/// Throws what reading and freezing throw, and ValueError for an output whose ending is not .c, and unless one of the
/// three is given.
void freeze_net(const std::string& net, const FreezeChoice& choice, std::ostream& out);

}  // namespace ferrite::tools
