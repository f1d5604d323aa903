#pragma once
#include <vector>

#include "ferrite/autograd/tape.h"

namespace ferrite::detail {

/// d(sum of results * cotangents); `which` says to which result a cotangent belongs.
Tensors pull_back(Tape& tape, const Tensors& results, const std::vector<Tensor>& cotangents,
                  const std::vector<std::size_t>& which, std::span<const Tensor> variables);

}  // namespace ferrite::detail
