#pragma once
/// Elementwise operations by name.
#include <string_view>

namespace ferrite {
struct Primitive;
}

namespace ferrite::detail {

/// The elementwise operation of this name, or null. `find_primitive` knows all operations, and who calls it links them.
const Primitive* elementwise_operation(std::string_view name);

}  // namespace ferrite::detail
