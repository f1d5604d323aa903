#pragma once
/// The pool of threads: one thread unless `set_threads` asks for more.
#include <cstdint>
#include <memory>
#include <type_traits>

#include "ferrite/tensor/language.h"

namespace ferrite {

/// Sets the number of threads that operations of this process may use; 1 at first, since the library lives inside other
/// people's programs. Results do not depend on it. Small work is not shared: products below a million multiply-adds,
/// pointwise operations below 65536 elements. After sharing work, helpers wait awake for 100 microseconds for more,
/// then they sleep. Starts the threads that are missing. Throws ValueError below 1, above 1024 and where the system
/// provides no more threads: the number then stays as it was.
void set_threads(int n);
/// Returns the number that `set_threads` set.
int thread_count();

namespace detail {

/// A borrowed function of an index: no copy, no memory.
class LoopBody {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, LoopBody>) LoopBody(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, std::int64_t i) { (*static_cast<std::remove_reference_t<F>*>(object))(i); }) {}
  void operator()(std::int64_t i) const { call_(object_, i); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t);
};

/// Calls f(i) for i in [0, n), in any order and on any thread of the pool; the caller takes part. The problem must
/// determine how the work is divided, not the number of threads. Runs serially inside another parallel_for. An
/// exception of any call is rethrown here after all have ended. Helpers treat denormals as the caller does
/// (denormals.h).
void parallel_for(std::int64_t n, LoopBody f);

}  // namespace detail
}  // namespace ferrite
