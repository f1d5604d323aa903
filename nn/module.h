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
#include "ferrite/tensor/variable.h"

namespace ferrite::nn {

class Carry;
class Replicas;
class Stream;

/// What a call carries besides its input; empty by default and passed on by containers.
struct Context {
  /// i64 [B]: how many steps of each sequence count; undefined: all T. A chain passes on those that are left behind
  /// layers that change the number of steps (Layer::lengths_after).
  Tensor lengths{};
  /// bool [B, T]: the states of layers start anew before these steps; undefined: never. Behind a stride, before the
  /// first step left at or after them.
  Tensor reset_mask{};
  /// Initial state of one recurrent layer, and an LSTM's initial memory; undefined: zeros. A chain refuses them.
  Tensor state{};
  Tensor cell{};
  /// Where layers find and leave the states that they carry (nn/carry.h); null: nowhere.
  const Carry* carry = nullptr;
  /// Over whose batches batch norms take their numbers while training (nn/replicas.h); null: over their own alone.
  const Replicas* replicas = nullptr;
};

/// A variable under its dotted name in a model.
template <class C>
struct Named {
  std::string name;
  C variable{};
};

/// A number of a layer that decides what it computes though no variable holds it: "norm.epsilon".
struct Setting {
  std::string name;  ///< dotted, as those of variables
  double value = 0;
};

/// A state that a layer of a model can carry from one call to the next (nn/carry.h): [layers, B, width].
struct CarriedState {
  std::string name;                   ///< "encoder.gru.h"
  std::shared_ptr<const void> layer;  ///< identity of the layer, which may be moved
  std::int64_t layers = 1;
  std::int64_t width = 0;
  Dtype dtype = Dtype::f32;
};

/// Something with named parameters. Move-only; its variables are shared handles, so a module that holds others
/// registers them once with `adopt` and may then be moved freely. Reading a module from several threads is safe.
///
///   struct Translator : nn::Module {
///     nn::Gru encoder{29, 64};
///     nn::Linear head{64, 74};
///     explicit Translator(std::uint64_t seed) : Module({.seed = seed}) { adopt("encoder", encoder), adopt("head",
///     head); } Tensor forward(const Tensor& x) const { return head(encoder(x)); }
///   };
class Module {
 public:
  virtual ~Module() = default;

  /// All parameters, own and adopted, in order of registration; one held under two names (tied) stands twice.
  const std::vector<Named<Parameter>>& named_parameters() const& { return whole().parameters_; }
  const std::vector<Named<Buffer>>& named_buffers() const& { return whole().buffers_; }
  const std::vector<Named<State>>& named_states() const& { return whole().states_; }
  std::vector<Named<Parameter>> named_parameters() const&& { return whole().parameters_; }
  std::vector<Named<Buffer>> named_buffers() const&& { return whole().buffers_; }
  std::vector<Named<State>> named_states() const&& { return whole().states_; }
  /// What the layers in it carry from call to call.
  const std::vector<CarriedState>& carried_states() const& { return carried_; }
  std::vector<CarriedState> carried_states() const&& { return carried_; }
  /// The numbers of the layers in it that files of other programs give beside weights: `epsilon` of normalisations,
  /// `reset_after` of a GRU, and `stride`, `dilation`, `padding_left` and `padding_right` of convolutions over time.
  /// io::load compares those that a file has.
  const std::vector<Setting>& settings() const& { return settings_; }
  std::vector<Setting> settings() const&& { return settings_; }
  /// Whether a state is carried by this very layer.
  bool is_layer_of(const CarriedState& s) const { return s.layer == mode_; }
  /// Every parameter once, tied ones too, as torch.nn.Module.parameters().
  std::vector<Parameter> parameters() const;
  /// Those of one part, each once: whose full names begin with "<part>.", or the one of that very name. To freeze a
  /// part, or to train it at a rate of its own:
  ///
  ///   adam.freeze(net.parameters("encoder"));
  ///
  /// Throws ValueError where there is none.
  std::vector<Parameter> parameters(std::string_view part) const;
  /// Gives every parameter and state that has no value yet its first one, from the seed and its full name, as adopting
  /// it in a module with that seed and prefix would. Throws ValueError for an init without a seed.
  void draw(const Init& init) const;
  /// Elements of `parameters()`.
  std::int64_t parameter_count() const;
  /// Training mode, on from the start: only `Dropout` and the like care. Told to all adopted modules.
  void train(bool on = true) const;
  void eval() const { train(false); }
  bool training() const { return ferrite::detail::read_flag(whole().mode_); }
  /// The modes of this module and of all that it adopted, and putting them back: a part that was in evaluation mode
  /// before `eval()` stays so. Throws ValueError for another number of modes.
  std::vector<bool> modes() const;
  void set_modes(const std::vector<bool>& modes) const;
  /// Where it stands in the outermost module that holds it, as the names of its parameters begin there: "encoder.gru";
  /// empty for one that no module has adopted. Of several modules that adopted it the first one counts.
  std::string path() const;
  /// Goes by the path of another module from now on: a copy that runs in its place.
  void take_path(const Module& from) const;

 protected:
  /// With a seed, what it adopts and registers without one of its own is drawn from this one and its full name here,
  /// "<prefix>.<name>". Without, that is left to the module that adopts this one.
  explicit Module(Init init = {}) : init_(std::move(init)), modes_{mode_} {}
  Module(Module&&) = default;
  /// Throws ValueError when another module adopted this one: that would go on with the old variables.
  Module& operator=(Module&&) = default;

  /// What f gives, run as a part of this module: what a tracer records meanwhile carries the module's path
  /// (Graph::Node::scope), a Profile counts it there, and an Error names it (Error::layer). Layers run so when they are
  /// called, recurrent layers and variables in `run` and `step`, too. For modules with functions of their own:
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

  /// This module. Throws Error when it was moved from, and so has no variables.
  const Module& whole() const {
    if (!mode_) [[unlikely]]
      throw_moved_from();
    return *this;
  }

  /// Registers a parameter of this module, filled from the stream of its full name; without a seed in `init` from that
  /// of the module, and without one there, later: see Init. Throws ValueError, as `buffer` and `state` do, for a name
  /// that is taken.
  Parameter parameter(std::string_view name, const Shape& shape, const Fill& fill, const Init& init,
                      FileLayout layout = FileLayout::same);
  /// A parameter that is drawn by a function of its own.
  Parameter parameter(std::string_view name, const Spec& spec, Variable::Draw draw, const Init& init,
                      FileLayout layout = FileLayout::same);
  Buffer buffer(std::string_view name, Tensor value);
  /// A buffer that is drawn as a parameter is.
  Buffer buffer(std::string_view name, const Spec& spec, Variable::Draw draw, const Init& init);
  State state(std::string_view name, Tensor value);
  /// A state that is drawn as a parameter is.
  State state(std::string_view name, const Spec& spec, Variable::Draw draw, const Init& init);
  /// Registers a state [layers, B, width] that this layer carries from call to call: in `forward` it reads and assigns
  /// that of `context.carry->states_of(*this, B)` (nn/carry.h).
  void carries(std::string_view name, std::int64_t layers, std::int64_t width, Dtype dtype);
  /// Registers a number that decides what this layer computes (`settings`), so that a file that says another one is
  /// refused. Throws ValueError after another module has adopted this one.
  void setting(std::string_view name, double value);
  /// Registers the variables of another module under "<name>.", and draws those without a value if this one has a seed.
  /// Throws ValueError when that gives two parameters, buffers or states one full name, for the module itself, and when
  /// another module has adopted this one; nothing is registered then.
  void adopt(std::string_view name, const Module& child) { adopt(name, child, {}); }
  /// The same without one parameter of the child, by its name there: this module then registers it under another name,
  /// by `parameter(name, that parameter)`.
  void adopt(std::string_view name, const Module& child, std::string_view left_out);
  Parameter parameter(std::string_view name, const Parameter& left_out);
  /// Takes over which parameters of `from` are tied and whether it and what it adopted are training. Both must have
  /// registered alike, as clones have.
  void take_after(const Module& from) const;

 private:
  using Mode = std::shared_ptr<std::atomic<bool>>;
  /// Whether another module registered what this one holds. Stands first, so that a refused assignment changes nothing.
  struct Adoption {
    Adoption() = default;
    Adoption(Adoption&&) = default;
    Adoption& operator=(Adoption&& o);
    bool done = false;
  };
  /// What a module shares with those that it adopts: where it stands. Also holds whether it trains.
  struct Place {
    std::atomic<bool> training = true;
    std::string name;
    std::shared_ptr<const Place> in;  ///< of the module that adopted it first
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
  std::unordered_set<std::size_t> names_;  ///< hashes of all names of variables

  template <class C>
  void check_free(const std::vector<Named<C>>& own, const char* where, const std::string& name) const;
  template <class C>
  C registered(std::vector<Named<C>>& list, std::string_view name, C variable);

  /// Throws ValueError when another module has adopted this one: it holds what was registered then.
  void check_open(std::string_view name) const;
  /// To which layer what it computes belongs: without a path, to the one that runs already.
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
/// Whether this thread calls a layer that says it carries nothing with the one step [B, 1, D] of a stream.
extern constinit thread_local bool in_single_step;

/// Sees the calls of layers inside a layer whose steps are looked for.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void begins(const Layer& layer, const Tensor& x, const Context& context) = 0;
  /// What the call that began last gives in place of y.
  virtual Tensor gives(const Tensor& y) = 0;
  /// It has thrown.
  virtual void fails() = 0;
};
/// That of this thread; null: none.
extern constinit thread_local CallObserver* call_observer;

/// The step of a layer that adds none itself: a program of `Layer::step`, or what is found in `forward`, traced once.
/// Null: there is none, for the reason in `why`.
std::unique_ptr<Step> traced_step(const Layer& layer, const StepRows& in, std::string& why);

/// Says that `add_steps` is all that a stream asks a layer for, so that a program with such layers alone has nothing of
/// what traces the others.
struct OwnSteps {};
}  // namespace detail

/// A module that maps one tensor to one tensor, and so fits into a chain.
class Layer : public Module {
 protected:
  explicit Layer(Init init = {}) : Module(std::move(init)), traced_step_(detail::traced_step) {}
  Layer(Init init, detail::OwnSteps) : Module(std::move(init)) {}

 public:
  /// The word for it: "gru", "linear".
  virtual std::string kind() const = 0;
  /// The layer in words: its kind and options, "gru(input_size=3, hidden_size=8, layers=2)".
  virtual std::string summary() const { return kind(); }
  virtual Tensor forward(const Tensor& x, const Context& context) const = 0;
  /// Whether the layer declares that a step's output depends on that step's input and on carried states alone. A stream
  /// of one that does not looks into its program.
  virtual bool causal() const { return false; }
  /// Whether the layer declares that it streams: a causal one, and one that looks a few steps ahead, whose stream gives
  /// its outputs so many steps later and the last ones by `Stream::finish`.
  virtual bool streams() const { return causal(); }
  /// What a step of a stream takes.
  virtual StepInput step_input() const;
  /// What the layer carries from one step of a stream to the next, for such rows; for layers whose program does not
  /// show it. None, where not overridden.
  virtual std::vector<StepState> states(const StepRows& in) const;
  /// One step of `forward` in operations: x [B, D], of tokens i64 [B], and the states -> y [B, N] and the states after
  /// the step, with the bits of `forward`. A stream traces it once and runs the program (nn/stream/stream.h). Where a
  /// state grows, i64 [B] follows the states: how many steps each row has made. Where neither is overridden, a stream
  /// finds the step in `forward`, traced over time; a step of a layer that carries nothing is `forward` on [B, 1, D].
  ///
  ///   std::vector<StepState> states(const StepRows& in) const override {
  ///     return {{.name = "before", .shape = {in.batch, in.width}, .dtype = in.dtype}};
  ///   }
  ///   StepResult step(const Tensor& x, const Tensors& states) const override { return {x - states[0], {x}}; }
  virtual StepResult step(const Tensor& x, const Tensors& states) const;
  /// When the outputs come: one with each input, where not overridden. Those of a chain follow from its layers'.
  virtual Pace pace() const { return {}; }
  /// How many steps of output rows of so many steps have, i64 [B] of the context's lengths: those that the row alone
  /// would have, floor((L + padding - dilation (kernel - 1) - 1) / stride) + 1 of a window; 0 for a row shorter than
  /// it.
  ///
  ///   const Tensor y = net(x, {.lengths = lengths});
  ///   loss = ctc_loss(y, net.lengths_after(lengths), ...);
  virtual Tensor lengths_after(const Tensor& lengths) const;
  /// `step`, run as a part of this layer: what layers call that contain others. Throws ShapeError for states of other
  /// types than `states` says, given or returned, ValueError for a layer without a step.
  StepResult advance(const Tensor& x, const Tensors& states) const;
  /// Adds the layer's steps to those of a stream and gives the value that they make of `x` (nn/step_graph.h). For
  /// layers that have a kernel for a step, and those that are made of others; where not overridden, a stream runs the
  /// program of `step`, or what it finds in `forward`.
  virtual std::size_t add_steps(StepGraph& graph, std::size_t x) const;
  /// That program; where it is null, the stream runs a layer that `streams()` on tensors.
  std::unique_ptr<Step> program_step(const StepRows& in, std::string& why) const {
    return traced_step_ ? traced_step_(*this, in, why) : nullptr;
  }
  /// Whether the layer reads `context.state` and `context.cell`. A layer that does not say so is not called with them.
  virtual bool takes_state() const { return false; }
  /// Whether the layer reads `context.lengths`, and so checks them itself. Those of a layer that does not say so are
  /// checked when it is called, as sequences [B, T, D] and tokens [B, T] have them; a layer whose steps are along
  /// another axis says so.
  virtual bool reads_lengths() const { return false; }
  /// An independent copy with the same values.
  virtual std::unique_ptr<Layer> clone() const = 0;

  Tensor operator()(const Tensor& x) const { return (*this)(x, Context{}); }
  /// Throws ValueError for an initial state that the layer does not take, and where a call would silently begin from
  /// zeros: with a carry in which the layer has registered nothing though it has `states`, and inside a step of a
  /// stream whose layer has not said what it carries. Throws ShapeError for lengths outside 0..T, once in all that a
  /// call runs, whether anything reads them or not.
  Tensor operator()(const Tensor& x, const Context& context) const {
    (void)whole();
    return inside([&] {
      if (context.state.defined() || context.cell.defined()) check_takes_state();
      check_goes_on(x, context);
      if (detail::call_observer) [[unlikely]]
        return forward_seen(x, context);
      if (context.lengths.defined() && !reads_lengths()) [[unlikely]]
        return forward_checked(x, context);
      return forward(x, context);
    });
  }
  /// The layer as a compiled function of its input (compile/compile.h): the same bits from a planned, fused program. It
  /// follows the layer's parameters and its training mode; the layer must outlive it and stay where it is.
  auto compiled() const& {
    return compile([this](const Tensor& x) { return (*this)(x); });
  }
  auto compiled() const&& = delete;
  /// Runs the layer step by step on its present weights (nn/stream/stream.h). Throws ValueError where it looks at other
  /// steps than those before.
  Stream stream(std::int64_t batch = 1) const;

 protected:
  /// Throws ValueError unless the layer takes an initial state.
  void check_takes_state() const;
  /// Whether a call with x, a step or a piece of a sequence, needs what came before it.
  virtual bool looks_back(const Tensor& x) const;
  /// Throws ValueError where a call with this context would begin from zeros though it goes on (operator()).
  void check_goes_on(const Tensor& x, const Context& context) const {
    if (context.carry || detail::in_single_step) [[unlikely]]
      check_carries(x, context);
  }

 private:
  /// Whether its states are those of the layers that it calls, which are checked themselves.
  virtual bool only_chains() const { return false; }
  void check_carries(const Tensor& x, const Context& context) const;
  /// `forward` with lengths that nobody has checked yet.
  Tensor forward_checked(const Tensor& x, const Context& context) const;
  /// `forward` before the eyes of `call_observer`.
  Tensor forward_seen(const Tensor& x, const Context& context) const;

  std::unique_ptr<Step> (*traced_step_)(const Layer&, const StepRows&, std::string&) = nullptr;
};

/// Gives the variables of `to` the values of the variables of the same names in `from`. Throws Error when names, shapes
/// or dtypes differ; nothing has changed then.
void copy_values(const Module& from, const Module& to);

}  // namespace ferrite::nn
