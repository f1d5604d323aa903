#pragma once
/// The operations that run programs.
#include <span>

#include "ferrite/tensor/primitive.h"

namespace ferrite {

/// Scans, scans that keep few carries, their gradients, and calls of compiled functions on a tape: each carries its
/// program among its constants. Programs are made with `scan` and `compile`; tests and documentation ask for this list.
std::span<const Primitive* const> program_operations();

}  // namespace ferrite
