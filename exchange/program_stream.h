#pragma once
/// Any causal program over time, run step by step.
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
  Spec step{};        ///< what one step takes; an axis of time has extent 1
  int time_axis = 0;  ///< -1: a value without an axis of time, given anew with every step
};

struct ProgramStreamOptions {
  /// Pairs (input, output): the output is a state that the next step takes as that input; it begins as zeros. Such
  /// inputs have no axis of time.
  std::vector<std::pair<std::size_t, std::size_t>> states{};
  /// Compares two sequences of the stream with the whole program, bit by bit, when it is made.
  bool verify = true;
};

/// A program over time as one step with states, which are found by analysis: frames that windows of convolutions and
/// pooling reach back to, frames by which one path is ahead of another, states of recurrences. It runs as one planned
/// program on buffers of its own, so a step allocates nothing, and gives the bits that the whole sequence gives.
///
///   exchange::ProgramStream s([&](const Tensors& x) { return Tensors{net(x[0])}; }, {{.step = {{1, 1, 40}}, .time_axis
///   = 1}}); for (const auto& frame : frames) {
///     std::ranges::copy(frame, s.input(0).begin());
///     s.step();
///     use(s.output(0));
///   }
///
/// What is causal: operations that act on every step alone; products, reductions and softmax along other axes;
/// convolutions and pooling over time with stride 1 whose padding stands before the sequence (or behind it, and is cut
/// off again); padding, slices and concatenation in time that keep its beginning; recurrent sequences and scans that
/// run forward, those that are linear too. The program must have one output step for each step of its inputs.
class ProgramStream {
 public:
  using Program = std::function<Tensors(const Tensors&)>;

  /// Traces the program. Throws ValueError that names the layer and operation of the first node that looks ahead, sums
  /// over time, strides or is not known to be causal, and what the trace throws; ShapeError for a time axis that is not
  /// there or has an extent other than 1. `program` is called again when `verify` is set.
  ProgramStream(const Program& program, std::span<const ProgramInput> inputs, const ProgramStreamOptions& options = {});
  ProgramStream(const Program& program, std::initializer_list<ProgramInput> inputs,
                const ProgramStreamOptions& options = {})
      : ProgramStream(program, std::span(inputs.begin(), inputs.size()), options) {}
  ProgramStream(ProgramStream&&) noexcept;
  ProgramStream& operator=(ProgramStream&&) noexcept;
  ~ProgramStream();

  /// What the next step reads, row-major. Throws DtypeError unless T is the input's type, ValueError for an input that
  /// is not there or is a state.
  template <class T = float>
  std::span<T> input(std::size_t i) {
    return {static_cast<T*>(input_memory(i, dtype_of<T>)), static_cast<std::size_t>(input_spec(i).shape.numel())};
  }
  /// What the last step gave, until the next one: numbered as the program's outputs, states too.
  template <class T = float>
  std::span<const T> output(std::size_t i) const {
    return {static_cast<const T*>(output_memory(i, dtype_of<T>)),
            static_cast<std::size_t>(output_spec(i).shape.numel())};
  }
  const Spec& input_spec(std::size_t i) const;
  const Spec& output_spec(std::size_t i) const;

  /// One step. It allocates nothing, takes no lock and makes no system call. What throws has changed no state.
  void step();
  /// Begins a new sequence.
  void reset();
  /// An independent stream with equal weights and states.
  ProgramStream clone() const;
  /// The states, in the order of `report()`, for a later `restore` in this stream or another one of the program.
  std::vector<Tensor> save() const;
  /// Throws ValueError for another number of states, ShapeError for other types; nothing has changed then.
  void restore(std::span<const Tensor> states);
  /// Takes the present values of the program's parameters; the states stay.
  void refresh();
  /// Bytes of all states.
  std::int64_t state_bytes() const;
  /// The states in words: what holds how many frames, in the order of the program.
  std::string report() const;

 private:
  struct Impl;
  ProgramStream();
  void* input_memory(std::size_t i, Dtype dtype);
  const void* output_memory(std::size_t i, Dtype dtype) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ferrite::exchange
