// Lets a wheel that is built with a new C library run with older ones, down to 2.34: the few functions that came later
// are made of earlier ones.
#include <cstdint>  // with the C library's version

#if defined(__linux__) && defined(__GLIBC__)
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#if __GLIBC_PREREQ(2, 35)
#define FERRITE_HIDDEN extern "C" __attribute__((visibility("hidden")))

namespace {

struct Wanted {
  ElfW(Addr) at;
  dl_find_object* found;
};

/// Fills in the loaded object that holds an address. Returns 1, which ends the walk, if it is this one.
int look_at(dl_phdr_info* object, std::size_t, void* data) {
  auto& wanted = *static_cast<Wanted*>(data);
  bool holds = false;
  ElfW(Addr) begin = UINTPTR_MAX, end = 0, frames = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const ElfW(Addr) at = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) frames = at;
    if (part.p_type != PT_LOAD) continue;
    begin = at < begin ? at : begin;
    end = at + part.p_memsz > end ? at + part.p_memsz : end;
    holds |= wanted.at >= at && wanted.at < at + part.p_memsz;
  }
  if (!holds || frames == 0) return 0;
  wanted.found->dlfo_flags = 0;
  wanted.found->dlfo_map_start = reinterpret_cast<void*>(begin);
  wanted.found->dlfo_map_end = reinterpret_cast<void*>(end);
  wanted.found->dlfo_link_map = nullptr;
  wanted.found->dlfo_eh_frame = reinterpret_cast<void*>(frames);
  return 1;
}

}  // namespace

/// What the compiler's runtime asks when an exception passes a function (2.35): nearly always one of this module.
FERRITE_HIDDEN int _dl_find_object(void* address, dl_find_object* result) noexcept {
  static const dl_find_object own = [] {
    dl_find_object found{};
    Wanted wanted{reinterpret_cast<ElfW(Addr)>(&look_at), &found};
    dl_iterate_phdr(look_at, &wanted);
    return found;
  }();
  if (address >= own.dlfo_map_start && address < own.dlfo_map_end) {
    *result = own;
    return 0;
  }
  Wanted wanted{reinterpret_cast<ElfW(Addr)>(address), result};
  return dl_iterate_phdr(look_at, &wanted) == 1 ? 0 : -1;
}

/// What std::random_device asks (2.36).
FERRITE_HIDDEN std::uint32_t arc4random() noexcept {
  std::uint32_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != sizeof bits) {
  }
  return bits;
}

#ifdef __x86_64__
// The linker sends calls of hypot here (--wrap): version 2.35 differs from the first one only in how errors are told.
__asm__(".symver ferrite_first_hypot, hypot@GLIBC_2.2.5");
extern "C" double ferrite_first_hypot(double, double);
FERRITE_HIDDEN double __wrap_hypot(double a, double b) { return ferrite_first_hypot(a, b); }
#endif
#endif
#endif
