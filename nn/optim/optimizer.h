#pragma once
/// The base class of optimisers, and the clipping of gradients.
#include <span>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// Updates parameters from their gradients. Everything it remembers (moments, step count, learning rate) is in state
/// variables, read and written through the recorders, so a traced training step bakes none of it in.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One update. grads[i] belongs to the i-th parameter and has its shape and dtype; an undefined one leaves the
  /// parameter and its state alone. With `skip_nonfinite`, an update with a NaN or infinity anywhere in the gradients
  /// is left out and false returned. A step that throws has changed nothing: no parameter, no moment, no count.
  ///
  /// Throws ValueError for another number of gradients, when none is defined (nothing would be trained) and where two
  /// parameters were tied since the optimiser was made, ShapeError for another shape, DtypeError for another dtype, and
  /// TraceError for `skip_nonfinite` inside a compiled function: a program cannot depend on values.
  bool step(std::span<const Tensor> grads);
  bool step(const Tensors& grads) { return step(std::span<const Tensor>(grads.data(), grads.size())); }

  /// Throws TraceError inside a compiled function, which takes the rate from `learning_rate_variable`.
  double learning_rate() const;
  /// Throws ValueError unless it is finite and not negative.
  void set_learning_rate(double rate) const;
  /// The learning rate as schedules and files see it: f64, rank 0.
  const State& learning_rate_variable() const& { return rate_; }
  State learning_rate_variable() const&& { return rate_; }

  const std::vector<Parameter>& parameters() const& { return parameters_; }
  std::vector<Parameter> parameters() const&& { return parameters_; }
  /// Every state variable under its name, e.g. "exp_avg.gru.weight_ih_l0": for saving and restoring. A second parameter
  /// of one name gets "#2" behind it, and so on.
  const std::vector<Named<State>>& states() const& { return states_; }
  std::vector<Named<State>> states() const&& { return states_; }
  /// What is wrong with a value for the state of that name, as one reads it in a file: a learning rate below 0 or not
  /// finite, a number of steps that is none. Empty where nothing is.
  std::string fault_of(std::string_view name, const Tensor& value) const;

 protected:
  /// Throws ValueError for a rate below 0, no parameters, an empty handle or a parameter that is given twice.
  Optimizer(std::vector<Parameter> parameters, double learning_rate, bool skip_nonfinite);
  Optimizer(Optimizer&&) = default;

  /// Begins an update: counts the step and the like.
  virtual void begin() {}
  /// Updates the i-th parameter with a gradient; `rate` has the parameter's dtype. What it and `begin` assign is taken
  /// back when one of them throws. Gradient and rate stay where they are until `finish` has ended.
  virtual void update(std::size_t i, const Tensor& grad, const Tensor& rate) = 0;
  /// Ends an update, when all that may throw has been done: writes over buffers in place. Must not throw.
  virtual void finish() {}
  /// Whether recorders other than tapes see this update, so that nothing may be written in place.
  bool recorded() const { return recorded_; }

  /// A state variable of rank 0 for the whole optimiser, or zeros like every parameter.
  State scalar_state(std::string_view name, double value, Dtype dtype = Dtype::f64);
  std::vector<State> states_like_parameters(std::string_view name);

 private:
  void check_gradients(std::span<const Tensor> grads) const;
  void update_all(std::span<const Tensor> grads);

  std::vector<Parameter> parameters_;
  std::vector<Named<State>> states_;
  State rate_;
  Tensor rate_f32_, rate_f64_;  ///< of the running update
  bool skip_nonfinite_;
  bool recorded_ = false;
};

/// Gradients scaled together so that their joint 2-norm is at most `max_norm`: each is multiplied by
/// min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_. Undefined entries stay so. Throws ValueError
/// when none is defined, and for a max_norm that is not positive; DtypeError for gradients of different dtypes.
struct ClippedGradients {
  Tensors grads;
  Tensor norm;  ///< before clipping, rank 0
};
ClippedGradients clip_grad_norm(const Tensors& grads, double max_norm);

}  // namespace ferrite::nn
