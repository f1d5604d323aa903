#pragma once
#include <cstdint>
#include <functional>

namespace ferrite {

/// Threads that operations of this process may use; 1 at first, since the library lives inside other people's
/// programs. Results do not depend on it. Throws ValueError below 1.
void set_threads(int n);
int threads();

namespace detail {

/// Calls f(i) for i in [0, n), in any order and on any thread of the pool; the caller takes part. Work must be
/// cut by the problem, not by the number of threads. Runs serially inside another parallel_for. An exception of
/// any call is thrown again here after all have ended. Helpers treat denormals as the caller does (denormals.h).
void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& f);

}  // namespace detail
}  // namespace ferrite
