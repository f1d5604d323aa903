#pragma once
/// Writing a trained net as one C source, for programs that link no library.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/program_stream.h"
#include "ferrite/nn/module.h"
#include "ferrite/nn/step.h"

namespace ferrite::exchange {

/// Options of `freeze`, with the names and forms of the C code that it writes.
struct FreezeOptions {
  /// The name of the struct and the beginning of the names of all functions, a lower-case C identifier: "net" gives
  /// `net`, `net_step` and `NET_INPUTS`.
  std::string name = "net";
  /// The command or call that made the file, for its first lines.
  std::string command = "exchange::freeze";
  /// A description of the model, for the first line; empty: the kind of the layer and its number of parameters.
  std::string model{};
  /// Number of steps that `_steps` runs at once where no step waits for the one before, as in convolutions; 0: one at a
  /// time, which takes less code and memory.
  std::int64_t block = 32;
  /// Names of the inputs and outputs of a program; empty: x0, x1, ..., y0, y1, ...
  std::vector<std::string> inputs{}, outputs{};
};

/// A net as C: a header with its interface, and the source that includes it as "<name>.h". Both are C99 and also C++.
struct FrozenNet {
  std::string header;  ///< the text of `<name>.h`
  std::string source;  ///< the text of `<name>.c`
};

/// Writes the step of a causal layer or network as C, for rows of the given batch, width and dtype. Compiled for a
/// machine that rounds multiply-adds once, it has the bits of `Layer::stream` at AVX2 and AVX-512. The layer's present
/// weights become constants; it is written as it evaluates. The file has `<name>_init`, `_step`, `_steps`, `_reset`,
/// `_save`, `_restore` and `_check`; it allocates nothing.
///
///   const exchange::FrozenNet c = exchange::freeze(net, {.batch = 1, .width = 12}, {.name = "detector"});
///   std::ofstream("detector.h") << c.header;
///   std::ofstream("detector.c") << c.source;
///
/// Throws ExportError that names the layer and the operation which have no form in C, ValueError for a layer that does
/// not stream and for a name that is no identifier.
FrozenNet freeze(const nn::Layer& layer, const nn::StepRows& rows, const FreezeOptions& options = {});

/// Writes a function of tensors of fixed shapes as C, `<name>_run`: a net on sequences of fixed batch and length, a
/// gradient. What it reads of variables becomes constants. Throws as above, and what tracing throws.
FrozenNet freeze(const std::function<Tensors(const Tensors&)>& function, std::span<const Spec> inputs,
                 const FreezeOptions& options = {});

/// Writes one step of a program over time as C (exchange/program_stream.h), with the states that are found in it and
/// those that `stream` names; these are not among the inputs and outputs of `<name>_step`. Its bits are those of
/// ProgramStream, with which it is compared before it is written, if `stream.verify` is set.
FrozenNet freeze(const ProgramStream::Program& program, std::span<const ProgramInput> inputs,
                 const ProgramStreamOptions& stream, const FreezeOptions& options = {});

}  // namespace ferrite::exchange
