/// The system as tests need it, on POSIX and Windows.
#include "support/system.h"

#include <stdexcept>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <stdlib.h>
#include <windows.h>
#else
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#endif

#include "ferrite/tensor/system/files.h"

namespace support {

using ferrite::detail::page_bytes;

#if defined(_WIN32)

std::string null_device() { return "NUL"; }

void set_environment(const std::string& name, const std::string& value) { ::_putenv_s(name.c_str(), value.c_str()); }
void unset_environment(const std::string& name) { ::_putenv_s(name.c_str(), ""); }

std::shared_ptr<std::byte> pages_before_a_hole(std::size_t bytes) {
  void* const at = ::VirtualAlloc(nullptr, bytes + page_bytes(), MEM_RESERVE, PAGE_NOACCESS);
  if (!at || (bytes > 0 && !::VirtualAlloc(at, bytes, MEM_COMMIT, PAGE_READWRITE)))
    throw std::runtime_error("no pages");
  return {static_cast<std::byte*>(at), [](std::byte* p) { ::VirtualFree(p, 0, MEM_RELEASE); }};
}
void forbid_writing(std::byte* pages, std::size_t bytes) {
  DWORD before = 0;
  if (bytes > 0 && ::VirtualProtect(pages, bytes, PAGE_READONLY, &before) == 0)
    throw std::runtime_error("not protected");
}

Limit::Limit(Of what, std::uint64_t) : of_(what) {}
void Limit::end() {}
boost::test_tools::assertion_result has_limits(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(false);
  result.message() << "this system has no limits of a process";
  return result;
}
boost::test_tools::assertion_result has_links(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(false);
  result.message() << "this system has no links that every user may make";
  return result;
}

#else

std::string null_device() { return "/dev/null"; }

void set_environment(const std::string& name, const std::string& value) { ::setenv(name.c_str(), value.c_str(), 1); }
void unset_environment(const std::string& name) { ::unsetenv(name.c_str()); }

std::shared_ptr<std::byte> pages_before_a_hole(std::size_t bytes) {
  const std::size_t all = bytes + page_bytes();
  void* const at = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const first = static_cast<std::byte*>(at);
  if (at == MAP_FAILED || ::mprotect(first + bytes, page_bytes(), PROT_NONE) != 0) throw std::runtime_error("no pages");
  return {first, [all](std::byte* p) { ::munmap(p, all); }};
}
void forbid_writing(std::byte* pages, std::size_t bytes) {
  if (::mprotect(pages, bytes, PROT_READ) != 0) throw std::runtime_error("not protected");
}

namespace {
int resource_of(Limit::Of what) { return what == Limit::Of::open_files ? RLIMIT_NOFILE : RLIMIT_FSIZE; }
/// Returns the limit before.
std::uint64_t limit(int resource, std::uint64_t most) {
  rlimit now{};
  ::getrlimit(resource, &now);
  const std::uint64_t before = now.rlim_cur;
  now.rlim_cur = most;
  if (::setrlimit(resource, &now) != 0) throw std::runtime_error("no limit");
  return before;
}
}  // namespace

Limit::Limit(Of what, std::uint64_t most) : of_(what) {
  ::signal(SIGXFSZ, SIG_IGN);  // which says that a file has become too large
  before_ = limit(resource_of(what), most);
}
void Limit::end() { limit(resource_of(of_), before_); }
boost::test_tools::assertion_result has_limits(boost::unit_test::test_unit_id) { return true; }
boost::test_tools::assertion_result has_links(boost::unit_test::test_unit_id) { return true; }

#endif

}  // namespace support
