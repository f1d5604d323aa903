#pragma once
/// The base class of optimisers, and gradient clipping.
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// The value of an optimiser's option, for files: none, a switch, a number, or several numbers of which some may be
/// none.
using OptionValue = std::variant<std::monostate, bool, double, std::vector<std::optional<double>>>;
/// An option of a group under PyTorch's name, as in `param_groups`.
struct NamedOption {
  std::string name;
  OptionValue value;
};

/// The way in which the parameters of a group hold a state.
enum class StateShare : std::uint8_t {
  own,      ///< each parameter has its own variable, or an empty handle
  element,  ///< each parameter has an element of the group's one variable, of rank 1
  group,    ///< all share the group's one variable, of rank 0
};

/// The state variables of one name in a group.
struct StateSlot {
  std::string name;       ///< name of the state: "exp_avg"
  std::size_t group = 0;  ///< index of the group
  StateShare share = StateShare::own;
  double initial = 0;           ///< value before the first update
  std::vector<State> states{};  ///< one for each parameter of the group, or a single one
};

/// Updates parameters from their gradients. All memory (moments, step count, learning rate) is in state variables, read
/// and written through the recorders, so that a traced training step contains none of it as a constant.
///
/// Parameters come in groups, each with its own options: the constructor makes the first, and `add_group`, which every
/// optimiser of the library has, further ones. Gradients are those of all groups, in the order of `parameters()`. Steps
/// are counted for each parameter, as in PyTorch: one without a gradient, or a frozen one, does not count, so that its
/// first update is treated as the first whenever it comes.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Performs one update and returns true. grads[i] belongs to the i-th parameter and has its shape and dtype; an
  /// undefined one leaves the parameter and its state unchanged. With `skip_nonfinite`, a NaN or infinity in any
  /// gradient of a parameter that is not frozen skips the update, and false is returned. A step that throws changes
  /// nothing: no parameter, no moment, no count.
  ///
  /// Throws ValueError if the number of gradients is wrong, if none is defined for a parameter that is not frozen
  /// (nothing would be trained), and if two parameters were tied since the optimiser was made; ShapeError and
  /// DtypeError for a gradient unlike its parameter; TraceError for `skip_nonfinite` inside a compiled function, which
  /// cannot depend on values.
  bool step(std::span<const Tensor> grads);
  bool step(const Tensors& grads) { return step(std::span<const Tensor>(grads.data(), grads.size())); }

  /// Returns the learning rate of a group. Throws ValueError for an unknown group, TraceError inside a compiled
  /// function, which reads the rate from `learning_rate_variable`.
  double learning_rate(std::size_t group = 0) const;
  /// Sets the learning rate of every group. Throws ValueError unless it is finite and not negative.
  void set_learning_rate(double rate) const;
  /// Sets the learning rate of one group. Throws ValueError for an unknown group, too.
  void set_learning_rate(double rate, std::size_t group) const;
  /// Returns the learning rate as a variable for schedules and files: f64, rank 0.
  const State& learning_rate_variable(std::size_t group = 0) const& { return at(group).rate; }
  State learning_rate_variable(std::size_t group = 0) const&& { return at(group).rate; }

  /// Returns whether the optimiser has a momentum that schedules may change: beta1 of Adam and its relatives, the
  /// momentum of SGD and RMSprop unless it is 0.
  bool has_momentum() const { return groups_.front().momentum.has_value(); }
  /// Returns the momentum of a group. Throws ValueError if there is none.
  double momentum(std::size_t group = 0) const;
  /// Sets the momentum of a group. The first call turns it into a state variable, "cycled_momentum", which compiled
  /// steps follow and checkpoints hold. Throws ValueError if there is no momentum or it is outside [0, 1), TraceError
  /// inside a compiled function.
  void set_momentum(double momentum, std::size_t group = 0);
  /// Returns whether `set_momentum` was ever called for a group.
  bool cycles(std::size_t group) const { return at(group).cycled.defined(); }
  /// Returns the momentum as a variable for schedules and files: f64, rank 0. Throws ValueError if it was never set.
  const State& momentum_variable(std::size_t group = 0) const&;
  State momentum_variable(std::size_t group = 0) const&& { return momentum_variable(group); }

  /// Returns the number of groups of parameters.
  std::size_t groups() const { return groups_.size(); }
  /// Returns {index of a group's first parameter in `parameters()`, number of its parameters}.
  std::pair<std::size_t, std::size_t> group_range(std::size_t group) const {
    return {at(group).begin, at(group).end - at(group).begin};
  }

  /// Excludes parameters and their states from updates until they are unfrozen; their gradients are ignored. Compiled
  /// steps follow. Like the options, this is not part of a checkpoint. Throws ValueError, before anything changes, for
  /// a parameter that the optimiser does not have.
  void freeze(std::span<const Parameter> parameters) { set_frozen(parameters, true); }
  /// Undoes `freeze` for parameters: they are updated again.
  void unfreeze(std::span<const Parameter> parameters) { set_frozen(parameters, false); }
  /// Returns whether a parameter is excluded from updates by `freeze`.
  bool frozen(const Parameter& parameter) const;

  /// Returns PyTorch's name of the class, "Adam"; empty for an optimiser that PyTorch does not have.
  virtual std::string torch_name() const { return {}; }
  /// Returns the options of a group except the learning rate, in PyTorch's order and under its names.
  virtual std::vector<NamedOption> options(std::size_t) const { return {}; }

  /// Returns the parameters of all groups, group after group.
  const std::vector<Parameter>& parameters() const& { return parameters_; }
  std::vector<Parameter> parameters() const&& { return parameters_; }
  /// Returns every state variable under its name, e.g. "exp_avg.gru.weight_ih_l0", for saving and restoring. If several
  /// parameters have one name, "#2", "#3", ... is appended to the later ones.
  const std::vector<Named<State>>& states() const& { return states_; }
  std::vector<Named<State>> states() const&& { return states_; }
  /// Returns the state variables by group, without learning rates.
  const std::vector<StateSlot>& slots() const& { return slots_; }
  std::vector<StateSlot> slots() const&& { return slots_; }
  /// Returns what is wrong with a value that a file gives for the state of that name: a learning rate that is negative
  /// or not finite, a number of steps that is not whole. Empty if nothing is wrong.
  std::string fault_of(std::string_view name, const Tensor& value) const;

 protected:
  /// Throws ValueError for a negative rate, no parameters, an empty handle or a parameter that is given twice.
  Optimizer(std::vector<Parameter> parameters, double learning_rate, bool skip_nonfinite);
  Optimizer(Optimizer&&) = default;
  /// Begins another group, which owns the states made next, and returns its index. Throws as the constructor; then
  /// nothing has changed.
  std::size_t add_parameters(std::vector<Parameter> parameters, double learning_rate);

  /// Called first in every update, once for all groups; does nothing by default.
  virtual void begin() {}
  /// Called before the updates of a group's parameters, unless none has a gradient; does nothing by default.
  virtual void begin_group(std::size_t) {}
  /// Updates the i-th parameter with its gradient; `rate` has the parameter's dtype. If an update throws, what it and
  /// `begin` have assigned is restored. Gradient and rate stay in place until `finish` returns.
  virtual void update(std::size_t i, const Tensor& grad, const Tensor& rate) = 0;
  /// Returns whether `update` reads its `rate`; if not, the rate is undefined.
  virtual bool takes_rate() const { return true; }
  /// Ends an update after everything that may throw: writes buffers in place. Must not throw.
  virtual void finish() {}
  /// Returns whether recorders other than tapes see this update, so that nothing may be written in place.
  bool recorded() const { return recorded_; }

  /// Returns the group of the i-th parameter and its index there; for use in `update`.
  std::pair<std::size_t, std::size_t> place_of(std::size_t i) const { return {group_now_, i - begin_now_}; }
  /// Returns the group's learning rate, or momentum, for the current update: f64, rank 0.
  Tensor rate_now(std::size_t group) const { return at(group).rate.value(); }
  Tensor momentum_now(std::size_t group) const;
  /// Gives the newest group a momentum.
  void declare_momentum(double value) { groups_.back().momentum = value; }

  /// Returns which parameters of the group are updated now, as i64 [parameters] of 1 and 0; undefined if all are. For
  /// use in `begin_group` and `update`.
  const Tensor& updated_now() const { return updated_now_; }

  /// Makes a state of the newest group: one variable of rank 0, one with an element for each parameter, or one variable
  /// for each parameter with its shape.
  State scalar_state(std::string_view name, double value, Dtype dtype = Dtype::f64);
  State element_state(std::string_view name, double value, Dtype dtype);
  std::vector<State> states_like_parameters(std::string_view name, double value = 0);
  /// Makes a state for each parameter, of the shape that `shape_of` computes; an empty handle for shapes not `wanted`.
  std::vector<State> states_shaped(std::string_view name, double value, Shape (*shape_of)(const Shape&),
                                   bool (*wanted)(const Shape&));

 private:
  struct Group {
    std::size_t begin = 0, end = 0;  ///< range of its parameters
    State rate{};
    Tensor rate_f32{}, rate_f64{};  ///< rate of the current update, kept until the update is finished
    std::optional<double> momentum{};
    State cycled{};  ///< the momentum, once it was set
    std::shared_ptr<std::atomic<bool>> cycles = std::make_shared<std::atomic<bool>>(false);
    /// True once another group has been added after this one; a compiled step that read false is traced again.
    std::shared_ptr<std::atomic<bool>> is_followed = std::make_shared<std::atomic<bool>>(false);
  };
  const Group& at(std::size_t group) const;
  State group_state(std::string_view name, StateShare share, const Shape& shape, double value, Dtype dtype);
  std::string full_name(std::string_view name) const;
  std::string name_like(std::string_view name, std::size_t i) const;
  void check_gradients(std::span<const Tensor> grads) const;
  bool used(std::span<const Tensor> grads, std::size_t i) const {
    return grads[i].defined() && (any_frozen_ == 0 || !*frozen_[i]);
  }
  bool all_finite(std::span<const Tensor> grads) const;
  void set_frozen(std::span<const Parameter> parameters, bool frozen);
  void tell_flags() const;
  void update_all(std::span<const Tensor> grads);
  void update_group(std::size_t group, std::span<const Tensor> grads);
  Tensor updated_in(const Group& group, std::span<const Tensor> grads) const;

  std::vector<Parameter> parameters_;
  std::vector<Named<State>> states_;
  std::vector<StateSlot> slots_;
  std::vector<Group> groups_;
  std::vector<std::shared_ptr<std::atomic<bool>>> frozen_;  ///< flags of the parameters
  std::size_t any_frozen_ = 0;                              ///< number of frozen parameters
  std::size_t group_now_ = 0, begin_now_ = 0;               ///< the group being updated
  Tensor updated_now_{};
  bool skip_nonfinite_;
  bool recorded_ = false;
};

/// The result of clip_grad_norm: the scaled gradients, and their norm before.
struct ClippedGradients {
  Tensors grads;
  Tensor norm;  ///< joint norm before clipping, rank 0; infinite if beyond the dtype's largest number
};
/// Returns gradients scaled by a common factor so that their joint norm is at most `max_norm`: min(1, max_norm /
/// (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_. The norm is (sum |g|^order)^(1 / order), or the largest |g| for
/// order infinity. Finite gradients are clipped correctly at every magnitude: if their powers or the norm leave the
/// range of the dtype, they are scaled first (PyTorch gives zeros). Undefined entries stay undefined. Throws ValueError
/// if none is defined, or if max_norm or order is not positive; DtypeError for gradients of different dtypes.
ClippedGradients clip_grad_norm(const Tensors& grads, double max_norm, double order = 2);
/// The `order` of clip_grad_norm with which the norm is the largest |element|.
inline constexpr double kInfinityNorm = std::numeric_limits<double>::infinity();

/// Returns gradients with elements clamped to [-value, value], as torch.nn.utils.clip_grad_value_. NaN stays NaN and
/// undefined entries stay undefined. Throws ValueError for a value that is not finite and positive.
Tensors clip_grad_value(const Tensors& grads, double value);

}  // namespace ferrite::nn
