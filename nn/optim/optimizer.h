#pragma once
/// The base class of optimisers, and the clipping of gradients.
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

/// The value of an option: none, a switch, a number, or several numbers of which some may be none.
using OptionValue = std::variant<std::monostate, bool, double, std::vector<std::optional<double>>>;
/// An option of a group under PyTorch's name, as in `param_groups`.
struct NamedOption {
  std::string name;
  OptionValue value;
};

/// How the parameters of a group hold a state.
enum class StateShare : std::uint8_t {
  own,      ///< each has a variable; an empty handle where one has none
  element,  ///< each has an element of the group's one variable, of rank 1
  group,    ///< they share the group's one variable, of rank 0
};

/// State variables of one name in a group.
struct StateSlot {
  std::string name;  ///< "exp_avg"
  std::size_t group = 0;
  StateShare share = StateShare::own;
  double initial = 0;           ///< before the first update
  std::vector<State> states{};  ///< by parameter of the group, or one
};

/// Updates parameters from their gradients. Everything it remembers (moments, step count, learning rate) is in state
/// variables, read and written through the recorders, so a traced training step bakes none of it in.
///
/// Parameters come in groups, each with its own options: the first with the constructor, others by `add_group`, which
/// every optimiser of the library has. Gradients are those of all groups, in the order of `parameters()`. Steps are
/// counted for each parameter, as in PyTorch: one without a gradient, or a frozen one, counts none, so that its first
/// update is a first one whenever it comes.
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

  /// Of a group. Throws ValueError for a group that there is not, TraceError inside a compiled function, which takes
  /// the rate from `learning_rate_variable`.
  double learning_rate(std::size_t group = 0) const;
  /// Of every group. Throws ValueError unless it is finite and not negative.
  void set_learning_rate(double rate) const;
  /// Of one group.
  void set_learning_rate(double rate, std::size_t group) const;
  /// The learning rate as schedules and files see it: f64, rank 0.
  const State& learning_rate_variable(std::size_t group = 0) const& { return at(group).rate; }
  State learning_rate_variable(std::size_t group = 0) const&& { return at(group).rate; }

  /// Whether there is a momentum that schedules may change: beta1 of Adam and its relatives, the momentum of SGD and
  /// RMSprop unless it is 0.
  bool has_momentum() const { return groups_.front().momentum.has_value(); }
  /// Throws ValueError where there is none.
  double momentum(std::size_t group = 0) const;
  /// From the first call on the group's momentum is a state variable, "cycled_momentum", which compiled steps follow
  /// and checkpoints hold. Throws ValueError where there is none and unless it lies in [0, 1), TraceError inside a
  /// compiled function.
  void set_momentum(double momentum, std::size_t group = 0);
  /// Whether somebody has set the group's momentum.
  bool cycles(std::size_t group) const { return at(group).cycled.defined(); }
  /// The momentum as schedules and files see it: f64, rank 0. Throws ValueError where it was never set.
  const State& momentum_variable(std::size_t group = 0) const&;
  State momentum_variable(std::size_t group = 0) const&& { return momentum_variable(group); }

  std::size_t groups() const { return groups_.size(); }
  /// The parameters of a group: the first one's place among `parameters()` and how many they are.
  std::pair<std::size_t, std::size_t> group_range(std::size_t group) const {
    return {at(group).begin, at(group).end - at(group).begin};
  }

  /// Leaves parameters out of updates, with their states, until they are unfrozen: their gradients are not looked at.
  /// Compiled steps follow. Like the options, it is no part of a checkpoint. Throws ValueError, before anything has
  /// changed, for a parameter that the optimiser does not have.
  void freeze(std::span<const Parameter> parameters) { set_frozen(parameters, true); }
  void unfreeze(std::span<const Parameter> parameters) { set_frozen(parameters, false); }
  bool frozen(const Parameter& parameter) const;

  /// PyTorch's name of the class, "Adam"; empty for an optimiser that PyTorch does not have.
  virtual std::string torch_name() const { return {}; }
  /// The options of a group but the learning rate, in PyTorch's order and under its names.
  virtual std::vector<NamedOption> options(std::size_t) const { return {}; }

  const std::vector<Parameter>& parameters() const& { return parameters_; }
  std::vector<Parameter> parameters() const&& { return parameters_; }
  /// Every state variable under its name, e.g. "exp_avg.gru.weight_ih_l0": for saving and restoring. A second parameter
  /// of one name gets "#2" behind it, and so on.
  const std::vector<Named<State>>& states() const& { return states_; }
  std::vector<Named<State>> states() const&& { return states_; }
  /// The same by group, without learning rates.
  const std::vector<StateSlot>& slots() const& { return slots_; }
  std::vector<StateSlot> slots() const&& { return slots_; }
  /// What is wrong with a value for the state of that name, as one reads it in a file: a learning rate below 0 or not
  /// finite, a number of steps that is none. Empty where nothing is.
  std::string fault_of(std::string_view name, const Tensor& value) const;

 protected:
  /// Throws ValueError for a rate below 0, no parameters, an empty handle or a parameter that is given twice.
  Optimizer(std::vector<Parameter> parameters, double learning_rate, bool skip_nonfinite);
  Optimizer(Optimizer&&) = default;
  /// Begins another group and gives its number: its states are those made next. Throws as the constructor, and changes
  /// nothing then.
  std::size_t add_parameters(std::vector<Parameter> parameters, double learning_rate);

  /// Begins an update: counts the step and the like.
  virtual void begin() {}
  /// Begins the update of a group that has a gradient.
  virtual void begin_group(std::size_t) {}
  /// Updates the i-th parameter with a gradient; `rate` has the parameter's dtype. What it and `begin` assign is taken
  /// back when one of them throws. Gradient and rate stay where they are until `finish` has ended.
  virtual void update(std::size_t i, const Tensor& grad, const Tensor& rate) = 0;
  /// Whether `update` reads the rate that it is given; otherwise that is undefined.
  virtual bool takes_rate() const { return true; }
  /// Ends an update, when all that may throw has been done: writes over buffers in place. Must not throw.
  virtual void finish() {}
  /// Whether recorders other than tapes see this update, so that nothing may be written in place.
  bool recorded() const { return recorded_; }

  /// For `update`: the group of the i-th parameter, and its place there.
  std::pair<std::size_t, std::size_t> place_of(std::size_t i) const { return {group_now_, i - begin_now_}; }
  /// The group's rate and momentum in the running update: f64, rank 0.
  Tensor rate_now(std::size_t group) const { return at(group).rate.value(); }
  Tensor momentum_now(std::size_t group) const;
  /// Gives the newest group a momentum.
  void declare_momentum(double value) { groups_.back().momentum = value; }

  /// For `begin_group` and `update`: which parameters of the group the running update updates, i64 [parameters] of 1
  /// and 0. Undefined where it is all of them.
  const Tensor& updated_now() const { return updated_now_; }

  /// A state variable of rank 0 for the newest group, one with an element for each of its parameters, or values like
  /// every one of them.
  State scalar_state(std::string_view name, double value, Dtype dtype = Dtype::f64);
  State element_state(std::string_view name, double value, Dtype dtype);
  std::vector<State> states_like_parameters(std::string_view name, double value = 0);
  /// The same with a shape made of each parameter's.
  std::vector<State> states_shaped(std::string_view name, double value, Shape (*shape_of)(const Shape&),
                                   bool (*wanted)(const Shape&));

 private:
  struct Group {
    std::size_t begin = 0, end = 0;  ///< of its parameters
    State rate{};
    Tensor rate_f32{}, rate_f64{};  ///< of the running update: they stay until it has been finished
    std::optional<double> momentum{};
    State cycled{};  ///< the momentum, once somebody has set it
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
  std::vector<std::shared_ptr<std::atomic<bool>>> frozen_;  ///< by parameter
  std::size_t any_frozen_ = 0;                              ///< how many are
  std::size_t group_now_ = 0, begin_now_ = 0;               ///< of the group that is being updated
  Tensor updated_now_{};
  bool skip_nonfinite_;
  bool recorded_ = false;
};

/// Gradients scaled together so that their joint norm is at most `max_norm`: each is multiplied by
/// min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_. The norm of that order is
/// (sum |g|^order)^(1 / order), the largest |g| for infinity. Finite gradients are clipped right at every magnitude:
/// where their powers, or the norm, leave the range of the dtype, they are scaled first (PyTorch gives zeros).
/// Undefined entries stay so. Throws ValueError when none is defined, for a max_norm that is not positive and an order
/// that is not; DtypeError for gradients of different dtypes.
struct ClippedGradients {
  Tensors grads;
  Tensor norm;  ///< before clipping, rank 0; infinite where it is beyond the dtype's largest number
};
ClippedGradients clip_grad_norm(const Tensors& grads, double max_norm, double order = 2);
inline constexpr double kInfinityNorm = std::numeric_limits<double>::infinity();

/// Gradients whose elements are moved into [-value, value], as torch.nn.utils.clip_grad_value_; NaN stays. Undefined
/// entries stay so. Throws ValueError for a value that is not finite and positive.
Tensors clip_grad_value(const Tensors& grads, double value);

}  // namespace ferrite::nn
