#pragma once
/// The smallest data set that a linear layer can fit.
#include "ferrite/tensor/random.h"
#include "ferrite/train/dataset.h"

namespace train_test {

/// Returns n points in three dimensions, each with the sum of its coordinates.
inline ferrite::train::Dataset line(std::int64_t n = 12) {
  const ferrite::Tensor x = ferrite::uniform({n, 3}, {.seed = 6}, -1, 1);
  return {{x, sum(x, {1}, true)}};
}

}  // namespace train_test
