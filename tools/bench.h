#pragma once
/// The command `ferrite bench`: times a net on random numbers.
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>

#include "ferrite/tensor/profiler.h"

namespace ferrite::tools {

/// The options of `ferrite bench`.
struct BenchOptions {
  std::string run = "eager";  ///< eager, compiled, stream, train or compiled-train
  std::int64_t batch = 1;
  std::int64_t steps = 32;  ///< length of the input sequences
  std::int64_t calls = 0;   ///< calls to time; 0: as many as take about a third of a second
  int threads = 1;
  bool profile = false;  ///< also print a table of the kernels of as many further calls
  ProfileBy by = ProfileBy::kernel_and_layer;
  std::filesystem::path trace{};  ///< file for a trace of these further calls; empty for none
};

/// Returns the rows of the profile's table for "kernel-and-layer", "kernel" or "layer". Throws ValueError for other
/// texts.
ProfileBy rows_by(const std::string& text);

/// Times a net on random numbers and prints the result to `out`. The net is given in words (train/words.h) or as a file
/// (train/net_file.h). Training is a step of Adam on the mean square of the result. Throws what reading and running the
/// net throw, and ValueError for options out of range.
void bench(const std::string& net, const BenchOptions& options, std::ostream& out);

}  // namespace ferrite::tools
