#pragma once
/// Puts a frozen program into a header and a source.
#include <cstdint>
#include <vector>

#include "ferrite/exchange/freeze.h"
#include "ferrite/exchange/freeze/frozen_program.h"
#include "ferrite/exchange/freeze/frozen_stages.h"

namespace ferrite::exchange::detail {

/// What the first lines of a file and its check need besides the program.
struct FileFacts {
  std::string what;                  ///< the model in a few words, "sequence of 3 layers, 1,234 parameters"
  std::uint64_t hash = 0;            ///< of the program and its weights
  std::vector<std::uint32_t> check;  ///< the sums of the outputs of the stored steps (check_sum)
  bool checks_states = false;        ///< whether the last sum also covers the states after the last step
};

/// The functions that a frozen net has.
enum class Interface : std::uint8_t {
  steps,     ///< a stream that gives an output with each input
  stages,    ///< a stream that does not
  program,   ///< a whole program
  training,  ///< a step of training
};

/// The number of stored steps.
inline constexpr int kCheckSteps = 8;
/// The inputs of the stored steps: numbers of a linear congruential generator, which C computes alike.
class CheckInputs {
 public:
  /// Returns the next number from -1 to 1, exact in f32; of integers 0 or 1.
  double next(bool integer);

 private:
  std::uint32_t state_ = 1;
};
/// Returns a sum of the bits of n bytes (FNV-1a of 32 bits), continued from `sum`.
std::uint32_t check_sum(const void* bytes, std::size_t n, std::uint32_t sum = 2166136261U);

/// Writes the files. `block` is the program of several steps at once, or null. Unless the interface is that of a
/// stream, there is one stage. `predict`, which may be null, is a program over the variables of a step of training.
FrozenNet write_file(const std::vector<FrozenStage>& stages, const FrozenProgram* block, const FreezeOptions& options,
                     const FileFacts& facts, Interface interface, const FrozenProgram* predict = nullptr);

}  // namespace ferrite::exchange::detail
