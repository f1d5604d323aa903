#pragma once
/// The contents of the files of every released version: a small net whose numbers follow from their places alone, so
/// that they depend on no kernel, draw or rounding of a version. Do not change it: files once written must always be
/// readable.
#include <filesystem>
#include <string>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/schedule.h"
#include "ferrite/train/checkpoint.h"

namespace released {

/// Returns the tensor of a number, whose elements are sixteenths between -2 and 2, each an exact f32.
inline ferrite::Tensor numbers(std::int64_t number, const ferrite::Shape& shape, ferrite::Dtype dtype) {
  const std::int64_t n = shape.numel();
  const ferrite::Tensor i = ferrite::arange(0, n, 1, ferrite::Dtype::f64);
  std::vector<double> values = i.to_vector<double>();
  for (double& v : values) v = (static_cast<double>((static_cast<std::int64_t>(v) * 29 + number * 17) % 64) - 32) / 16;
  return ferrite::cast(ferrite::Tensor::from(values, shape), dtype);
}

/// Returns a GRU and a linear layer, which RTNeural has, too.
inline ferrite::dsl::Network network() { return ferrite::dsl::sequence(3).gru(4).linear(2).build(0); }

/// Gives the k-th variable of a list the numbers of first + k.
template <class Variables>
void assign_numbers(const Variables& variables, std::int64_t first) {
  for (std::size_t k = 0; k < variables.size(); ++k) {
    const auto& c = variables[k].variable;
    c.assign(numbers(first + static_cast<std::int64_t>(k), c.shape(), c.dtype()));
  }
}

/// The state of a training: the net's numbers from 0 on, the optimiser's from 100 on, except those that must be
/// positive.
struct Training {
  Training() { assign_numbers(net.named_parameters(), 0); }
  void begin() {
    assign_numbers(adam.states(), 100);
    adam.set_learning_rate(0.25);
    for (const auto& s : adam.states())
      if (s.name == "step") s.variable.assign(ferrite::cast(ferrite::full(s.variable.shape(), 7), s.variable.dtype()));
    schedule.restore(3, 0.5);
  }

  ferrite::dsl::Network net = network();
  ferrite::nn::Adam adam{net.parameters(), {.learning_rate = 1}};
  ferrite::nn::StepSchedule schedule{adam, 1, 0.5};
  ferrite::train::Position at{.epoch = 2, .batch = 5, .step = 7, .seed = 11};
};

/// Returns a tensor of every dtype, with these names.
inline std::vector<ferrite::io::NamedTensor> tensors() {
  using ferrite::Dtype;
  return {{"f32", numbers(1, {2, 3}, Dtype::f32)},
          {"f64", numbers(2, {4}, Dtype::f64)},
          {"i32", ferrite::arange(-3, 3, 1, Dtype::i32)},
          {"i64", ferrite::arange(0, 5)},
          {"bool", ferrite::Tensor::from({true, false, true})},
          {"none", ferrite::zeros({0, 2})},
          {"one", ferrite::full({}, 0.5)}};
}

}  // namespace released
