/// The system as Windows has it.
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <io.h>
#include <malloc.h>
#include <process.h>
#include <windows.h>

#include <array>
#include <cmath>

#include "ferrite/tensor/system/system.h"

namespace ferrite::detail {

void* allocate_lines(std::size_t bytes) noexcept { return ::_aligned_malloc(bytes, 64); }
void free_lines(void* block) noexcept { ::_aligned_free(block); }
void trim_free_memory() noexcept { (void)::_heapmin(); }

void after_fork(void (*)()) {}

double log_gamma(double x) noexcept { return std::lgamma(x); }  // the C library of Windows keeps no sign

int process_number() noexcept { return ::_getpid(); }
int terminal_columns() noexcept {
  for (const DWORD stream : {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE}) {
    CONSOLE_SCREEN_BUFFER_INFO info{};
    if (::GetConsoleScreenBufferInfo(::GetStdHandle(stream), &info) != 0)
      return info.srWindow.Right - info.srWindow.Left + 1;
  }
  return 0;
}
bool is_terminal(bool error) noexcept { return ::_isatty(error ? 2 : 1) != 0; }
std::string host_name() {
  std::array<char, 256> name{};
  auto size = static_cast<DWORD>(name.size());
  return ::GetComputerNameA(name.data(), &size) != 0 ? name.data() : "";
}

}  // namespace ferrite::detail
