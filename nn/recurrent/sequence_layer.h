#pragma once
/// The base of layers that carry states of their own shapes over sequences: linear recurrences and their like.
#include <string>
#include <vector>

#include "ferrite/nn/recurrent/recurrent.h"

namespace ferrite::nn {

/// What a layer over sequences carries from one step to the next, of one row.
struct RowState {
  std::string name;  ///< "h"
  Shape shape;       ///< [H], [channels, n], ...
};

/// A layer from sequences [B, T, D] to sequences [B, T, N] that carries states from step to step, forwards in time. Its
/// streams have the bits of the whole sequence, unless the layer says otherwise.
///
/// x may be [T, D] without a batch. context.lengths i64 [B], each in 1..T: outputs past the end are 0, the state is the
/// one at the last valid step, the padding may hold anything and gets no gradient. context.reset_mask bool [B, T]:
/// before a step where it is set the states start anew from 0, and no gradient crosses. context.state: the initial
/// state; context.carry: states are taken from there and left there instead.
///
/// The state of `run` and of the context is one tensor [B, W] ([W] without a batch): all states of a row side by side,
/// each row-major, in the order of `states`.
class SequenceLayer : public Layer {
 public:
  bool causal() const override { return true; }
  bool takes_state() const override { return true; }
  bool reads_lengths() const override { return true; }
  /// The output alone.
  Tensor forward(const Tensor& x, const Context& context) const override { return run(x, context).output; }
  /// Output and last state. Throws ShapeError for another shape of x, state, lengths or mask, for T = 0 and for lengths
  /// outside 1..T; DtypeError for another dtype than the weights'; ValueError for a memory (`cell`), and for both a
  /// state and a carry.
  RecurrentResult run(const Tensor& x, const Context& context = {}) const;
  StepInput step_input() const override { return {input_size_, dtype_}; }
  std::vector<StepState> states(const StepRows& in) const override;
  /// Throws ShapeError, DtypeError for an x that does not fit.
  StepResult step(const Tensor& x, const Tensors& states) const override;

  /// Features that come in.
  std::int64_t input_size() const { return input_size_; }
  /// Numbers of a row's state, W.
  std::int64_t state_size() const { return state_size_; }

 protected:
  /// `name` is what errors begin with, for all layers of a class the same; `states` may be none.
  SequenceLayer(std::string_view name, std::int64_t input_size, std::vector<RowState> states, const Init& init);
  Dtype dtype() const { return dtype_; }

  /// The whole sequence: x [B, T, D], finite beyond the lengths of the options where it is within, batch first -> [B,
  /// T, N], of which what lies beyond the lengths does not count. `states`, each [B, ...], go from the initial to the
  /// last ones.
  virtual Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const = 0;
  /// One step: x [B, D] -> [B, N], with the bits of the sequence; where not overridden it is one of one step.
  virtual Tensor run_step(const Tensor& x, Tensors& states) const;

 private:
  RecurrentResult run_batch(const Tensor& x, const Context& context, bool batched) const;
  void check_input(const Tensor& x, int rank, const char* shape) const;
  Tensors initial(const Tensor& given, std::int64_t batch, bool batched) const;

  std::string_view name_;
  Label lengths_name_;  ///< what an error calls a length
  std::int64_t input_size_, state_size_ = 0;
  std::vector<RowState> states_;
  Dtype dtype_;
};

/// One that is made of two sizes, as recurrent layers are: Self(input_size, hidden_size, options, init).
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
