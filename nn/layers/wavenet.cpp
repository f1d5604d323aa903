/// The stacked WaveNet, and its step: the steps of its layers, and what is added between them.
#include "ferrite/nn/layers/wavenet.h"

#include <optional>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/step_graph.h"

namespace ferrite::nn {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw ValueError("wavenet: " + what); }

std::unique_ptr<Layer> activation_layer(const WavenetActivation& a) {
  if (a.name == "leaky_relu") return std::make_unique<LeakyRelu>(SlopeOptions{a.slope});
  if (a.name == "hardtanh") return std::make_unique<Hardtanh>(BoundsOptions{a.low, a.high});
  const bool joins = a.name == "softmax" || a.name == "log_softmax" || a.name == "softmin";
  const Activation::Function f = activation(a.name);
  if (!f || joins) refuse("no activation of this name: '" + a.name + "'");
  return std::make_unique<Activation>(a.name, f);
}

void check_array(const WavenetArray& a, const std::string& at) {
  for (const std::int64_t n : {a.input_size, a.condition_size, a.channels, a.bottleneck, a.groups, a.head_size,
                               a.head_kernel_size, a.head_dilation})
    if (n < 1) refuse(at + ": sizes must be positive, got " + std::to_string(n));
  if (a.units.empty()) refuse(at + " has no layers");
  if (a.head1x1_size < 0) refuse(at + ": head1x1_size must not be negative");
  if (!a.has_layer1x1 && a.bottleneck < 1) refuse(at + ": sizes must be positive");
}

void check(const WavenetOptions& o) {
  if (o.arrays.empty()) refuse("has no arrays");
  for (std::size_t i = 0; i < o.arrays.size(); ++i) {
    const WavenetArray& a = o.arrays[i];
    const std::string at = "arrays." + std::to_string(i);
    check_array(a, at);
    if (a.condition_size != o.arrays[0].input_size)
      refuse(at + ": condition_size must be the width of the input, " + std::to_string(o.arrays[0].input_size) +
             ", got " + std::to_string(a.condition_size));
    if (i == 0) continue;
    const WavenetArray& before = o.arrays[i - 1];
    if (a.input_size != before.channels)
      refuse(at + ": input_size must be the channels of the array before, " + std::to_string(before.channels) +
             ", got " + std::to_string(a.input_size));
    if (a.skip_size() != before.head_size)
      refuse(at + ": the head takes " + std::to_string(a.skip_size()) + " channels, that of the array before gives " +
             std::to_string(before.head_size));
  }
}

Wavenet::Array made(const WavenetArray& a, const Init& init) {
  Wavenet::Array array;
  array.rechannel = std::make_unique<Linear>(a.input_size, a.channels, init, false);
  for (const WavenetUnit& u : a.units) {
    const std::int64_t wide = u.gate ? 2 * a.bottleneck : a.bottleneck;
    Wavenet::Unit unit;
    unit.conv = std::make_unique<CausalConv1d>(
        CausalConv1dOptions{a.channels, wide, u.kernel_size, u.dilation, 1, a.groups, true}, init);
    unit.mix = std::make_unique<Linear>(a.condition_size, wide, init, false);
    unit.activation = activation_layer(u.activation);
    if (u.gate) unit.gate = activation_layer(*u.gate);
    if (a.has_layer1x1) unit.layer1x1 = std::make_unique<Linear>(a.bottleneck, a.channels, init);
    if (a.head1x1_size > 0) unit.head1x1 = std::make_unique<Linear>(a.bottleneck, a.head1x1_size, init);
    array.units.push_back(std::move(unit));
  }
  array.head = std::make_unique<CausalConv1d>(
      CausalConv1dOptions{a.skip_size(), a.head_size, a.head_kernel_size, a.head_dilation, 1, 1, a.head_bias}, init);
  return array;
}

}  // namespace

Wavenet::Wavenet(const WavenetOptions& o, const Init& init) : LayerOf(o, init) {
  check(o);
  const Init own{.seed = {}, .prefix = {}, .dtype = init.dtype};  // drawn when adopted, by their full names
  for (const WavenetArray& a : o.arrays) {
    arrays_.push_back(made(a, own));
    adopt_all(arrays_.back(), "arrays." + std::to_string(arrays_.size() - 1) + ".");
  }
}

void Wavenet::adopt_all(const Array& array, const std::string& at) {
  adopt(at + "rechannel", *array.rechannel);
  for (std::size_t k = 0; k < array.units.size(); ++k) {
    const Unit& u = array.units[k];
    const std::string in = at + "layers." + std::to_string(k) + ".";
    adopt(in + "conv", *u.conv);
    adopt(in + "mix", *u.mix);
    if (u.layer1x1) adopt(in + "layer1x1", *u.layer1x1);
    if (u.head1x1) adopt(in + "head1x1", *u.head1x1);
  }
  adopt(at + "head", *array.head);
}

StepInput Wavenet::step_input() const {
  (void)whole();
  return {options().arrays[0].input_size, arrays_[0].rechannel->weight.dtype()};
}

std::int64_t Wavenet::receptive_field() const {
  std::int64_t steps = 1;
  for (const Array& a : arrays_) {
    for (const Unit& u : a.units) steps += u.conv->options().past();
    steps += a.head->options().past();
  }
  return steps;
}

Tensor Wavenet::forward(const Tensor& x, const Context& context) const {
  (void)whole();
  Tensor h = x, skip;
  for (const Array& array : arrays_) {
    h = (*array.rechannel)(h);
    for (const Unit& u : array.units) {
      const Tensor z = (*u.conv)(h, context) + (*u.mix)(x);
      Tensor a;
      if (u.gate) {
        const std::int64_t C = z.shape()[-1] / 2;
        a = (*u.activation)(slice(z, -1, 0, C)) * (*u.gate)(slice(z, -1, C, 2 * C));
      } else {
        a = (*u.activation)(z);
      }
      const Tensor given = u.head1x1 ? (*u.head1x1)(a) : a;
      skip = skip.defined() ? skip + given : given;
      if (u.layer1x1) h = h + (*u.layer1x1)(a);
    }
    skip = (*array.head)(skip, context);
  }
  return skip * options().head_scale;
}

template class LayerOf<Wavenet, WavenetOptions>;

// ---- the step ------------------------------------------------------------------------------------------

namespace {

/// The steps of a net, value after value.
struct Steps {
  StepGraph& graph;
  const Wavenet& net;

  std::size_t sum(std::size_t a, std::size_t b) const {
    return graph.add(net, detail::sum_step(graph.rows(a), 2), {a, b});
  }
  /// Activated; with a gate the first half of each row times the second one, each with its own.
  std::size_t activated(const Wavenet::Unit& u, std::size_t z) const {
    if (!u.gate) return graph.add(*u.activation, z);
    const StepRows rows = graph.rows(z);
    const auto half = [&](std::int64_t first) {
      return graph.add(net, detail::columns_step(rows, first, rows.width / 2), {z});
    };
    const std::size_t a = graph.add(*u.activation, half(0)), g = graph.add(*u.gate, half(rows.width / 2));
    return graph.add(net, detail::product_step(graph.rows(a)), {a, g});
  }
};

}  // namespace

std::size_t Wavenet::add_steps(StepGraph& graph, std::size_t x) const {
  (void)whole();
  const Steps steps{graph, *this};
  std::size_t h = x;
  std::optional<std::size_t> skip;  // the sum for the head
  for (const Array& array : arrays_) {
    h = graph.add(*array.rechannel, h);
    for (const Unit& u : array.units) {
      const std::size_t mix = graph.add(*u.mix, x);
      const std::size_t a = steps.activated(u, steps.sum(graph.add(*u.conv, h), mix));
      const std::size_t given = u.head1x1 ? graph.add(*u.head1x1, a) : a;
      skip = skip ? steps.sum(*skip, given) : given;
      if (u.layer1x1) h = steps.sum(h, graph.add(*u.layer1x1, a));
    }
    skip = graph.add(*array.head, *skip);
  }
  return graph.add(*this, detail::scale_step(graph.rows(*skip), head_scale()), {*skip});
}

}  // namespace ferrite::nn
