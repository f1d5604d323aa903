// Layers of the cells in examples/custom_cell, by name.
#include "own_cells.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "../examples/custom_cell/cells.h"
#include "timing.h"

using namespace ferrite;

namespace bench {
namespace {

using Layer = std::unique_ptr<nn::Recurrent>;

template <class C>
Layer layer_of(std::int64_t H) {
  return std::make_unique<nn::Custom>(nn::custom<C>(H, H, {}, {.seed = 1}));
}

template <class L>
Layer built_in(std::int64_t H) {
  return std::make_unique<L>(H, H, nn::Init{.seed = 1});
}

struct Own {
  std::string kind;
  std::int64_t gates;
  Layer (*layer)(std::int64_t H);
  Layer (*nearest)(std::int64_t H);
};

const std::vector<Own>& all() {
  static const std::vector<Own> list = {
      {"plain_gru", 3, layer_of<cells::PlainGru>, built_in<nn::Gru>},
      {"peephole_lstm", 4, layer_of<cells::PeepholeLstm>, built_in<nn::Lstm>},
      {"minimal_gated", 2, layer_of<cells::MinimalGated>, built_in<nn::Gru>},
      {"layer_norm_gru", 3, layer_of<nn::LayerNormGruCell>, built_in<nn::Gru>},
  };
  return list;
}

const Own* find(const std::string& kind) {
  const auto at = std::find_if(all().begin(), all().end(), [&](const Own& o) { return o.kind == kind; });
  return at == all().end() ? nullptr : &*at;
}

/// Returns a number in [-1, 1) that depends only on the tensor's number and the element's, with the same bits wherever
/// it is computed.
float number(std::uint32_t tensor, std::uint32_t element) {
  std::uint32_t z = element * 2654435761U + tensor * 0x9E3779B9U + 1;
  z = (z ^ (z >> 16U)) * 0x85EBCA6BU;
  z = (z ^ (z >> 13U)) * 0xC2B2AE35U;
  z ^= z >> 16U;
  return static_cast<float>(z >> 8U) / 8388608.0F - 1.0F;
}

constexpr std::uint32_t kData = 1000;  // the number of x

Tensor numbers(std::uint32_t tensor, const Shape& shape, float scale, float middle) {
  std::vector<float> v(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = middle + scale * number(tensor, static_cast<std::uint32_t>(i));
  return Tensor::from(std::span<const float>(v), shape);
}

/// A layer, its data and its optimiser.
struct Training {
  Training(Layer l, const Cell& c)
      : layer(std::move(l)), x(numbers(kData, {c.B, c.T, c.H}, 1, 0)), parameters(layer->parameters()) {
    const float spread = 1 / std::sqrt(static_cast<float>(c.H));
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const float middle = parameters[k].name().find("scale") == std::string::npos ? 0 : 1;
      parameters[k].assign(numbers(static_cast<std::uint32_t>(k), parameters[k].shape(), spread, middle));
    }
    adam = std::make_unique<nn::Adam>(parameters);
  }
  Tensor outputs() const { return layer->forward(x, {}); }
  Tensor step() const {
    Tape tape;
    const Tensor loss = mean(square(outputs()));
    adam->step(tape.grad(loss, parameters));
    return loss;
  }
  Layer layer;
  Tensor x;
  std::vector<Parameter> parameters;
  std::unique_ptr<nn::Adam> adam;
};

}  // namespace

const std::vector<std::string>& own_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> k;
    for (const Own& o : all()) k.push_back(o.kind);
    return k;
  }();
  return kinds;
}

bool is_own(const std::string& kind) { return find(kind) != nullptr; }

std::int64_t own_gates(const std::string& kind) { return find(kind)->gates; }

std::function<void()> own_job(const std::string& name, const Cell& c) {
  const bool limit = name.starts_with("limit_");
  const std::string what = limit ? name.substr(6) : name;
  if (what != "forward" && what != "train") throw std::runtime_error("no such job of a user's cell: " + name);
  const Own& own = *find(c.kind);
  const auto t = std::make_shared<Training>((limit ? own.nearest : own.layer)(c.H), c);
  if (what == "forward") return [t] { keep(t->outputs()); };
  return [t] { keep(t->step()); };
}

std::vector<float> own_values(const std::string& name, const Cell& c) {
  const Training t(find(c.kind)->layer(c.H), c);
  if (name == "train") return {t.step().item<float>(), t.step().item<float>(), t.step().item<float>()};
  const Tensor last = contiguous(ferrite::select(t.outputs(), 1, c.T - 1));
  const std::span<const float> v = last.values<float>();
  return {v.begin(), v.end()};
}

}  // namespace bench
