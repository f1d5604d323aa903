/// The base of layers over sequences: lengths, resets, states and their layout.
#include "ferrite/nn/recurrent/sequence_layer.h"

#include "ferrite/nn/carry.h"
#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/recurrent/detail/recurrent_layers.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

Shape with_rows(const Shape& row, std::int64_t batch) {
  Shape s = row;
  s.insert(0, batch);
  return s;
}

}  // namespace

SequenceLayer::SequenceLayer(std::string_view name, std::int64_t input_size, std::vector<RowState> states,
                             const Init& init)
    : name_(name),
      lengths_name_(Label::of(std::string(name) + ": a length of")),
      input_size_(input_size),
      states_(std::move(states)),
      dtype_(init.dtype) {
  for (const RowState& s : states_) {
    state_size_ += s.shape.numel();
    carries(s.name, 1, s.shape.numel(), init.dtype);
  }
}

void SequenceLayer::check_input(const Tensor& x, int rank, const char* shape) const {
  if (x.rank() != rank || x.shape()[-1] != input_size_)
    throw ShapeError(std::string(name_) + ": expects " + shape + std::to_string(input_size_) + "], got " +
                     x.shape().str());
  detail::check_dtype(std::string(name_), x, dtype_, "input");
}

Tensors SequenceLayer::initial(const Tensor& given, std::int64_t batch, bool batched) const {
  Tensors all;
  if (!given.defined()) {
    for (const RowState& s : states_) all.push_back(zeros(with_rows(s.shape, batch), dtype_));
    return all;
  }
  detail::check_dtype(std::string(name_), given, dtype_, "a state");
  const Shape wanted = batched ? Shape{batch, state_size_} : Shape{state_size_};
  if (given.shape() != wanted)
    throw ShapeError(std::string(name_) + ": expects a state " + wanted.str() + ", got " + given.shape().str());
  const Tensor rows = batched ? given : unsqueeze(given, 0);
  std::int64_t at = 0;
  for (const RowState& s : states_) {
    const std::int64_t n = s.shape.numel();
    all.push_back(reshape(slice(rows, 1, at, at + n), with_rows(s.shape, batch)));
    at += n;
  }
  return all;
}

RecurrentResult SequenceLayer::run(const Tensor& x, const Context& context) const {
  (void)whole();
  return inside([&] {
    check_goes_on(x, context);
    const bool batched = x.rank() != 2;
    check_input(x, batched ? 3 : 2, batched ? "[B, T, " : "[T, ");
    return run_batch(batched ? x : unsqueeze(x, 0), context, batched);
  });
}

RecurrentResult SequenceLayer::run_batch(const Tensor& x, const Context& context, bool batched) const {
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  const auto refuse = [&](const std::string& what) { throw ValueError(std::string(name_) + ": " + what); };
  if (T == 0) throw ShapeError(std::string(name_) + ": the sequence has no steps: " + x.shape().str());
  if (context.cell.defined()) refuse("the context has an initial memory (cell), this layer has none; give its state");
  if (context.carry && context.state.defined())
    refuse("the context has both an initial state and a carry; give one of them");
  SequenceOptions options{.batch_first = true};
  if (context.lengths.defined()) options.lengths = detail::checked_lengths(lengths_name_, context.lengths, B, T);
  if (const Tensor& mask = context.reset_mask; mask.defined()) {
    if (mask.dtype() != Dtype::boolean || mask.shape() != Shape{B, T})
      throw ShapeError(std::string(name_) + ": expects a reset mask bool" + Shape{B, T}.str() + ", got " +
                       mask.spec().str());
    options.resets = mask;
  }
  Tensors states = initial(context.state, B, batched);
  const bool carried = context.carry && !states_.empty();
  const std::span<const State> carry = carried ? context.carry->states_of(*this, B) : std::span<const State>();
  for (std::size_t i = 0; i < carry.size(); ++i) states[i] = reshape(carry[i].value(), with_rows(states_[i].shape, B));

  Tensor y = run_sequence(ferrite::detail::padding_replaced(x, options.lengths, true), options, states);
  if (options.lengths.defined()) y = where(unsqueeze(lt(arange(T), unsqueeze(options.lengths, 1)), 2), y, 0);

  Tensors flat;
  for (std::size_t i = 0; i < states.size(); ++i) flat.push_back(reshape(states[i], {B, states_[i].shape.numel()}));
  for (std::size_t i = 0; i < carry.size(); ++i) carry[i].assign(contiguous(unsqueeze(flat[i], 0)));
  Tensor state = flat.empty() ? Tensor() : flat.size() == 1 ? std::move(flat[0]) : concat(flat, 1);
  if (batched) return {std::move(y), std::move(state)};
  return {squeeze(y, 0), state.defined() ? squeeze(state, 0) : state};
}

Tensor SequenceLayer::run_step(const Tensor& x, Tensors& states) const {
  return squeeze(run_sequence(unsqueeze(x, 1), {.batch_first = true}, states), 1);
}

std::vector<StepState> SequenceLayer::states(const StepRows& in) const {
  std::vector<StepState> all;
  for (const RowState& s : states_)
    all.push_back({.name = s.name, .shape = with_rows(s.shape, in.batch), .dtype = dtype_});
  return all;
}

StepResult SequenceLayer::step(const Tensor& x, const Tensors& states) const {
  check_input(x, 2, "[B, ");
  StepResult r{{}, states};
  r.y = run_step(x, r.states);
  return r;
}

}  // namespace ferrite::nn
