#pragma once
/// Leaving out functions that nothing calls.
#include <string>

namespace ferrite::exchange::detail {

/// Returns C without the static functions that no other function calls, also in several forms under `#if`, and without
/// the comments above them. Definitions begin in the first column with `static`, `NF_INLINE` or `NF_APART`, and end in
/// the same line or with a line `}`.
std::string without_unused(const std::string& text);

}  // namespace ferrite::exchange::detail
