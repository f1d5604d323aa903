// Reads 100 MB of weights from cached files: GB/s of tensors made, with the file opened, checked and copied.
#include <cstdio>
#include <filesystem>

#include "ferrite/io/any_file.h"
#include "ferrite/tensor/ops.h"
#include "timing.h"

using namespace ferrite;

namespace {

constexpr std::int64_t kSide = 1024;
constexpr int kCount = 24;  // tensors of 4 MiB

}  // namespace

int main() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  std::vector<io::NamedTensor> tensors;
  for (int i = 0; i < kCount; ++i)
    tensors.push_back({"layer" + std::to_string(i), uniform({kSide, kSide}, {1, static_cast<std::uint64_t>(i), 0})});
  const double bytes = static_cast<double>(kCount) * kSide * kSide * sizeof(float);
  std::printf("%.0f MB in %d tensors\n%-14s %8s\n", bytes / 1e6, kCount, "", "GB/s");
  for (const char* ending : {".safetensors", ".pt", ".npz"}) {
    const std::filesystem::path path = folder / (std::string("ferrite_bench") + ending);
    io::write_tensors(path, tensors);
    const auto read = [&] {
      const io::TensorFile file = io::read_tensors(path);
      for (const std::string_view name : file.names()) bench::keep(file.tensor(name));
    };
    const double seconds = bench::interleaved({read})[0];
    std::printf("%-14s %8.2f\n", ending, bytes / seconds / 1e9);
    std::filesystem::remove(path);
  }
}
