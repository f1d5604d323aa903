/// Makes streams of programs over time, which are traced on a few steps, analysed, and run as an open scan.
#include "ferrite/exchange/program_stream.h"

#include <algorithm>
#include <cstring>

#include "ferrite/compile/open_scan.h"
#include "ferrite/compile/stream_program.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange {
namespace {

using ferrite::detail::FrameStates;
using ferrite::detail::OpenScan;
using ferrite::detail::StreamProgram;

/// Number of steps that are traced, which is rarely the extent of another axis.
constexpr std::int64_t kTraced = 11;

std::size_t bytes_of(const Spec& s) { return static_cast<std::size_t>(s.shape.numel() * size_of(s.dtype)); }

Spec with_steps(const ProgramInput& in, std::int64_t steps) {
  Spec s = in.step;
  if (in.time_axis >= 0) s.shape[in.time_axis] = steps;
  return s;
}

void check_inputs(std::span<const ProgramInput> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [step, axis] = inputs[i];
    if (axis < -1 || axis >= step.shape.rank() || (axis >= 0 && step.shape[axis] != 1))
      throw ShapeError("stream: input " + std::to_string(i) + " is " + step.str() + " in each step, so axis " +
                       std::to_string(axis) + " is not the time axis; it must have extent 1");
  }
}

StreamProgram frames_of(const ProgramStream::Program& f, std::span<const ProgramInput> inputs) {
  std::vector<Spec> specs;
  std::vector<int> axes;
  for (const ProgramInput& in : inputs) {
    specs.push_back(with_steps(in, kTraced));
    axes.push_back(in.time_axis);
  }
  const NewFrame frame;
  return StreamProgram(trace(f, specs), axes, kTraced);
}

}  // namespace

struct ProgramStream::Impl {
  Impl(const Program& f, std::span<const ProgramInput> given, const ProgramStreamOptions& options)
      : program(f), inputs(given.begin(), given.end()), states(options.states), frames(frames_of(f, inputs)) {
    for (const auto& [input, output] : states)
      if (output >= frames.outputs().size() || frames.outputs()[output].axis >= 0)
        throw ValueError("stream: output " + std::to_string(output) +
                         " cannot be a state: it has an axis of time or is not there");
    open();
  }
  Impl(const Impl& o) : program(o.program), inputs(o.inputs), states(o.states), frames(o.frames), x_of(o.x_of) {
    scan = std::make_unique<OpenScan>(*o.scan);
  }
  Impl& operator=(const Impl&) = delete;

  Program program;
  std::vector<ProgramInput> inputs;
  std::vector<std::pair<std::size_t, std::size_t>> states;
  StreamProgram frames;
  std::unique_ptr<OpenScan> scan;
  std::vector<int> x_of;  ///< number of the x that each input is, -1 for a state

  bool is_state(std::size_t input) const {
    return std::ranges::any_of(states, [&](const auto& s) { return s.first == input; });
  }

  void open() {
    std::vector<Spec> xs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      x_of.push_back(is_state(i) ? -1 : static_cast<int>(xs.size()));
      if (!is_state(i)) xs.push_back(inputs[i].step);
    }
    scan = std::make_unique<OpenScan>([this](const Tensors& carry, const Tensors& x) { return step(carry, x); },
                                      state_specs(), xs);
  }

  ScanStep step(const Tensors& carry, const Tensors& x) const {
    const std::size_t held = frames.states().size();
    FrameStates s;
    for (std::size_t k = 0; k < held; ++k) s.now.push_back(carry[k]);
    s.next = s.now;
    Tensors in;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      in.push_back(x_of[i] >= 0 ? x[static_cast<std::size_t>(x_of[i])] : Tensor());
    for (std::size_t k = 0; k < states.size(); ++k) in[states[k].first] = carry[held + k];
    ScanStep out{{}, frames.step(in, s)};
    for (const Tensor& t : s.next) out.carry.push_back(t);
    for (const auto& [input, output] : states) out.carry.push_back(out.y[output]);
    return out;
  }

  std::vector<Spec> state_specs() const {
    std::vector<Spec> specs;
    for (const StreamProgram::State& s : frames.states()) specs.push_back(s.first.spec());
    for (const auto& [input, output] : states) specs.push_back(inputs[input].step);
    return specs;
  }

  void begin() {
    const std::size_t held = frames.states().size();
    for (std::size_t k = 0; k < held; ++k) {
      const Tensor& first = frames.states()[k].first;
      std::memcpy(scan->carry(k), first.raw(), bytes_of(first.spec()));
    }
    for (std::size_t k = 0; k < states.size(); ++k)
      std::memset(scan->carry(held + k), 0, bytes_of(inputs[states[k].first].step));
  }
};

namespace {

void check_states(std::span<const ProgramInput> inputs, const ProgramStreamOptions& options) {
  for (std::size_t k = 0; k < options.states.size(); ++k) {
    const std::size_t input = options.states[k].first;
    if (input >= inputs.size() || inputs[input].time_axis >= 0)
      throw ValueError("stream: input " + std::to_string(input) + " cannot be a state: it " +
                       (input < inputs.size() ? "has an axis of time" : "is not there"));
    for (std::size_t before = 0; before < k; ++before)
      if (options.states[before].first == input)
        throw ValueError("stream: input " + std::to_string(input) + " is a state twice");
  }
}

bool same_bits(const Tensor& a, const std::byte* b) {
  const Tensor whole = contiguous(a);
  return std::memcmp(whole.raw(), b, bytes_of(whole.spec())) == 0;
}

/// Returns values for an input: random floats in -1..1, zeros of other types.
Tensor any_values(const Spec& s, std::uint64_t seed) {
  return is_float(s.dtype) ? cast(uniform(s.shape, {.seed = seed}, -1, 1), s.dtype) : zeros(s.shape, s.dtype);
}

}  // namespace

ProgramStream::ProgramStream(const Program& program, std::span<const ProgramInput> inputs,
                             const ProgramStreamOptions& options) {
  check_inputs(inputs);
  check_states(inputs, options);
  const NewFrame frame;
  impl_ = std::make_unique<Impl>(program, inputs, options);
  reset();
  if (!options.verify) return;
  // Compares the whole program, on a number of steps that was not traced, with the steps, on two sequences.
  constexpr std::int64_t kSteps = 2 * kTraced + 1;
  Tensors whole;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    whole.push_back(impl_->is_state(i) ? zeros(inputs[i].step.shape, inputs[i].step.dtype)
                                       : any_values(with_steps(inputs[i], kSteps), i + 1));
  if (std::ranges::none_of(inputs, [](const ProgramInput& in) { return in.time_axis >= 0; })) return;
  const Tensors expected = program(whole);
  for (int round = 0; round < 2; ++round, reset()) {
    for (std::int64_t s = 0; s < kSteps; ++s) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (impl_->is_state(i)) continue;
        const int axis = inputs[i].time_axis;
        const Tensor one = contiguous(axis < 0 ? whole[i] : slice(whole[i], axis, s, s + 1));
        std::memcpy(input_memory(i, one.dtype()), one.raw(), bytes_of(one.spec()));
      }
      step();
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const int axis = impl_->frames.outputs()[k].axis;
        if (axis < 0 && s + 1 < kSteps) continue;
        const Tensor y = axis < 0 ? expected[k] : slice(expected[k], axis, s, s + 1);
        if (y.spec() != output_spec(k) || !same_bits(y, impl_->scan->y(k)))
          throw Error("stream: output " + std::to_string(k) + " of step " + std::to_string(s) +
                      " is not that of the whole program: it depends on the number of steps, or on more than the "
                      "steps before");
      }
    }
  }
}

ProgramStream::ProgramStream(ProgramStream&&) noexcept = default;
ProgramStream& ProgramStream::operator=(ProgramStream&&) noexcept = default;
ProgramStream::~ProgramStream() = default;

const Spec& ProgramStream::input_spec(std::size_t i) const {
  if (i >= impl_->inputs.size()) throw ValueError("stream: there is no input " + std::to_string(i));
  return impl_->inputs[i].step;
}
std::size_t ProgramStream::outputs() const { return impl_->frames.outputs().size(); }
const Spec& ProgramStream::output_spec(std::size_t i) const {
  if (i >= impl_->frames.outputs().size()) throw ValueError("stream: there is no output " + std::to_string(i));
  return impl_->scan->y_spec(i);
}

void* ProgramStream::input_memory(std::size_t i, Dtype dtype) {
  if (input_spec(i).dtype != dtype)
    throw DtypeError("stream: input " + std::to_string(i) + " is " + input_spec(i).str() + ", written as " +
                     std::string(name_of(dtype)));
  if (impl_->x_of[i] < 0) throw ValueError("stream: input " + std::to_string(i) + " is a state; it is not written");
  return impl_->scan->x(static_cast<std::size_t>(impl_->x_of[i]));
}
const void* ProgramStream::output_memory(std::size_t i, Dtype dtype) const {
  if (output_spec(i).dtype != dtype)
    throw DtypeError("stream: output " + std::to_string(i) + " is " + output_spec(i).str() + ", read as " +
                     std::string(name_of(dtype)));
  return impl_->scan->y(i);
}

void ProgramStream::step() {
  impl_->scan->run();
  impl_->scan->commit();
}

void ProgramStream::reset() { impl_->begin(); }

ProgramStream::ProgramStream() = default;

ProgramStream ProgramStream::clone() const {
  ProgramStream copy;
  const NewFrame frame;
  copy.impl_ = std::make_unique<Impl>(*impl_);
  return copy;
}

std::vector<Tensor> ProgramStream::save() const {
  const NewFrame frame;
  std::vector<Tensor> saved;
  for (const Spec& s : impl_->state_specs()) {
    saved.push_back(zeros(s.shape, s.dtype));
    std::memcpy(ferrite::detail::Writer::raw(saved.back()), impl_->scan->carry(saved.size() - 1), bytes_of(s));
  }
  return saved;
}

void ProgramStream::restore(std::span<const Tensor> states) {
  const NewFrame frame;
  const std::vector<Spec> specs = impl_->state_specs();
  if (states.size() != specs.size())
    throw ValueError("stream: " + std::to_string(states.size()) + " states given, the program has " +
                     std::to_string(specs.size()));
  for (std::size_t k = 0; k < specs.size(); ++k)
    if (states[k].spec() != specs[k])
      throw ShapeError("stream: holds a state " + specs[k].str() + ", got " + states[k].spec().str());
  for (std::size_t k = 0; k < specs.size(); ++k) {
    const Tensor dense = contiguous(states[k]);
    std::memcpy(impl_->scan->carry(k), dense.raw(), bytes_of(specs[k]));
  }
}

void ProgramStream::refresh() {
  StreamProgram now = frames_of(impl_->program, impl_->inputs);
  const auto same = [](const StreamProgram::State& a, const StreamProgram::State& b) {
    return a.first.spec() == b.first.spec();
  };
  if (!std::ranges::equal(now.states(), impl_->frames.states(), same))
    throw ValueError("stream: with its present parameters the program carries other states; make a new stream");
  impl_->frames = std::move(now);
  impl_->scan->refresh();
}

std::int64_t ProgramStream::state_bytes() const {
  std::size_t bytes = 0;
  for (const Spec& s : impl_->state_specs()) bytes += bytes_of(s);
  return static_cast<std::int64_t>(bytes);
}

std::string ProgramStream::report() const {
  std::string text;
  for (const StreamProgram::State& s : impl_->frames.states()) text += s.words + ", " + s.first.spec().str() + "\n";
  for (const auto& [input, output] : impl_->states)
    text += "input " + std::to_string(input) + ": output " + std::to_string(output) + " of the step before, " +
            impl_->inputs[input].step.str() + "\n";
  return text;
}

}  // namespace ferrite::exchange
