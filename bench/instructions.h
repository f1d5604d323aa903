#pragma once
/// Instructions as a measure of work: unlike time, they do not depend on what else the machine does.
#include <cstdint>
#include <cstring>

#ifdef __linux__
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace bench {

/// Counts the instructions of the thread that made it, outside the kernel, where the system lets a program do so (Linux
/// with performance counters; many containers forbid them).
class Instructions {
 public:
  Instructions() {
#ifdef __linux__
    perf_event_attr event;
    std::memset(&event, 0, sizeof(event));
    event.type = PERF_TYPE_HARDWARE;
    event.size = sizeof(event);
    event.config = PERF_COUNT_HW_INSTRUCTIONS;
    event.disabled = 1;
    event.exclude_kernel = 1;
    event.exclude_hv = 1;
    file_ = static_cast<int>(syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
#endif
  }
  ~Instructions() {
#ifdef __linux__
    if (file_ >= 0) close(file_);
#endif
  }
  Instructions(const Instructions&) = delete;
  Instructions& operator=(const Instructions&) = delete;

  bool available() const { return file_ >= 0; }
  void start() const {
#ifdef __linux__
    if (file_ < 0) return;
    ioctl(file_, PERF_EVENT_IOC_RESET, 0);
    ioctl(file_, PERF_EVENT_IOC_ENABLE, 0);
#endif
  }
  /// Returns the instructions since `start`; -1 where they cannot be counted.
  std::int64_t stop() const {
#ifdef __linux__
    if (file_ < 0) return -1;
    ioctl(file_, PERF_EVENT_IOC_DISABLE, 0);
    std::int64_t count = 0;
    if (read(file_, &count, sizeof(count)) == static_cast<ssize_t>(sizeof(count))) return count;
#endif
    return -1;
  }

 private:
  int file_ = -1;
};

}  // namespace bench
