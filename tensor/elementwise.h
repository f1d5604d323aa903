#pragma once
/// Elementwise operations by name.
#include <string_view>

#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// The arithmetic operation, function or activation of this name, or null. `find_primitive` knows all operations, and a
/// program that calls it holds them all.
const Primitive* elementwise_operation(std::string_view name);

}  // namespace ferrite::detail
