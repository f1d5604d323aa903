/// The search for the step of a layer in its `forward`.
#include <array>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "ferrite/compile/stream_program.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/detail/traced_layer.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::FrameStates;
using ferrite::detail::StreamProgram;

/// Numbers of steps at which a layer is traced and run, chosen so that other axes seldom have these extents. Later
/// trials have more steps, for windows and strides that need them or need whole groups of steps; the last one has
/// fewer, for layers that take no more. Except for groups, the numbers differ by numbers without a common divisor, so
/// that a layer which counts modulo something is noticed.
struct Trial {
  std::int64_t few, more;  ///< numbers of steps at which the layer is traced
  std::int64_t proof;      ///< number of steps at which the layer is compared with its steps
  std::int64_t least;      ///< minimum number of steps that each value must have in the trace at `few`
  bool groups = false;     ///< whether the steps are whole groups; then no other number may give another program
};
constexpr std::array kTrials = {Trial{11, 25, 38, 3}, Trial{48, 96, 144, 3, true}, Trial{211, 509, 734, 3},
                                Trial{2111, 5003, 7104, 3}, Trial{4, 7, 9, 1}};

constexpr int kTime = 1;  // the axis of time of x [B, T, D] and tokens [B, T]

StreamProgram program_of(const Graph& graph) {
  const NewFrame frame;
  const std::vector<int> axes(graph.inputs.size(), kTime);
  const std::int64_t steps = graph.values[graph.inputs[0]].shape[kTime];
  for (const ValueId v : graph.inputs)
    if (graph.values[v].shape[kTime] != steps)
      throw ValueError("stream: combines values of " + std::to_string(steps) + " and " +
                       std::to_string(graph.values[v].shape[kTime]) + " steps");
  try {
    StreamProgram program(graph, axes, steps);
    if (program.outputs()[0].axis != kTime)
      throw ValueError("stream: gives a result whose axis of time is not 1, [B, T, ...]");
    return program;
  } catch (const ShapeError& e) {  // an operation does not take a single step
    throw ValueError(e.what());
  }
}

/// Returns the axis of rows of a state: the one that grows by 1 with one row more; for a single row, one of extent 1.
int rows_of_state(const StreamProgram::State& s, const StreamProgram::State& more, std::int64_t batch) {
  const Shape a = s.first.shape(), b = more.first.shape();
  if (batch == 1 && a == b)
    for (int k = 0; k < a.rank(); ++k)
      if (a[k] == 1) return k;
  int rows = -1;
  for (int k = 0; a.rank() == b.rank() && k < a.rank(); ++k)
    if (a[k] != b[k]) rows = rows < 0 && b[k] == a[k] + 1 ? k : a.rank();
  if (rows < 0 || rows == a.rank())
    throw ValueError("stream: what a step carries depends on the number of steps, or not on that of rows: " + s.words +
                     ", " + s.first.spec().str() + " and " + more.first.spec().str());
  return rows;
}

std::vector<StepState> states_of(const StreamProgram& program, const Graph& more, std::int64_t batch) {
  if (program.states().empty()) return {};
  const StreamProgram other = program_of(more);
  if (program.states().size() != other.states().size())
    throw ValueError("stream: what a step carries depends on the number of steps or rows");
  std::vector<StepState> states;
  for (std::size_t i = 0; i < program.states().size(); ++i) {
    const StreamProgram::State& s = program.states()[i];
    states.push_back({.name = s.words,
                      .shape = s.first.shape(),
                      .dtype = s.first.dtype(),
                      .rows = rows_of_state(s, other.states()[i], batch)});
  }
  return states;
}

/// Returns the first values of the states of one row; all rows begin with the same values.
std::vector<Tensor> first_values(const StreamProgram& program, const std::vector<StepState>& states) {
  const NewFrame frame;
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < states.size(); ++i)
    values.push_back(contiguous(select(program.states()[i].first, states[i].rows, 0)));
  return values;
}

/// Turns n steps x [n B, D] into frames [B, n, ...], with the extents that they have in a program.
Tensor as_frames(const Tensor& x, Shape of_steps, std::int64_t n) {
  const std::int64_t B = of_steps[0];
  of_steps[kTime] = n;
  if (n == 1 || B == 1) return reshape(x, of_steps);
  std::swap(of_steps[0], of_steps[kTime]);
  return transpose(reshape(x, of_steps), 0, kTime);
}
Tensor as_rows(const Tensor& y) {
  const std::int64_t rows = y.shape()[0] * y.shape()[kTime];
  const Tensor by_step = y.shape()[0] == 1 || y.shape()[kTime] == 1 ? y : transpose(y, 0, kTime);
  return reshape(by_step, {rows, y.numel() / rows});
}

// ---- the proof -----------------------------------------------------------------------------------------

/// Returns test inputs [T, B, D]: random floats from `low` to 1, or alternating tokens 0 and 1.
Tensor any_steps(const StepRows& in, std::int64_t T, double low) {
  Spec x = spec_of(in);
  x.shape.insert(0, T);
  if (is_float(x.dtype)) return cast(uniform(x.shape, {.seed = 1}, low, 1), x.dtype);
  return cast(reshape(remainder(arange(x.shape.numel()), 2), x.shape), x.dtype);
}

/// Compares steps with the layer on more steps than were traced, where a layer that reads the last step of a sequence,
/// or its number of steps, gives other values.
class Proof {
 public:
  Proof(Step& step, const Layer& layer, const StepRows& in, std::int64_t T, double low)
      : step_(step),
        all_(static_cast<std::size_t>(in.batch), 1),
        y_((kBlock * bytes_of(step.result()) + 127) / 8),
        x_(contiguous(any_steps(in, T, low))),
        whole_(contiguous(transpose(layer(contiguous(transpose(x_, 0, 1))), 0, 1))) {}

  bool holds() {
    begin_states(step_);
    bool all = true;
    try {
      run_all();
    } catch (const CapacityError&) {  // a state is full: compare the steps before
      all = false;
    }
    begin_states(step_);
    return good_ && (at_ == bytes_of(whole_.spec()) || (!all && at_ > 0));
  }

 private:
  static constexpr std::int64_t kBlock = 16;

  void run_all() {
    const std::int64_t T = x_.shape()[0], bytes = bytes_of(x_.spec()) / T;
    StepMemory<double> room((kBlock * bytes + 127) / 8);
    for (std::int64_t t = 0; t < T && good_;) {
      std::int64_t n = step_.most_at_once() >= kBlock && !step_.skips() && T - t >= kBlock ? kBlock : 1;
      std::memcpy(room.get(), x_.raw() + t * bytes, static_cast<std::size_t>(n * bytes));
      const void* const x = room.get();
      if (n > 1 && step_.sure(n, &x) < n) n = 1;
      run(n, x);
      t += n;
    }
    for (std::int64_t i = 0; i < step_.finishing() && good_; ++i) {
      expect(step_.finish(all_.data(), i, y_.get()));
      step_.commit_rows(all_.data());
    }
  }
  void run(std::int64_t n, const void* x) {
    if (n > 1) {
      step_.run_several(n, &x, y_.get());
      return compare(n);
    }
    if (!step_.skips()) {
      step_.run(&x, y_.get());
      if (step_.commits()) step_.commit();
      return compare(1);
    }
    const Step::Rows rows = all_.data();
    expect(step_.run_rows(&rows, &x, y_.get()));
    step_.commit_rows(all_.data());
  }
  void expect(Step::Rows rows) {
    if (!rows) return;
    good_ = good_ && std::equal(all_.begin(), all_.end(), rows);
    compare(1);
  }
  void compare(std::int64_t n) {
    const std::int64_t bytes = n * bytes_of(step_.result());
    good_ = good_ && at_ + bytes <= bytes_of(whole_.spec()) &&
            std::memcmp(whole_.raw() + at_, y_.get(), static_cast<std::size_t>(bytes)) == 0;
    at_ += bytes;
  }

  Step& step_;
  std::vector<std::uint8_t> all_;
  StepMemory<double> y_;
  Tensor x_, whole_;
  std::int64_t at_ = 0;  ///< number of bytes compared so far
  bool good_ = true;
};

void prove(Step& step, const Layer& layer, const StepRows& in, std::int64_t T) {
  const NewFrame frame;
  std::optional<Proof> proof;
  try {
    proof.emplace(step, layer, in, T, -1);
  } catch (const Error&) {  // the layer may not take negative numbers
    proof.emplace(step, layer, in, T, 0);
  }
  if (!proof->holds())
    throw ValueError("stream: a step gives other numbers than the whole sequence, in which " + layer.kind() +
                     " reads its end, its beginning or its number of steps");
}

std::unique_ptr<Step> cut_step(const Layer& copy, const StepRows& in, CutLayer cut,
                               const CutLayer::Originals& originals = {}) {
  StepGraph graph(in);
  const StepGraph::Value y = cut.add_to(graph, originals);
  return std::move(graph).step(copy, y);
}

/// The programs of a layer traced on further numbers of steps, each once.
class Lengths {
 public:
  Lengths(const StepRows& in, std::int64_t few, const TracedLayer& traced) : in_(in), few_(few), calls_(traced.cut) {
    for (const Graph::Node& n : traced.graph.nodes) operations_.push_back(n.op);
  }
  /// Returns the program on k steps more, or null if the layer does not take that many. Throws ValueError if it applies
  /// other operations then.
  const Graph* at(const Layer& layer, std::int64_t k) {
    while (std::ssize(graphs_) < k) add(layer, few_ + std::ssize(graphs_) + 1);
    const std::optional<Graph>& g = graphs_[static_cast<std::size_t>(k) - 1];
    return g ? &*g : nullptr;
  }

  /// Frees the programs; they are traced again when needed.
  void forget() { graphs_.clear(); }

 private:
  void add(const Layer& layer, std::int64_t steps) {
    try {
      graphs_.emplace_back(TracedLayer(layer, in_, steps, calls_).graph);
    } catch (const ShapeError&) {
      graphs_.emplace_back();
      return;
    }
    const auto same = [](const Graph::Node& n, const Primitive* op) { return n.op == op; };
    const std::vector<Graph::Node>& nodes = graphs_.back()->nodes;
    if (std::equal(nodes.begin(), nodes.end(), operations_.begin(), operations_.end(), same)) return;
    graphs_.pop_back();
    throw ValueError("stream: " + layer.kind() + " computes something else for " + std::to_string(steps) + " steps");
  }

  StepRows in_;
  std::int64_t few_;
  std::vector<bool> calls_;
  std::vector<const Primitive*> operations_;
  std::vector<std::optional<Graph>> graphs_;
};

/// The choices by which a layer is traced and cut.
struct Manner {
  Trial trial;
  CutCalls calls;
  std::shared_ptr<Lengths> lengths;
  std::vector<ValueId> operations{};  ///< results of the operations that are cut out
};

CutLayer cut(const Layer& layer, const StepRows& in, const Manner& m, TracedLayer few) {
  // A single row takes its own shortcuts, so it is compared with a single row.
  const StepRows more = {in.batch > 1 ? in.batch + 1 : 1, in.width, in.dtype};
  TracedLayer longer(layer, more, m.trial.more, few.cut);
  const auto at = [&layer, lengths = m.lengths](std::int64_t k) { return lengths->at(layer, k); };
  for (std::int64_t k = 1; m.trial.groups && k < m.trial.few; ++k) (void)at(k);
  return {layer, in, more.batch, m.trial.least, std::move(few), std::move(longer), m.operations, at};
}

std::unique_ptr<Step> found_as(const Layer& layer, std::unique_ptr<Layer> copy, const StepRows& in, const Manner& m,
                               TracedLayer few) {
  const Layer& whole = *copy;
  const auto first = std::make_shared<std::optional<CutLayer>>(cut(whole, in, m, std::move(few)));
  const bool calls = (*first)->has_calls(), operations = !m.operations.empty();
  const auto taken = [first] { return std::move(*std::exchange(*first, std::nullopt)); };
  std::unique_ptr<Step> step;
  if (calls) {
    step = step_of_copy(layer, std::move(copy), [=](const Layer& of) {
      if (*first) {
        std::unique_ptr<Step> made = cut_step(of, in, taken());
        m.lengths->forget();
        return made;
      }
      Manner own = m;  // clones cut their own copies, on several threads
      own.lengths = std::make_shared<Lengths>(*m.lengths);
      return cut_step(of, in, cut(of, in, own, TracedLayer(of, in, m.trial.few, m.calls)));
    });
  } else {
    step = cut_step(whole, in, taken(), originals_of(layer, whole));
  }
  bool carries = calls;
  each_state(*step, [&carries](const StateMemory&) { carries = true; });
  if (carries || operations || !layer.causal()) prove(*step, *evaluating_copy(layer), in, m.trial.proof);
  return step;
}

/// Finds the step of a layer, and cuts out operations that stride or look ahead as it meets them.
std::unique_ptr<Step> found_as(const Layer& layer, std::unique_ptr<Layer> copy, const StepRows& in, const Trial& trial,
                               CutCalls calls, TracedLayer few) {
  Manner m{trial, calls, std::make_shared<Lengths>(in, trial.few, few)};
  for (;;) try {
      return found_as(layer, std::move(copy), in, m, std::move(few));
    } catch (const NotCutOut& e) {
      m.operations.push_back(e.value());
      copy = evaluating_copy(layer);
      few = TracedLayer(*copy, in, trial.few, calls);
    }
}

/// Tries several ways to cut a layer, because its parts may be steps in one way and not in another.
std::unique_ptr<Step> found_at(const Layer& layer, const StepRows& in, const Trial& trial) {
  std::exception_ptr why;
  std::vector<bool> before;
  for (const CutCalls calls : {CutCalls::own, CutCalls::all, CutCalls::none}) {
    std::unique_ptr<Layer> copy = evaluating_copy(layer);
    TracedLayer few(*copy, in, trial.few, calls);
    if (why && few.cut == before) continue;
    before = few.cut;
    try {
      return found_as(layer, std::move(copy), in, trial, calls, std::move(few));
    } catch (const ShapeError&) {
      throw;
    } catch (const Error&) {
      if (!why) why = std::current_exception();
    }
  }
  std::rethrow_exception(why);
}

}  // namespace

StepSource source_of_program(const std::string& kind, std::span<const StepRows> inputs, const Graph& few,
                             const Graph& more) {
  const auto program = std::make_shared<const StreamProgram>(program_of(few));
  const std::vector<StepState> states = states_of(*program, more, inputs[0].batch);
  std::vector<Shape> shapes;
  for (const ValueId v : few.inputs) shapes.push_back(few.values[v].shape);
  const auto steps = [program, shapes](const Tensors& x, const Tensors& given, std::int64_t n) -> StepResult {
    Tensors frames;
    for (std::size_t k = 0; k < shapes.size(); ++k) frames.push_back(as_frames(x[k], shapes[k], n));
    FrameStates s{given, given};
    const Tensor y = program->step(frames, s, n)[0];
    return {as_rows(y), s.next};
  };
  StepSource source{.kind = kind,
                    .inputs = {inputs.begin(), inputs.end()},
                    .states = states,
                    .steps = steps,
                    .initial = first_values(*program, states),
                    .single = false};
  // Weights may decide the frames before the first one, and whether constants are the same in all steps.
  if (!states.empty() || program->reads_constants_over_time())
    source.begin = [few, states] { return first_values(program_of(few), states); };
  return source;
}

std::unique_ptr<Step> found_step(const Layer& layer, const StepRows& in) {
  for (std::size_t i = 0; i + 1 < kTrials.size(); ++i) try {
      return found_at(layer, in, kTrials[i]);
    } catch (const ShapeError&) {  // the layer may need more steps
    }
  return found_at(layer, in, kTrials.back());
}

}  // namespace ferrite::nn::detail
