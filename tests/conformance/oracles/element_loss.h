#pragma once
/// The oracle of elementwise losses.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles {

/// The oracle of an elementwise loss: `scalar` of the operands of one element, and samples if they differ from the
/// usual.
///
///   struct HuberLoss {
///     using Attributes = HuberAttrs;
///     static constexpr auto name = "huber_loss";
///     static constexpr Range range{-1, 1};
///     static constexpr std::size_t least = 2, operands = 3;
///     static double scalar(std::span<const double> x, const HuberAttrs& a);
///     static std::vector<HuberAttrs> tried();
///   };
template <class Loss>
struct ElementLoss {
  using Attributes = AttributesOf<Loss>;
  static constexpr std::string_view name = Loss::name;

  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    std::vector<double> x(in.size());
    for (std::size_t i = 0; i < out[0].values.size(); ++i) {
      for (std::size_t k = 0; k < in.size(); ++k) x[k] = in[k].values[i];
      out[0].values[i] = Loss::scalar(x, a);
    }
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (const Attributes& a : tried())
      for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0, 3}})
        for (std::size_t n = least(); n <= operands(); ++n)
          list.push_back({.inputs = std::vector<Spec>(n, Spec{shape, Dtype::f32}),
                          .attrs = a,
                          .range = range(),
                          .smooth_at_ties = false});
    return list;
  }

 private:
  static std::vector<Attributes> tried() {
    if constexpr (requires { Loss::tried(); }) {
      return Loss::tried();
    } else {
      return {Attributes{}};
    }
  }
  static Range range() {
    if constexpr (requires { Loss::range; }) {
      return Loss::range;
    } else {
      return {};
    }
  }
  static std::size_t least() {
    if constexpr (requires { Loss::least; }) {
      return Loss::least;
    } else {
      return operands();
    }
  }
  static std::size_t operands() {
    if constexpr (requires { Loss::operands; }) {
      return Loss::operands;
    } else {
      return 2;
    }
  }
};

}  // namespace oracles
