#pragma once
/// Memory, processes and terminals on POSIX and Windows, implemented in posix.cpp and windows.cpp. No other source of
/// the library asks which system it runs on.
#include <cstddef>
#include <string>

namespace ferrite::detail {

/// Returns a block that begins at a multiple of 64 bytes; null where there is no memory. `bytes` is a multiple of 64.
void* allocate_lines(std::size_t bytes) noexcept;
void free_lines(void* block) noexcept;
/// Gives memory that is free back to the system, where the C library can.
void trim_free_memory() noexcept;

/// Calls f in every child process that `fork` makes from now on. On Windows no process is forked.
void after_fork(void (*f)());

/// Returns log |Gamma(x)| without writing to state that threads share.
double log_gamma(double x) noexcept;
/// Returns a^n, correct to about a unit in the last place for every n.
double whole_power(double a, int n) noexcept;

/// Returns the number of this process.
int process_number() noexcept;
/// Returns the width of the terminal of standard output or error; 0 if there is none.
int terminal_columns() noexcept;
/// Returns whether standard output, or standard error, is a terminal.
bool is_terminal(bool error) noexcept;
/// Returns the name of this machine; "" where the system does not say it.
std::string host_name();

}  // namespace ferrite::detail
