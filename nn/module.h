#pragma once
/// Modules and layers: named parameters, buffers, states and submodules.
#include <atomic>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ferrite/compile/compile.h"
#include "ferrite/nn/init.h"
#include "ferrite/nn/step.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/system/per_thread.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn {

class Carry;
class Replicas;
class Stream;

/// The arguments of a layer's call besides its input; empty by default. Containers pass them on to their layers.
struct Context {
  /// Number of valid steps of each sequence, i64 [B]; undefined: all T. After a layer that changes the number of
  /// steps, a chain gives the next layers the lengths of that layer's output (Layer::lengths_after).
  Tensor lengths{};
  /// True at the steps before which the states of layers start over, bool [B, T]; undefined: nowhere. After a layer
  /// with a stride, an output step is marked if its input step, or one since the previous output, is.
  Tensor reset_mask{};
  /// Initial state h of a single recurrent layer (Recurrent, SequenceLayer); undefined: zeros. Chains of layers throw
  /// ValueError if it is given.
  Tensor state{};
  /// Initial memory c of a single LSTM, shaped like `state`; undefined: zeros. Chains of layers throw ValueError if it
  /// is given.
  Tensor cell{};
  /// The states that layers read before and assign after the call (nn/carry.h); null: layers carry nothing.
  const Carry* carry = nullptr;
  /// The replicas over whose batches batch norms average while training (nn/replicas.h); null: over their own batch.
  const Replicas* replicas = nullptr;
};

/// A variable under its dotted name in a model.
template <class C>
struct Named {
  std::string name;
  C variable{};
};

/// A number that decides what a layer computes but is not a variable, such as "norm.epsilon".
struct Setting {
  std::string name;  ///< the dotted name, like those of variables
  double value = 0;
};

/// Describes a state [layers, B, width] that a layer of a model can carry from one call to the next; nn::Carry holds
/// its values.
struct CarriedState {
  std::string name;                   ///< its dotted name in the model, "encoder.gru.h"
  std::shared_ptr<const void> layer;  ///< identity of the layer, which survives moving it
  std::int64_t layers = 1;            ///< extent of the first axis: a GRU's layers, a causal convolution's past steps
  std::int64_t width = 0;             ///< extent of the last axis: numbers per row
  Dtype dtype = Dtype::f32;
};

/// An object with named parameters, buffers, states and submodules. It is move-only. Its variables are shared handles,
/// so a module that holds others registers them once with `adopt` and may then be moved freely. Several threads may
/// read a module at once.
///
///   struct Translator : nn::Module {
///     nn::Gru encoder{29, 64};
///     nn::Linear head{64, 74};
///     explicit Translator(std::uint64_t seed) : Module({.seed = seed}) {
///       adopt("encoder", encoder), adopt("head", head);
///     }
///     Tensor forward(const Tensor& x) const { return head(encoder(x)); }
///   };
class Module {
 public:
  virtual ~Module() = default;

  /// Returns all parameters, own and adopted, in order of registration; a tied parameter is listed under each name.
  const std::vector<Named<Parameter>>& named_parameters() const& { return whole().parameters_; }
  const std::vector<Named<Buffer>>& named_buffers() const& { return whole().buffers_; }
  const std::vector<Named<State>>& named_states() const& { return whole().states_; }
  std::vector<Named<Parameter>> named_parameters() const&& { return whole().parameters_; }
  std::vector<Named<Buffer>> named_buffers() const&& { return whole().buffers_; }
  std::vector<Named<State>> named_states() const&& { return whole().states_; }
  /// Returns descriptions of the states that this module and its layers can carry from call to call (nn::Carry).
  const std::vector<CarriedState>& carried_states() const& { return carried_; }
  std::vector<CarriedState> carried_states() const&& { return carried_; }
  /// Returns numbers that decide what layers compute and that files of other programs hold beside weights: `epsilon` of
  /// normalisations, `reset_after` of a GRU, and `stride`, `dilation`, `padding_left` and `padding_right` of
  /// convolutions over time. io::load compares them with those of a file.
  const std::vector<Setting>& settings() const& { return settings_; }
  std::vector<Setting> settings() const&& { return settings_; }
  /// Returns whether this layer itself, not one inside it, carries the state.
  bool is_layer_of(const CarriedState& s) const { return s.layer == mode_; }
  /// Returns every parameter once, tied ones too, like torch.nn.Module.parameters().
  std::vector<Parameter> parameters() const;
  /// Returns the parameters of one part, each once: the one named `part` and those whose names begin with "<part>.".
  /// Use it to freeze a part, or to train it at its own rate:
  ///
  ///   adam.freeze(net.parameters("encoder"));
  ///
  /// Throws ValueError when there are none.
  std::vector<Parameter> parameters(std::string_view part) const;
  /// Draws the first value of every variable that has none, from the seed and its full name, as a module with that seed
  /// and prefix does when it adopts this one. Throws ValueError for an init without a seed.
  void draw(const Init& init) const;
  /// Returns the number of elements of all `parameters()`.
  std::int64_t parameter_count() const;
  /// Switches training mode on or off, here and in all adopted modules; it is on at first. Only some layers, such as
  /// `Dropout`, depend on it.
  void train(bool on = true) const;
  void eval() const { train(false); }
  /// Returns whether this module is in training mode.
  bool training() const { return ferrite::detail::read_flag(whole().mode_); }
  /// Returns one flag for this module and each that it adopted: whether it is in training mode. `set_modes` restores
  /// them, so that a part that was in evaluation mode before `eval()` stays so.
  std::vector<bool> modes() const;
  /// Restores what `modes` returned. Throws ValueError for another number of modes.
  void set_modes(const std::vector<bool>& modes) const;
  /// Returns the dotted path of this module in the outermost module that holds it, "encoder.gru", with which the names
  /// of its parameters begin there; empty when no module has adopted it. If several have, the first one counts.
  std::string path() const;
  /// Gives this module the path of `from`, so that a copy that runs in its place has its name in errors and profiles.
  void take_path(const Module& from) const;

 protected:
  /// Creates an empty module. With a seed in `init`, it draws the variables that it adopts or registers without a seed,
  /// each from that seed and its full name "<prefix>.<name>". Without a seed, the module that adopts this one does so.
  explicit Module(Init init = {}) : init_(std::move(init)), modes_{mode_} {}
  Module(Module&&) = default;
  /// Throws ValueError when another module has adopted this one, because that module would keep the old variables.
  Module& operator=(Module&&) = default;

  /// Returns f(), run as a part of this module: what a tracer records meanwhile carries the module's path
  /// (Graph::Node::scope), a Profile counts it there, and an Error names it (Error::layer). Calls of layers run this
  /// way, and so do `run` and `step` of recurrent layers. Use it in modules that have their own functions:
  ///
  ///   Tensor forward(const Tensor& x) const { return inside([&] { return matmul(x, weight); }); }
  template <class F>
  [[gnu::always_inline]] auto inside(const F& f) const {
#ifdef __cpp_exceptions
    try {
      return under_scope(f);
    } catch (Error& e) {
      name_in(e);
      throw;
    }
#else
    return under_scope(f);
#endif
  }

  /// Returns this module. Throws Error when it was moved from and so has no variables.
  const Module& whole() const {
    if (!mode_) [[unlikely]]
      throw_moved_from();
    return *this;
  }

  /// Registers a parameter of this module and fills it from the random stream of its full name, with the seed of `init`
  /// or else of the module; without either it is filled later (see Init). Throws ValueError, as `buffer` and `state`
  /// do, for a name that is taken.
  Parameter parameter(std::string_view name, const Shape& shape, const Fill& fill, const Init& init,
                      FileLayout layout = FileLayout::same);
  /// Registers a parameter whose first value the function `draw` computes.
  Parameter parameter(std::string_view name, const Spec& spec, Variable::Draw draw, const Init& init,
                      FileLayout layout = FileLayout::same);
  Buffer buffer(std::string_view name, Tensor value);
  /// Registers a buffer whose first value the function `draw` computes.
  Buffer buffer(std::string_view name, const Spec& spec, Variable::Draw draw, const Init& init);
  State state(std::string_view name, Tensor value);
  /// Registers a state whose first value the function `draw` computes.
  State state(std::string_view name, const Spec& spec, Variable::Draw draw, const Init& init);
  /// Registers a state [layers, B, width] that this layer carries from call to call. Its `forward` reads and assigns
  /// the one in `context.carry->states_of(*this, B)` (nn/carry.h).
  void carries(std::string_view name, std::int64_t layers, std::int64_t width, Dtype dtype);
  /// Registers a number that decides what this layer computes (`settings`), so that a file with a different one is
  /// refused. Throws ValueError when another module has adopted this one.
  void setting(std::string_view name, double value);
  /// Registers the variables of another module under "<name>.", and draws those without a value if this one has a seed.
  /// Throws ValueError when two parameters, buffers or states would get the same full name, when the child is this
  /// module itself, and when another module has adopted this one; nothing is registered then.
  void adopt(std::string_view name, const Module& child) { adopt(name, child, {}); }
  /// Adopts a module without its parameter `left_out`, which this module then registers under another name with
  /// `parameter(name, that parameter)`.
  void adopt(std::string_view name, const Module& child, std::string_view left_out);
  /// Registers a parameter that `adopt` has left out, under another name.
  Parameter parameter(std::string_view name, const Parameter& left_out);
  /// Ties the variables that are tied in `from`, and copies the training modes of `from` and of all that it adopted.
  /// Both modules must have registered the same names in the same order, as clones have.
  void take_after(const Module& from) const;

 private:
  using Mode = std::shared_ptr<std::atomic<bool>>;
  /// Whether another module has adopted this one. It is the first member, so that a refused assignment changes nothing.
  struct Adoption {
    Adoption() = default;
    Adoption(Adoption&&) = default;
    Adoption& operator=(Adoption&& o);
    bool done = false;
  };
  /// The name of a module in the one that adopted it, shared with the modules that it adopts, and its training mode.
  struct Place {
    std::atomic<bool> training = true;
    std::string name;
    std::shared_ptr<const Place> in;  ///< the place of the module that adopted it first
  };

  mutable Adoption adoption_;
  Init init_;
  std::shared_ptr<Place> place_ = std::make_shared<Place>();
  Mode mode_{place_, &place_->training};
  std::vector<Mode> modes_;
  std::vector<Named<Parameter>> parameters_;
  std::vector<Named<Buffer>> buffers_;
  std::vector<Named<State>> states_;
  std::vector<CarriedState> carried_;
  std::vector<Setting> settings_;
  std::unordered_set<std::size_t> names_;  ///< hashes of the names of all variables

  template <class C>
  void check_free(const std::vector<Named<C>>& own, const char* where, const std::string& name) const;
  template <class C>
  C registered(std::vector<Named<C>>& list, std::string_view name, C variable);

  /// Throws ValueError when another module has adopted this one, because it would not see a later registration.
  void check_open(std::string_view name) const;
  /// Returns the layer to which this module's operations belong; without a path, the layer that already runs.
  Scope scope() const;
  template <class F>
  [[gnu::always_inline]] auto under_scope(const F& f) const {
    if (ferrite::detail::observed()) [[unlikely]] {
      const ferrite::detail::Scoped scoped(scope());
      return f();
    }
    return f();
  }
  void name_in(Error& e) const noexcept;
  [[noreturn]] static void throw_moved_from();
};

class Layer;
class StepGraph;

namespace detail {
/// Whether this thread runs a single step [B, 1, D] of a stream through a layer that declares no states.
FERRITE_PER_THREAD extern constinit ferrite::detail::PerThread<bool> in_single_step;

/// Observes the calls of layers inside a layer whose steps are searched for.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void begins(const Layer& layer, const Tensor& x, const Context& context) = 0;
  /// Called when a call of a layer ends, the innermost one that has begun and not ended; what it returns replaces the
  /// call's result y.
  virtual Tensor gives(const Tensor& y) = 0;
  /// Called instead of `gives` when a call of a layer throws: the innermost call that has begun and not ended.
  virtual void fails() = 0;
};
/// The observer of this thread's calls; null: none.
FERRITE_PER_THREAD extern constinit ferrite::detail::PerThread<CallObserver*> call_observer;

/// Returns the step of a layer that adds none itself: a program of `Layer::step`, or what is found in `forward`, traced
/// once. Returns null, with the reason in `why`, when there is none.
std::unique_ptr<Step> traced_step(const Layer& layer, const StepRows& in, std::string& why);

/// Tag of a layer that overrides `add_steps`. A program with only such layers does not link the tracer that finds the
/// steps of others.
struct OwnSteps {};
}  // namespace detail

/// A module that maps one tensor to one tensor and so fits into a chain.
class Layer : public Module {
 protected:
  explicit Layer(Init init = {}) : Module(std::move(init)), traced_step_(detail::traced_step) {}
  Layer(Init init, detail::OwnSteps) : Module(std::move(init)) {}

 public:
  /// Returns the kind of the layer, "gru" or "linear".
  virtual std::string kind() const = 0;
  /// Returns the kind and options of the layer, "gru(input_size=3, hidden_size=8, layers=2)".
  virtual std::string summary() const { return kind(); }
  /// Computes the output for x. Layers override it; callers call the layer itself, which checks the context first.
  virtual Tensor forward(const Tensor& x, const Context& context) const = 0;
  /// Returns whether the layer declares that a step's output depends only on that step's input and on carried states.
  /// If false, a stream traces the layer and finds out by itself.
  virtual bool causal() const { return false; }
  /// Returns whether the layer declares that it streams, as causal layers do. A layer that looks k steps ahead streams,
  /// too: its outputs come k steps later, and the last ones from `Stream::finish`.
  virtual bool streams() const { return causal(); }
  /// Returns the width and dtype of the input rows [B, width] that the layer takes at each step of a stream.
  virtual StepInput step_input() const;
  /// Returns descriptions of the states that the layer carries from one step of a stream to the next, for input rows of
  /// the type `in`. Layers whose program does not show their states override it; the default is none.
  virtual std::vector<StepState> states(const StepRows& in) const;
  /// Computes one step of `forward` in operations: x [B, D] (tokens: i64 [B]) and the states -> y [B, N] and the states
  /// after the step, bit for bit like `forward`. Override it together with `states`. A stream traces it once and runs
  /// the program (nn/stream/stream.h). If a state grows, the number of steps that each row has made, i64 [B], follows
  /// the states. If neither `states` nor `step` is overridden, a stream finds the step in `forward`, traced over time;
  /// the step of a layer that carries nothing is `forward` on [B, 1, D].
  ///
  ///   std::vector<StepState> states(const StepRows& in) const override {
  ///     return {{.name = "before", .shape = {in.batch, in.width}, .dtype = in.dtype}};
  ///   }
  ///   StepResult step(const Tensor& x, const Tensors& states) const override { return {x - states[0], {x}}; }
  virtual StepResult step(const Tensor& x, const Tensors& states) const;
  /// Returns at which input steps a stream gives outputs; by default, one with each input. The pace of a chain follows
  /// from its layers.
  virtual Pace pace() const { return {}; }
  /// Returns the lengths of the output, i64 [B], for input lengths i64 [B]: as many steps as the row alone would have.
  /// For a window that is floor((L + padding - dilation (kernel - 1) - 1) / stride) + 1, or 0 for a shorter row.
  ///
  ///   const Tensor y = net(x, {.lengths = lengths});
  ///   loss = ctc_loss(y, net.lengths_after(lengths), ...);
  virtual Tensor lengths_after(const Tensor& lengths) const;
  /// Computes one step by calling `step` with checked states, under this layer's name; layers that contain this one
  /// call it. Throws ShapeError when the states, given or returned, have other types than `states` says, PaceError for
  /// a layer with a stride or delay, ValueError for a layer without a step.
  StepResult advance(const Tensor& x, const Tensors& states) const;
  /// Adds the layer's steps to those of a stream and returns the value that they make of `x` (nn/step_graph.h). Layers
  /// with a kernel for a step, and layers made of others, override it; by default a stream runs the program of `step`,
  /// or the one that it finds in `forward`.
  virtual std::size_t add_steps(StepGraph& graph, std::size_t x) const;
  /// Returns the program that the default of `add_steps` runs. If it is null, with the reason in `why`, a stream runs
  /// the layer on tensors, provided that it `streams()`.
  std::unique_ptr<Step> program_step(const StepRows& in, std::string& why) const {
    return traced_step_ ? traced_step_(*this, in, why) : nullptr;
  }
  /// Returns whether the layer reads `context.state` and `context.cell`; if not, calls with them throw ValueError.
  virtual bool takes_state() const { return false; }
  /// Returns whether the layer reads `context.lengths`, and so checks them itself. If not, a call checks them against
  /// sequences [B, T, D] or tokens [B, T]; a layer whose steps lie along another axis returns true.
  virtual bool reads_lengths() const { return false; }
  /// Returns an independent copy of the layer: same options, variables of its own with the same values.
  virtual std::unique_ptr<Layer> clone() const = 0;

  Tensor operator()(const Tensor& x) const { return (*this)(x, Context{}); }
  /// Returns `forward(x, context)` after checking the context. Throws ValueError for an initial state that the layer
  /// does not take, and where a layer with states would silently begin from zeros in every call: with a carry that
  /// lacks them, since the layer has not registered them by `Module::carries`, and in a stream's step of an enclosing
  /// layer that declares no states itself. Throws ShapeError for lengths outside 0..T, whether anything reads them or
  /// not; calls of layers within this one do not check the lengths again.
  Tensor operator()(const Tensor& x, const Context& context) const {
    (void)whole();
    return inside([&] {
      if (context.state.defined() || context.cell.defined()) check_takes_state();
      check_goes_on(x, context);
      if (detail::call_observer()) [[unlikely]]
        return forward_seen(x, context);
      if (context.lengths.defined() && !reads_lengths()) [[unlikely]]
        return forward_checked(x, context);
      return forward(x, context);
    });
  }
  /// Returns the layer as a compiled function of its input (compile/compile.h): the same bits from a planned, fused
  /// program. It follows the layer's parameters and training mode. The layer must outlive it and must not be moved.
  auto compiled() const& {
    return compile([this](const Tensor& x) { return (*this)(x); });
  }
  auto compiled() const&& = delete;
  /// Returns a stream that runs the layer step by step on `batch` sequences at once, with a copy of its present weights
  /// (nn/stream/stream.h). Throws ValueError for a layer that cannot be streamed.
  Stream stream(std::int64_t batch = 1) const;

 protected:
  /// Throws ValueError unless the layer takes an initial state.
  void check_takes_state() const;
  /// Returns whether the output for x, a step or a piece of a sequence, depends on what came before it.
  virtual bool looks_back(const Tensor& x) const;
  /// Throws ValueError where a call with this context continues a sequence but would begin from zeros (operator()).
  void check_goes_on(const Tensor& x, const Context& context) const {
    if (context.carry || detail::in_single_step()) [[unlikely]]
      check_carries(x, context);
  }

 private:
  /// Returns whether the layer has only the states of the layers that it calls, whose own calls check them.
  virtual bool only_chains() const { return false; }
  void check_carries(const Tensor& x, const Context& context) const;
  /// Checks the lengths, unless an outer call has, and returns `forward`.
  Tensor forward_checked(const Tensor& x, const Context& context) const;
  /// Returns what `call_observer` makes of `forward`.
  Tensor forward_seen(const Tensor& x, const Context& context) const;

  std::unique_ptr<Step> (*traced_step_)(const Layer&, const StepRows&, std::string&) = nullptr;
};

/// Copies the values of all parameters, buffers and states (such as the counters of dropout) of one module to those of
/// the same names in another. Throws Error when names, shapes or dtypes differ, and when `from` has no value yet for a
/// variable that has one in `to`; nothing has changed then.
void copy_values(const Module& from, const Module& to);

}  // namespace ferrite::nn
