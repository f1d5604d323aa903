#include "counted.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdlib>

// glibc's own functions under their other names: what stands in front of them may call them at any time.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

thread_local constinit counted::Counts seen{};

}  // namespace

counted::Counts counted::counts() { return seen; }

extern "C" {

void* malloc(std::size_t n) {
  ++seen.allocations;
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  ++seen.allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t n) {
  ++seen.allocations;
  return __libc_realloc(p, n);
}
void* memalign(std::size_t alignment, std::size_t n) {
  ++seen.allocations;
  return __libc_memalign(alignment, n);
}
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
}
