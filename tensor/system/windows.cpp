/// The system as Windows has it.
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <process.h>
#include <windows.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <memory>

#include "ferrite/tensor/system/files.h"
#include "ferrite/tensor/system/per_thread.h"
#include "ferrite/tensor/system/system.h"

namespace ferrite::detail {

void* allocate_lines(std::size_t bytes) noexcept { return ::_aligned_malloc(bytes, 64); }
void free_lines(void* block) noexcept { ::_aligned_free(block); }
void trim_free_memory() noexcept { (void)::_heapmin(); }

void after_fork(void (*)()) {}

#if !defined(__clang__)
}  // namespace ferrite::detail

// The C runtime's own: the beginning of the section that is copied for each thread, and the place of this program's or
// library's copies among those of the thread.
extern "C" char* _tls_start;
extern "C" unsigned long _tls_index;

namespace ferrite::detail {

void* copy_of_thread(const void* variable) noexcept {
  char** copies = nullptr;
  __asm__("movq %%gs:0x58, %0" : "=r"(copies));  // ThreadLocalStoragePointer of the thread environment block
  return copies[_tls_index] + (static_cast<const char*>(variable) - reinterpret_cast<const char*>(&_tls_start));
}

namespace {

/// An object that a thread owns, in a list from the last one to the first.
struct Owned {
  const void* key;
  void* object;
  void (*destroy)(void*);
  Owned* before;
};
FERRITE_PER_THREAD constinit PerThread<Owned*> owned(nullptr);

/// Destroys what a thread owns when it ends. What the thread owns that ends the process stays to the end.
void WINAPI on_thread_end(void*, DWORD reason, void*) {
  if (reason != DLL_THREAD_DETACH) return;
  while (Owned* const last = owned()) {
    owned() = last->before;
    last->destroy(last->object);
    delete last;
  }
}
/// The system calls the functions in this section, up to .CRT$XLZ, when threads begin and end.
[[gnu::section(".CRT$XLF"), gnu::used]] PIMAGE_TLS_CALLBACK kOnThreadEnd = on_thread_end;

}  // namespace

void* object_with_key(const void* key, void* (*make)(), void (*destroy)(void*)) {
  for (Owned* o = owned(); o; o = o->before)
    if (o->key == key) return o->object;
  auto place = std::make_unique<Owned>(Owned{key, make(), destroy, nullptr});
  place->before = owned();
  owned() = place.release();
  return owned()->object;
}
#endif

double log_gamma(double x) noexcept { return std::lgamma(x); }  // the C library of Windows keeps no sign
/// The C library multiplies doubles n times; in 64 bits of significand that loses nothing that a double would show.
double whole_power(double a, int n) noexcept { return static_cast<double>(std::pow(static_cast<long double>(a), n)); }

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

// ---- files ---------------------------------------------------------------------------------------------

namespace {

/// Translates the last error of Windows to errno and returns -1.
int failed() {
  switch (::GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME: errno = ENOENT; break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: errno = EEXIST; break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_USER_MAPPED_FILE: errno = EACCES; break;
    case ERROR_LOCK_VIOLATION:
    case ERROR_IO_PENDING: errno = EWOULDBLOCK; break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: errno = ENOSPC; break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_COMMITMENT_LIMIT: errno = ENOMEM; break;
    case ERROR_FILENAME_EXCED_RANGE: errno = ENAMETOOLONG; break;
    default: errno = EIO;
  }
  return -1;
}

HANDLE handle_of(int fd) { return reinterpret_cast<HANDLE>(::_get_osfhandle(fd)); }

/// Opens a file that others may rename, replace and remove meanwhile, as on POSIX.
int open_file(const std::filesystem::path& path, OpenFor purpose) {
  if (purpose == OpenFor::folder) return errno = EACCES, -1;  // the file system keeps its folders by itself
  const bool reads = purpose == OpenFor::reading || purpose == OpenFor::reading_no_link;
  const DWORD access = reads                           ? GENERIC_READ
                       : purpose == OpenFor::appending ? FILE_APPEND_DATA | SYNCHRONIZE | DELETE
                                                       : GENERIC_WRITE | DELETE;
  const DWORD links = purpose == OpenFor::reading_no_link ? FILE_FLAG_OPEN_REPARSE_POINT : 0;
  const HANDLE handle = ::CreateFileW(path.c_str(), access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                      nullptr, reads ? OPEN_EXISTING : CREATE_NEW,
                                      FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS | links, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return failed();
  const int flags =
      _O_BINARY | _O_NOINHERIT | (reads ? _O_RDONLY : _O_WRONLY) | (purpose == OpenFor::appending ? _O_APPEND : 0);
  const int fd = ::_open_osfhandle(reinterpret_cast<intptr_t>(handle), flags);
  if (fd < 0) ::CloseHandle(handle);
  return fd;
}

int status(int fd, FileStatus& out) {
  const HANDLE handle = handle_of(fd);
  const DWORD type = ::GetFileType(handle);
  out = {};
  if (type != FILE_TYPE_DISK) {
    out.kind = type == FILE_TYPE_PIPE ? FileKind::fifo : FileKind::device;
    return 0;
  }
  BY_HANDLE_FILE_INFORMATION about{};
  if (::GetFileInformationByHandle(handle, &about) == 0) return failed();
  out.kind = (about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0       ? FileKind::folder
             : (about.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 ? FileKind::other
                                                                            : FileKind::regular;
  out.size = std::uint64_t{about.nFileSizeHigh} << 32 | about.nFileSizeLow;
  out.names = about.nNumberOfLinks;
  return 0;
}

std::ptrdiff_t read_file(int fd, void* bytes, std::size_t n) {
  return ::_read(fd, bytes, static_cast<unsigned>(std::min<std::size_t>(n, 1U << 30)));
}
std::ptrdiff_t write_file(int fd, const void* bytes, std::size_t n) {
  return ::_write(fd, bytes, static_cast<unsigned>(std::min<std::size_t>(n, 1U << 30)));
}
int permit(int, std::uint32_t) { return 0; }  // a new file has the permissions of its folder

void* map(std::size_t n, int fd) {
  const HANDLE mapping = ::CreateFileMappingW(handle_of(fd), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (!mapping) return failed(), nullptr;
  void* const at = ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, n);
  if (!at) failed();
  ::CloseHandle(mapping);  // the view keeps the mapping
  return at;
}
int unmap(void* at, std::size_t) { return ::UnmapViewOfFile(at) != 0 ? 0 : failed(); }

/// Tries for a tenth of a second: another program or thread that replaces or looks at the file refuses it for a moment.
int replace(const std::filesystem::path& from, const std::filesystem::path& to) {
  constexpr DWORD flags = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  for (int tries = 50; tries > 0; --tries) {
    if (::MoveFileExW(from.c_str(), to.c_str(), flags) != 0) return 0;
    if (::GetLastError() != ERROR_ACCESS_DENIED && ::GetLastError() != ERROR_SHARING_VIOLATION) break;
    ::Sleep(2);
  }
  return failed();
}

}  // namespace

SystemCalls& system_calls() noexcept {
  static SystemCalls calls = {open_file, status, read_file, write_file, permit,
                              ::_commit, map,    unmap,     ::_close,   replace};
  return calls;
}

int status_of_path(const std::filesystem::path& path, FileStatus& out) {
  const HANDLE handle =
      ::CreateFileW(path.c_str(), FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return failed();
  const int fd = ::_open_osfhandle(reinterpret_cast<intptr_t>(handle), _O_RDONLY | _O_BINARY);
  if (fd < 0) return ::CloseHandle(handle), -1;
  const int result = status(fd, out);
  ::_close(fd);
  return result;
}
/// Locks one byte far past the end, so that the file can still be read and written.
int lock_file(int fd) {
  OVERLAPPED where{};
  where.OffsetHigh = 0x40000000;
  constexpr DWORD flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
  return ::LockFileEx(handle_of(fd), flags, 0, 1, 0, &where) != 0 ? 0 : failed();
}
int give_file(int, std::uint32_t, std::uint32_t) { return 0; }
int cut_file(int fd, std::uint64_t size) { return ::_chsize_s(fd, static_cast<std::int64_t>(size)) == 0 ? 0 : -1; }
int remove_file(const std::filesystem::path& path) { return ::DeleteFileW(path.c_str()) != 0 ? 0 : failed(); }
std::size_t page_bytes() noexcept {
  SYSTEM_INFO info{};
  ::GetSystemInfo(&info);
  return info.dwPageSize;
}
bool process_lives(int process) noexcept {
  const HANDLE handle = ::OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(process));
  if (!handle) return ::GetLastError() == ERROR_ACCESS_DENIED;
  const bool lives = ::WaitForSingleObject(handle, 0) == WAIT_TIMEOUT;
  ::CloseHandle(handle);
  return lives;
}

}  // namespace ferrite::detail
