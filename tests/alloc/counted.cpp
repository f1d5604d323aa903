// Counts calls of the C library's allocator, which this file intercepts.
#include "counted.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

// glibc's own functions under their other names: an interceptor may call them at any time.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

thread_local constinit counted::Counts seen{};

/// Counts a block that was allocated.
void* taken(void* block) {
  ++seen.allocations;
  seen.live += static_cast<std::int64_t>(malloc_usable_size(block));
  seen.most = std::max(seen.most, seen.live);
  return block;
}
/// Counts a block that is freed.
void* given(void* block) {
  seen.live -= static_cast<std::int64_t>(malloc_usable_size(block));
  return block;
}

/// Returns the function of a name that a call would reach without this file.
template <class Lock>
auto following(const char* name) {
  return reinterpret_cast<int (*)(Lock*)>(dlsym(RTLD_NEXT, name));
}

}  // namespace

counted::Counts counted::counts() { return seen; }
void counted::forget_most() { seen.most = seen.live; }

extern "C" {

void* malloc(std::size_t n) { return taken(__libc_malloc(n)); }
void* calloc(std::size_t n, std::size_t size) { return taken(__libc_calloc(n, size)); }
void* realloc(void* p, std::size_t n) { return taken(__libc_realloc(given(p), n)); }
void* memalign(std::size_t alignment, std::size_t n) { return taken(__libc_memalign(alignment, n)); }
void free(void* p) { __libc_free(given(p)); }
void* aligned_alloc(std::size_t alignment, std::size_t n) { return memalign(alignment, n); }
int posix_memalign(void** p, std::size_t alignment, std::size_t n) {
  *p = memalign(alignment, n);
  return *p ? 0 : ENOMEM;
}
void* mmap(void* address, std::size_t n, int protection, int flags, int file, off_t offset) {
  using Map = void* (*)(void*, std::size_t, int, int, int, off_t);
  static const Map next = reinterpret_cast<Map>(dlsym(RTLD_NEXT, "mmap"));
  ++seen.maps;
  return next(address, n, protection, flags, file, offset);
}

// Mutexes and shared mutexes are those of the C library, whoever locks them.
int pthread_mutex_lock(pthread_mutex_t* m) {
  static const auto next = following<pthread_mutex_t>("pthread_mutex_lock");
  ++seen.locks;
  return next(m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) {
  static const auto next = following<pthread_mutex_t>("pthread_mutex_trylock");
  ++seen.locks;
  return next(m);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* l) {
  static const auto next = following<pthread_rwlock_t>("pthread_rwlock_rdlock");
  ++seen.locks;
  return next(l);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* l) {
  static const auto next = following<pthread_rwlock_t>("pthread_rwlock_wrlock");
  ++seen.locks;
  return next(l);
}
}
