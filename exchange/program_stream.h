#pragma once
/// Running any causal program over time step by step.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange {

/// One input of a program that is streamed.
struct ProgramInput {
  Spec step{};        ///< shape and dtype for one step; the time axis has extent 1
  int time_axis = 0;  ///< position of the time axis, or -1 for an input without one, set before every step
};

/// Options of a ProgramStream.
struct ProgramStreamOptions {
  /// Pairs of an input and an output, by number, that are a state: the next step takes the output as that input; it
  /// starts as zeros. Such inputs have no time axis.
  std::vector<std::pair<std::size_t, std::size_t>> states{};
  /// Compares two sequences of the stream with the whole program, bit by bit, when the stream is made; throws
  /// Error where they differ.
  bool verify = true;
};

/// A program over time as one step with states, which are found by analysis: frames that windows of convolutions and
/// pooling reach back to, frames by which one path is ahead of another, states of recurrences. It runs as one planned
/// program on its own buffers, so a step allocates nothing; its results are bit for bit those of the whole sequence.
///
///   const auto program = [&](const Tensors& x) { return Tensors{net(x[0])}; };
///   exchange::ProgramStream s(program, {{.step = {{1, 1, 40}}, .time_axis = 1}});
///   for (const auto& frame : frames) {
///     std::ranges::copy(frame, s.input(0).begin());
///     s.step();
///     use(s.output(0));
///   }
///
/// Causal operations are those that act on every step alone; products, reductions and softmax along other axes;
/// convolutions and pooling over time with stride 1 whose padding lies before the sequence (or after it, if the program
/// cuts it off again); padding, slices and concatenation in time that keep its beginning; recurrent sequences and scans
/// that run forward, also linear ones. The program must have one output step for each step of its inputs.
class ProgramStream {
 public:
  using Program = std::function<Tensors(const Tensors&)>;

  /// Traces the program and plans its step. Throws ValueError that names the layer and operation of the first node that
  /// looks ahead, sums over time, strides or is not known to be causal; ShapeError for a time axis that does not exist
  /// or has an extent other than 1; and what tracing throws. `program` is called again when `verify` is set.
  ProgramStream(const Program& program, std::span<const ProgramInput> inputs, const ProgramStreamOptions& options = {});
  ProgramStream(const Program& program, std::initializer_list<ProgramInput> inputs,
                const ProgramStreamOptions& options = {})
      : ProgramStream(program, std::span(inputs.begin(), inputs.size()), options) {}
  ProgramStream(ProgramStream&&) noexcept;
  ProgramStream& operator=(ProgramStream&&) noexcept;
  ~ProgramStream();

  /// Returns the row-major elements of an input, for the caller to fill before the next step. Throws DtypeError unless
  /// T is the input's type, ValueError for an input that does not exist or is a state.
  template <class T = float>
  std::span<T> input(std::size_t i) {
    return {static_cast<T*>(input_memory(i, dtype_of<T>)), static_cast<std::size_t>(input_spec(i).shape.numel())};
  }
  /// Returns the row-major elements of an output of the last step, valid until the next one. Outputs are numbered as
  /// the program's, states included.
  template <class T = float>
  std::span<const T> output(std::size_t i) const {
    return {static_cast<const T*>(output_memory(i, dtype_of<T>)),
            static_cast<std::size_t>(output_spec(i).shape.numel())};
  }
  /// Returns the shape and dtype of an input for one step; the time axis has extent 1.
  const Spec& input_spec(std::size_t i) const;
  /// Returns the number of outputs, states included.
  std::size_t outputs() const;
  /// Returns the shape and dtype of an output of one step; the time axis has extent 1.
  const Spec& output_spec(std::size_t i) const;

  /// Runs one step. It allocates nothing, takes no lock and makes no system call; if it throws, no state has changed.
  void step();
  /// Starts a new sequence: the states get their initial values.
  void reset();
  /// Returns an independent stream with equal weights and states.
  ProgramStream clone() const;
  /// Returns the states, in the order of `report()`, for `restore` in this stream or another one of the program.
  std::vector<Tensor> save() const;
  /// Restores saved states. Throws ValueError for another number of states, ShapeError for other types, without change.
  void restore(std::span<const Tensor> states);
  /// Copies the present values of the program's parameters into the stream; the states stay.
  void refresh();
  /// Returns the size of all states, in bytes.
  std::int64_t state_bytes() const;
  /// Returns a text with a line for each state: the operation that it belongs to, what it holds ("2 frames of its
  /// window") and its type, in the order of the program; then the inputs that get an output of the step before.
  std::string report() const;

 private:
  struct Impl;
  ProgramStream();
  void* input_memory(std::size_t i, Dtype dtype);
  const void* output_memory(std::size_t i, Dtype dtype) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ferrite::exchange
