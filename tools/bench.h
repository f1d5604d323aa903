#pragma once
/// What `ferrite bench` does.
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>

#include "ferrite/tensor/profiler.h"

namespace ferrite::tools {

struct BenchOptions {
  std::string run = "eager";  ///< eager, compiled, stream, train or compiled-train
  std::int64_t batch = 1;
  std::int64_t steps = 32;  ///< of sequences
  std::int64_t calls = 0;   ///< 0: as many as take about a third of a second
  int threads = 1;
  bool profile = false;  ///< a table of the kernels of as many calls again
  ProfileBy by = ProfileBy::kernel_and_layer;
  std::filesystem::path trace{};  ///< of the same calls; empty: none
};

/// "kernel-and-layer", "kernel" or "layer". Throws ValueError for another text.
ProfileBy rows_by(const std::string& text);

/// Times a net on random numbers: in words (words.h), or a file of RTNeural's JSON. Training is a step of Adam on the
/// mean square of the result. Throws what reading and running it throw, ValueError for options out of range.
void bench(const std::string& net, const BenchOptions& options, std::ostream& out);

}  // namespace ferrite::tools
