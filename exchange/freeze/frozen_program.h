#pragma once
/// A function of tensors as a lowered program, with its states as C keeps them.
#include <map>
#include <string>
#include <vector>

#include "ferrite/compile/lowered.h"
#include "ferrite/exchange/freeze/step_source.h"

namespace ferrite::exchange::detail {

/// The way in which C keeps a state.
enum class Keeping : std::uint8_t {
  value,   ///< replaced by each step
  pair,    ///< replaced by each step, which reads the whole value while it writes the next one: two places by turns
  line,    ///< the last frames of a value: each step appends one
  store,   ///< entries along axis 1, to which each step appends one
  counts,  ///< the numbers of entries of stores
};

/// A state of a frozen program.
struct FrozenState {
  std::string name;
  Keeping keeping = Keeping::value;
  Spec spec{};       ///< of a line, with the frames on its first axis
  Tensor first{};    ///< before the first step
  ValueId now = 0;   ///< the value that a step reads
  ValueId next = 0;  ///< the value that takes its place; of a line the frames that are appended are a part of `now`
  std::int64_t frame = 0;     ///< elements of a frame of a line, or of an entry of a store
  std::int64_t appended = 0;  ///< frames that each step appends to a line
  /// Of a line whose channels lie one after the other: elements from one channel to the next. 0: frame by frame.
  std::int64_t channel = 0;
};

/// A program of fixed types and its ends.
struct FrozenProgram {
  ferrite::detail::LoweredProgram lowered;
  std::vector<ValueId> inputs, outputs;
  std::vector<FrozenState> states;
  std::vector<std::string> input_names, output_names;
  std::int64_t steps = 1;  ///< steps that a run makes: rows of inputs and outputs
  /// Operands of products that are concatenations: windows [M, k] that lie next to each other in [M, K].
  std::map<ValueId, std::vector<ferrite::detail::LoweredWindow>> joined{};
  bool lanes = false;  ///< whether the steps of a block lie next to each other in memory, channel by channel
};

/// Traces a step, takes its variables as constants, computes what depends on them alone, and lowers the rest.
/// With `block`, it is the function of several steps at once.
FrozenProgram frozen_program(const StepSource& source, bool block = false);

/// Lowers a step of training, or another program over the same variables: its variables are states with these names,
/// in the order of `names`, whose values the program replaces; those that it does not assign stay as they are.
FrozenProgram frozen_program(const Graph& program, const std::vector<Variable>& variables,
                             const std::vector<std::string>& names);

/// Returns whether two programs keep the same states.
bool same_states(const FrozenProgram& a, const FrozenProgram& b);

/// Returns whether a constant is one number repeated, of which C has a single element.
bool is_repeated(const Tensor& x);

/// Returns the operation that appends frames to a line: [R, ...], [b, ...] -> [R + b, ...], all of them.
const Primitive& append_operation();

}  // namespace ferrite::exchange::detail
