#pragma once
/// The base of layers that carry states of any shapes over sequences, such as linear recurrences.
#include <string>
#include <vector>

#include "ferrite/nn/recurrent/recurrent.h"

namespace ferrite::nn {

/// Describes one state that a layer over sequences carries from one step to the next: its name, and its shape without
/// the batch axis.
struct RowState {
  std::string name;  ///< the name in carries and streams, "h"
  Shape shape;       ///< the shape for one row: [H], [channels, n], ...
};

/// A layer from sequences [B, T, D] to sequences [B, T, N] that carries states from step to step, forward in time. Its
/// streams have the bits of the whole sequence, unless the layer says otherwise.
///
/// x may be [T, D] without a batch. context.lengths i64 [B], each in 1..T: outputs past the end are 0, the state is
/// that of the last valid step, the padding may hold anything and gets no gradient. context.reset_mask bool [B, T]:
/// before a step where it is set, the states start over from 0, and no gradient crosses. context.state is the initial
/// state. context.carry: the layer takes its states from there and leaves them there instead.
///
/// The state of `run` and of the context is one tensor [B, W] ([W] without a batch): all states of a row next to each
/// other, each row-major, in the order of `states`.
class SequenceLayer : public Layer {
 public:
  bool causal() const override { return true; }
  bool takes_state() const override { return true; }
  bool reads_lengths() const override { return true; }
  /// Returns the output of `run` without the state.
  Tensor forward(const Tensor& x, const Context& context) const override { return run(x, context).output; }
  /// Returns the output and the last state. Throws ShapeError for another shape of x, state, lengths or mask, for T = 0
  /// and for lengths outside 1..T; DtypeError for another dtype than the weights'; ValueError for an initial memory
  /// (`cell`), and for both a state and a carry.
  RecurrentResult run(const Tensor& x, const Context& context = {}) const;
  StepInput step_input() const override { return {input_size_, dtype_}; }
  std::vector<StepState> states(const StepRows& in) const override;
  /// Computes one step. Throws ShapeError or DtypeError for an x that does not fit.
  StepResult step(const Tensor& x, const Tensors& states) const override;

  /// Returns the number of features of the input, D.
  std::int64_t input_size() const { return input_size_; }
  /// Returns the number of elements of a row's state, W.
  std::int64_t state_size() const { return state_size_; }

 protected:
  /// Creates a layer with these states, possibly none. `name` begins its errors; it must live as long as the layer.
  SequenceLayer(std::string_view name, std::int64_t input_size, std::vector<RowState> states, const Init& init);
  Dtype dtype() const { return dtype_; }

  /// Runs the whole sequence, batch first: x [B, T, D] -> [B, T, N]. The padding of x is finite if its valid steps are;
  /// the output beyond the lengths is ignored. `states`, each [B, ...], change from the initial to the last ones.
  virtual Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const = 0;
  /// Computes one step, x [B, D] -> [B, N], with the bits of the sequence; by default it runs a sequence of one step.
  virtual Tensor run_step(const Tensor& x, Tensors& states) const;

 private:
  RecurrentResult run_batch(const Tensor& x, const Context& context, bool batched) const;
  void check_input(const Tensor& x, int rank, const char* shape) const;
  Tensors initial(const Tensor& given, std::int64_t batch, bool batched) const;

  std::string_view name_;
  Label lengths_name_;  ///< the name of a length in errors
  std::int64_t input_size_, state_size_ = 0;
  std::vector<RowState> states_;
  Dtype dtype_;
};

/// The base of sequence layers with the constructor of recurrent layers: Self(input_size, hidden_size, options, init).
class SizedSequenceLayer : public SequenceLayer {
 public:
  std::int64_t hidden_size() const { return hidden_size_; }

 protected:
  SizedSequenceLayer(std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
                     std::vector<RowState> states, const Init& init)
      : SequenceLayer(name, input_size, std::move(states), init), hidden_size_(hidden_size) {}

 private:
  std::int64_t hidden_size_;
};

}  // namespace ferrite::nn
