#pragma once
/// The list of operations that run programs.
#include <span>

#include "ferrite/tensor/primitive.h"

namespace ferrite {

/// Returns the operations that run programs: scans, checkpointed scans, their gradients, and calls of compiled
/// functions on a tape. Each carries its program among its constants. Programs are made with `scan` and `compile`; this
/// list is for tests and documentation.
std::span<const Primitive* const> program_operations();

}  // namespace ferrite
