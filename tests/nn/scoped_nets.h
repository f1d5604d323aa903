#pragma once
/// Nets for the tests of layers' paths: nested modules, some of which are not layers.
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/recurrent/custom.h"

namespace scoped_nets {

using namespace ferrite;

/// The sum of squares, so that a loss is a layer, too.
struct Squares final : nn::Layer {
  std::string kind() const override { return "squares"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return sum(square(x)); }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Squares>(); }
};

constexpr std::int64_t kIn = 6, kUnits = 4;
inline const Spec kSequence{{3, 5, kIn}, Dtype::f32};
inline const Spec kOneStep{{3, 1, kIn}, Dtype::f32};

/// A module that is not a layer, inside one that is.
struct Encoder : nn::Module {
  nn::Linear first{kIn, kUnits};
  nn::Residual rest;
  Parameter scale;
  Encoder() {
    rest.add("0", std::make_unique<nn::Linear>(kUnits, kUnits));
    rest.add("act", std::make_unique<nn::Activation>("tanh", nn::activation("tanh")));
    scale = parameter("scale", {kUnits}, nn::init::constant(2), {});
    adopt("first", first), adopt("rest", rest);
  }
  Tensor encode(const Tensor& x) const {
    return inside([&] { return rest(first(x)) * scale.value(); });
  }
};
struct Translator final : nn::Layer {
  Encoder encoder;
  nn::Linear head{kUnits, 2};
  Squares loss;
  explicit Translator(std::uint64_t seed) : Layer({.seed = seed}) {
    adopt("encoder", encoder), adopt("head", head), adopt("loss", loss);
  }
  std::string kind() const override { return "translator"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return loss(head(encoder.encode(x))); }
  std::unique_ptr<nn::Layer> clone() const override { return nullptr; }
};
/// Returns a chain of one layer and the loss.
inline nn::Sequential chain(const std::string& name, std::unique_ptr<nn::Layer> layer) {
  nn::Sequential net({.seed = 3});
  net.add(name, std::move(layer));
  net.add("loss", std::make_unique<Squares>());
  return net;
}

/// A user's cell with a layer inside.
struct OwnCell final : nn::CustomCell {
  nn::Linear gates;
  OwnCell(std::int64_t in, std::int64_t units, const nn::Init& init) : gates(in + units, units, init.child("gates")) {
    adopt("gates", gates);
  }
  std::string kind() const override { return "cell"; }
  RecurrentState step(const Tensor& x, const RecurrentState& before) const override {
    return {tanh(gates(concat({x, before.h}, 1)))};
  }
};

}  // namespace scoped_nets
