/// The LSTM and the container of `.nam` files as layers.
#include "ferrite/io/nam.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io {
namespace {

const NamLstmOptions& checked(const NamLstmOptions& o) {
  for (const std::int64_t n : {o.input_size, o.hidden_size, o.layers, o.out_channels})
    if (n < 1) throw ValueError("nam_lstm: sizes must be positive, got " + std::to_string(n));
  return o;
}

/// Drawn when it is adopted, by its full name.
nn::Init undrawn(const nn::Init& init) { return {.seed = {}, .prefix = {}, .dtype = init.dtype}; }

}  // namespace

NamLstm::NamLstm(const NamLstmOptions& o, const nn::Init& init)
    : LayerOf(checked(o), init),
      lstm(o.input_size, o.hidden_size, {.layers = o.layers}, undrawn(init)),
      head(o.hidden_size, o.out_channels, undrawn(init)) {
  adopt("lstm", lstm);
  adopt("head", head);
  initial_h = parameter("initial_h", {o.layers, o.hidden_size}, nn::init::constant(0), init);
  initial_c = parameter("initial_c", {o.layers, o.hidden_size}, nn::init::constant(0), init);
}

Tensor NamLstm::forward(const Tensor& x, const nn::Context& context) const {
  if (context.reset_mask.defined() || context.carry)
    throw ValueError("nam_lstm: begins from states of its own, which resets and pieces that are carried on do not");
  if (x.rank() != 3) throw ShapeError("nam_lstm: expects [B, T, D], got " + x.shape().str());
  const Shape states{options().layers, x.shape()[0], options().hidden_size};
  nn::Context own{.lengths = context.lengths};
  own.state = expand(unsqueeze(initial_h, 1), states);
  own.cell = expand(unsqueeze(initial_c, 1), states);
  return head(lstm(x, own));
}

std::vector<nn::StepState> NamLstm::states(const nn::StepRows& in) const {
  std::vector<nn::StepState> all = lstm.states(in);
  all[0].initial = initial_h;
  all[1].initial = initial_c;
  return all;
}

nn::StepResult NamLstm::step(const Tensor& x, const Tensors& states) const {
  const nn::StepResult r = lstm.advance(x, states);
  return {head(r.y), r.states};
}

std::size_t NamLstm::add_steps(nn::StepGraph& graph, std::size_t x) const {
  const std::size_t h = graph.add(lstm, lstm.step_from({initial_h, initial_c}, graph.rows(x)), {x});
  return graph.add(head, h);
}

void NamContainer::add(double max_value, std::unique_ptr<nn::Layer> model) {
  (void)whole();
  if (!model) throw ValueError("nam_container: the model is null");
  if (!models_.empty() && !(max_value > models_.back().max_value))
    throw ValueError("nam_container: max_value must be above the one before, " +
                     Scalar(models_.back().max_value).str() + ", got " + Scalar(max_value).str());
  adopt(std::to_string(models_.size()), *model);
  models_.push_back({max_value, std::move(model)});
  selected_ = models_.size() - 1;
}

void NamContainer::select(double size) {
  (void)running();
  std::size_t i = 0;
  while (i + 1 < models_.size() && !(size < models_[i].max_value)) ++i;
  selected_ = i;
}

const nn::Layer& NamContainer::running() const {
  (void)whole();
  if (models_.empty()) throw ValueError("nam_container: has no models; add one");
  return *models_[selected_].layer;
}

bool NamContainer::causal() const { return running().causal(); }
Tensor NamContainer::forward(const Tensor& x, const nn::Context& context) const { return running()(x, context); }
nn::StepInput NamContainer::step_input() const { return running().step_input(); }
std::vector<nn::StepState> NamContainer::states(const nn::StepRows& in) const { return running().states(in); }
nn::StepResult NamContainer::step(const Tensor& x, const Tensors& states) const { return running().advance(x, states); }
std::size_t NamContainer::add_steps(nn::StepGraph& graph, std::size_t x) const { return graph.add(running(), x); }

std::unique_ptr<nn::Layer> NamContainer::clone() const {
  auto copy = std::make_unique<NamContainer>();
  for (const Model& m : models_) copy->add(m.max_value, m.layer->clone());
  copy->selected_ = selected_;
  copy->take_after(*this);
  return copy;
}

}  // namespace ferrite::io
