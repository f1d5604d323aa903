#pragma once
/// The families of functors, and where a level keeps the kernels of each functor: by its family and its place there, so
/// that a program has those of the operations that it reaches.
#include <tuple>

#include "ferrite/tensor/kernel/functors_activations.h"
#include "ferrite/tensor/kernel/functors_math.h"

namespace ferrite::detail::FERRITE_LEVEL {

using Families = std::tuple<Arithmetic, Functions, Logic, Math, Activations>;

}  // namespace ferrite::detail::FERRITE_LEVEL
