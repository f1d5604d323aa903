/// The stacked WaveNet, and its step, composed of the steps of its layers and the sums between them.
#include "ferrite/nn/layers/wavenet.h"

#include <array>
#include <optional>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/step_graph.h"

namespace ferrite::nn {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw ValueError("wavenet: " + what); }

/// An activation that is one operation: unlike Activation it never has to be traced.
class OneOperation final : public LayerOf<OneOperation, ActivationOptions> {
 public:
  explicit OneOperation(const ActivationOptions& o) : LayerOf(o, Init(), detail::OwnSteps()) {}
  std::string kind() const override { return options().name; }
  Tensor forward(const Tensor& x, const Context&) const override { return options().function(x); }
  bool causal() const override { return true; }
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override {
    return detail::add_element_steps(*this, graph, x);
  }
};

std::unique_ptr<Layer> activation_layer(const WavenetActivation& a) {
  if (a.name == "leaky_relu") return std::make_unique<LeakyRelu>(SlopeOptions{a.slope});
  if (a.name == "hardtanh") return std::make_unique<Hardtanh>(BoundsOptions{a.low, a.high});
  const bool joins = a.name == "softmax" || a.name == "log_softmax" || a.name == "softmin";
  const Activation::Function f = activation(a.name);
  if (!f || joins) refuse("no activation of this name: '" + a.name + "'");
  return std::make_unique<OneOperation>(ActivationOptions{a.name, f});
}

/// Returns the number of channels at a place of a layer whose convolution gives `wide` channels.
std::int64_t width_at(FilmPlace place, const WavenetArray& a, std::int64_t wide) {
  switch (place) {
    case FilmPlace::conv_pre:
    case FilmPlace::layer1x1_post: return a.channels;
    case FilmPlace::mix_pre: return a.condition_size;
    case FilmPlace::activation_post: return a.bottleneck;
    case FilmPlace::head1x1_post: return a.head1x1_size;
    default: return wide;
  }
}

void check_array(const WavenetArray& a, const std::string& at) {
  for (const std::int64_t n : {a.input_size, a.condition_size, a.channels, a.bottleneck, a.groups, a.mix_groups,
                               a.layer1x1_groups, a.head1x1_groups, a.head_size, a.head_kernel_size, a.head_dilation})
    if (n < 1) refuse(at + ": sizes must be positive, got " + std::to_string(n));
  if (a.units.empty()) refuse(at + " has no layers");
  if (a.head1x1_size < 0) refuse(at + ": head1x1_size must not be negative");
  for (const WavenetUnit& u : a.units)
    if (u.blends && !u.gate) refuse(at + ": a layer blends without a gate");
  const auto film = [&](FilmPlace place) { return a.films[static_cast<std::size_t>(place)].has_value(); };
  if (film(FilmPlace::layer1x1_post) && !a.has_layer1x1) refuse(at + ": layer1x1_post_film without layer1x1");
  if (film(FilmPlace::head1x1_post) && a.head1x1_size == 0) refuse(at + ": head1x1_post_film without head1x1");
}

void check(const WavenetOptions& o) {
  if (o.arrays.empty()) refuse("has no arrays");
  if (o.condition.size() > 1) refuse("has " + std::to_string(o.condition.size()) + " nets for one condition");
  const std::int64_t condition = o.condition.empty() ? o.arrays[0].input_size : o.condition[0].out_channels();
  if (!o.condition.empty() && !o.condition[0].arrays.empty() &&
      o.condition[0].arrays[0].input_size != o.arrays[0].input_size)
    refuse("condition: takes " + std::to_string(o.condition[0].arrays[0].input_size) +
           " values a step, the input has " + std::to_string(o.arrays[0].input_size));
  for (std::size_t i = 0; i < o.arrays.size(); ++i) {
    const WavenetArray& a = o.arrays[i];
    const std::string at = "arrays." + std::to_string(i);
    check_array(a, at);
    if (a.condition_size != condition)
      refuse(at + ": condition_size must be the width of the condition, " + std::to_string(condition) + ", got " +
             std::to_string(a.condition_size));
    if (i == 0) continue;
    const WavenetArray& before = o.arrays[i - 1];
    if (a.input_size != before.channels)
      refuse(at + ": input_size must be the channels of the array before, " + std::to_string(before.channels) +
             ", got " + std::to_string(a.input_size));
    if (a.skip_size() != before.head_size)
      refuse(at + ": the head takes " + std::to_string(a.skip_size()) + " channels, that of the array before gives " +
             std::to_string(before.head_size));
  }
  if (o.head && o.head->kernel_sizes.empty()) refuse("head: has no layers");
}

std::unique_ptr<Layer> product(std::int64_t in, std::int64_t out, std::int64_t groups, const Init& init,
                               bool bias = true) {
  if (groups == 1) return std::make_unique<Linear>(in, out, init, bias);
  return std::make_unique<CausalConv1d>(CausalConv1dOptions{in, out, 1, 1, 1, groups, bias}, init);
}

Wavenet::Unit made(const WavenetUnit& u, const WavenetArray& a, const Init& init) {
  const std::int64_t wide = u.gate ? 2 * a.bottleneck : a.bottleneck;
  Wavenet::Unit unit;
  unit.conv = std::make_unique<CausalConv1d>(
      CausalConv1dOptions{a.channels, wide, u.kernel_size, u.dilation, 1, a.groups, true}, init);
  unit.mix = product(a.condition_size, wide, a.mix_groups, init, false);
  unit.activation = activation_layer(u.activation);
  if (u.gate) unit.gate = activation_layer(*u.gate);
  unit.blends = u.blends;
  if (a.has_layer1x1) unit.layer1x1 = product(a.bottleneck, a.channels, a.layer1x1_groups, init);
  if (a.head1x1_size > 0) unit.head1x1 = product(a.bottleneck, a.head1x1_size, a.head1x1_groups, init);
  for (std::size_t i = 0; i < kFilmPlaces; ++i) {
    if (!a.films[i]) continue;
    const std::int64_t width = width_at(static_cast<FilmPlace>(i), a, wide);
    const WavenetFilm& f = *a.films[i];
    unit.films[i] = {product(a.condition_size, f.shift ? 2 * width : width, f.groups, init), f.shift};
  }
  return unit;
}

Wavenet::Array made(const WavenetArray& a, const Init& init) {
  Wavenet::Array array;
  array.rechannel = std::make_unique<Linear>(a.input_size, a.channels, init, false);
  for (const WavenetUnit& u : a.units) array.units.push_back(made(u, a, init));
  array.head = std::make_unique<CausalConv1d>(
      CausalConv1dOptions{a.skip_size(), a.head_size, a.head_kernel_size, a.head_dilation, 1, 1, a.head_bias}, init);
  return array;
}

std::vector<Wavenet::HeadLayer> made(const WavenetHead& head, std::int64_t in, const Init& init) {
  std::vector<Wavenet::HeadLayer> layers;
  for (const std::int64_t taps : head.kernel_sizes) {
    const bool last = layers.size() + 1 == head.kernel_sizes.size();
    const std::int64_t out = last ? head.out_channels : head.channels;
    layers.push_back({activation_layer(head.activation),
                      std::make_unique<CausalConv1d>(CausalConv1dOptions{in, out, taps, 1, 1, 1, true}, init)});
    in = out;
  }
  return layers;
}

}  // namespace

std::string Wavenet::name_of(FilmPlace place) {
  constexpr std::array<const char*, kFilmPlaces> names{"conv_pre",      "conv_post",      "mix_pre",
                                                       "mix_post",      "activation_pre", "activation_post",
                                                       "layer1x1_post", "head1x1_post"};
  return std::string(names[static_cast<std::size_t>(place)]) + "_film";
}

Wavenet::Wavenet(const WavenetOptions& o, const Init& init) : LayerOf(o, init, detail::OwnSteps()) {
  check(o);
  const Init own{.seed = {}, .prefix = {}, .dtype = init.dtype};  // drawn when adopted, by their full names
  if (!o.condition.empty()) {
    condition_ = std::make_unique<Wavenet>(o.condition[0], own);
    adopt("condition", *condition_);
  }
  for (const WavenetArray& a : o.arrays) {
    arrays_.push_back(made(a, own));
    adopt_all(arrays_.back(), "arrays." + std::to_string(arrays_.size() - 1) + ".");
  }
  if (!o.head) return;
  head_ = made(*o.head, o.arrays.back().head_size, own);
  for (std::size_t i = 0; i < head_.size(); ++i) adopt("head." + std::to_string(i), *head_[i].conv);
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
    for (std::size_t i = 0; i < kFilmPlaces; ++i)
      if (u.films[i].product) adopt(in + name_of(static_cast<FilmPlace>(i)), *u.films[i].product);
  }
  adopt(at + "head", *array.head);
}

StepInput Wavenet::step_input() const {
  (void)whole();
  return {options().arrays[0].input_size, arrays_[0].rechannel->weight.dtype()};
}

std::int64_t Wavenet::receptive_field() const {
  std::int64_t steps = condition_ ? condition_->receptive_field() : 1;
  for (const Array& a : arrays_) {
    for (const Unit& u : a.units) steps += u.conv->options().past();
    steps += a.head->options().past();
  }
  for (const HeadLayer& h : head_) steps += h.conv->options().past();
  return steps;
}

namespace {

/// A layer of an array applied to whole sequences.
struct UnitCall {
  const Wavenet::Unit& u;
  const Context& context;
  const Tensor& condition;

  Tensor film(FilmPlace place, const Tensor& x) const {
    const Wavenet::Film& f = u.films[static_cast<std::size_t>(place)];
    if (!f.product) return x;
    const Tensor s = (*f.product)(condition, context);
    if (!f.shift) return x * s;
    const std::int64_t C = x.shape()[-1];
    return x * slice(s, -1, 0, C) + slice(s, -1, C, 2 * C);
  }
  Tensor activated(const Tensor& z) const {
    if (!u.gate) return (*u.activation)(z);
    const std::int64_t C = z.shape()[-1] / 2;
    const Tensor x = slice(z, -1, 0, C), g = (*u.gate)(slice(z, -1, C, 2 * C)), a = (*u.activation)(x)*g;
    return u.blends ? a + (1 - g) * x : a;
  }
  /// Returns the input of the products for the head and for the next layer.
  Tensor operator()(const Tensor& h) const {
    const Tensor conv = film(FilmPlace::conv_post, (*u.conv)(film(FilmPlace::conv_pre, h), context));
    const Tensor mix = film(FilmPlace::mix_post, (*u.mix)(film(FilmPlace::mix_pre, condition), context));
    return film(FilmPlace::activation_post, activated(film(FilmPlace::activation_pre, conv + mix)));
  }
};

}  // namespace

Tensor Wavenet::forward(const Tensor& x, const Context& context) const {
  (void)whole();
  const Tensor condition = condition_ ? (*condition_)(x, context) : x;
  Tensor h = x, skip;
  for (const Array& array : arrays_) {
    h = (*array.rechannel)(h);
    for (const Unit& u : array.units) {
      const UnitCall unit{u, context, condition};
      const Tensor a = unit(h);
      const Tensor given = u.head1x1 ? unit.film(FilmPlace::head1x1_post, (*u.head1x1)(a, context)) : a;
      skip = skip.defined() ? skip + given : given;
      if (u.layer1x1) h = h + unit.film(FilmPlace::layer1x1_post, (*u.layer1x1)(a, context));
    }
    skip = (*array.head)(skip, context);
  }
  Tensor y = skip * options().head_scale;
  for (const HeadLayer& layer : head_) y = (*layer.conv)((*layer.activation)(y), context);
  return y;
}

template class LayerOf<Wavenet, WavenetOptions>;

// ---- the step ------------------------------------------------------------------------------------------

namespace {

/// Adds the steps of a layer of an array, value by value.
struct UnitSteps {
  using Value = std::size_t;
  StepGraph& graph;
  const Wavenet& net;
  const Wavenet::Unit& u;
  Value condition;

  Value sum(Value a, Value b) const { return graph.add(net, detail::sum_step(graph.rows(a), 2), {a, b}); }
  Value product(Value a, Value b) const { return graph.add(net, detail::product_step(graph.rows(a)), {a, b}); }
  Value columns(Value x, std::int64_t first, std::int64_t width) const {
    return graph.add(net, detail::columns_step(graph.rows(x), first, width), {x});
  }
  Value film(FilmPlace place, Value x) const {
    const Wavenet::Film& f = u.films[static_cast<std::size_t>(place)];
    if (!f.product) return x;
    const Value s = graph.add(*f.product, condition);
    if (!f.shift) return product(x, s);
    const std::int64_t C = graph.rows(x).width;
    const Value shift = columns(s, C, C);
    return sum(product(x, columns(s, 0, C)), shift);
  }
  Value activated(Value z) const {
    if (!u.gate) return graph.add(*u.activation, z);
    const StepRows rows = graph.rows(z);
    const Value x = columns(z, 0, rows.width / 2), a = graph.add(*u.activation, x);
    const Value g = graph.add(*u.gate, columns(z, rows.width / 2, rows.width / 2)), gated = product(a, g);
    if (!u.blends) return gated;
    const StepRows half = graph.rows(g);
    const detail::ElementFunction rest(*ferrite::detail::ops::sub, half.dtype, ferrite::detail::Literals{.a = 1});
    return sum(gated, product(graph.add(net, detail::elements_step(rest, half), {g}), x));
  }
  Value operator()(Value h) const {
    const Value mix = film(FilmPlace::mix_post, graph.add(*u.mix, film(FilmPlace::mix_pre, condition)));
    const Value conv = film(FilmPlace::conv_post, graph.add(*u.conv, film(FilmPlace::conv_pre, h)));
    return film(FilmPlace::activation_post, activated(film(FilmPlace::activation_pre, sum(conv, mix))));
  }
};

}  // namespace

std::size_t Wavenet::add_steps(StepGraph& graph, std::size_t x) const {
  (void)whole();
  const std::size_t condition = condition_ ? graph.add(*condition_, x) : x;
  std::size_t h = x;
  std::optional<std::size_t> skip;  // the sum for the head
  for (const Array& array : arrays_) {
    h = graph.add(*array.rechannel, h);
    for (const Unit& u : array.units) {
      const UnitSteps unit{graph, *this, u, condition};
      const std::size_t a = unit(h);
      const std::size_t given = u.head1x1 ? unit.film(FilmPlace::head1x1_post, graph.add(*u.head1x1, a)) : a;
      skip = skip ? unit.sum(*skip, given) : given;
      if (u.layer1x1) h = unit.sum(h, unit.film(FilmPlace::layer1x1_post, graph.add(*u.layer1x1, a)));
    }
    skip = graph.add(*array.head, *skip);
  }
  std::size_t y = graph.add(*this, detail::scale_step(graph.rows(*skip), head_scale()), {*skip});
  for (const HeadLayer& layer : head_) y = graph.add(*layer.conv, graph.add(*layer.activation, y));
  return y;
}

}  // namespace ferrite::nn
