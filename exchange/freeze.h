#pragma once
/// Writing a trained net as one C source, for programs that link no library.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/exchange/export_error.h"
#include "ferrite/nn/module.h"
#include "ferrite/nn/step.h"

namespace ferrite::exchange {

/// Options of `freeze`.
struct FreezeOptions {
  /// The name of the struct and the beginning of the names of all functions, a lower-case C identifier: "net" gives
  /// `net`, `net_step` and `NET_INPUTS`.
  std::string name = "net";
  /// The command or call that made the file, for its first lines.
  std::string command = "exchange::freeze";
};

/// A net as C: a header with its interface, and the source that includes it. Both are C99 and also C++.
struct FrozenNet {
  std::string header;  ///< the text of `<name>.h`
  std::string source;  ///< the text of `<name>.c`
};

/// Writes the stream of a causal layer or network for `rows` as C. The step has the bits of `Layer::stream`. ...
FrozenNet freeze(const nn::Layer& layer, const nn::StepRows& rows, const FreezeOptions& options = {});

/// Writes a function of tensors of fixed shapes as C: a whole program, such as a net on sequences of fixed batch and
/// length, or a gradient.
FrozenNet freeze(const std::function<Tensors(const Tensors&)>& function, std::span<const Spec> inputs,
                 const FreezeOptions& options = {});

}  // namespace ferrite::exchange
