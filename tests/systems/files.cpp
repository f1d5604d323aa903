// Saves, maps and replaces files whose paths are not ASCII. Prints what failed; the exit status is the number of it.
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "ferrite/io/safetensors.h"
#include "ferrite/io/text_file.h"
#include "ferrite/tensor/ops.h"

namespace {

namespace fs = std::filesystem;
namespace io = ferrite::io;
int failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::cout << what << '\n';
  ++failures;
}
/// Expects an error that says `text`.
void refused(const std::function<void()>& f, const std::string& text) {
  try {
    f();
    expect(false, "no error: " + text);
  } catch (const ferrite::IoError& e) {
    expect(std::string(e.what()).find(text) != std::string::npos, std::string("another error: ") + e.what());
  }
}
int files_in(const fs::path& folder) {
  int n = 0;
  for (const auto& entry : fs::directory_iterator(folder)) n += entry.exists() ? 1 : 0;
  return n;
}

void run(const fs::path& folder) {
  const fs::path path = folder / fs::path(u8"wäights.safetensors");
  const std::vector<io::NamedTensor> tensors = {{"x", ferrite::ones({100})}, {"y", ferrite::full({50}, 2.0)}};
  io::write_safetensors(path, tensors);
  io::write_safetensors(path, tensors);
  {
    const ferrite::Tensor x = io::read_safetensors(path, {.map = true}).tensor("x");
    expect(ferrite::sum(x).item<float>() == 100.0F, "the mapped values differ");
    if (fs::path::preferred_separator == '\\') {  // Windows
      refused([&] { io::write_safetensors(path, tensors); }, "cannot put the new file in its place");
    } else {
      io::write_safetensors(path, tensors);
    }
    expect(ferrite::sum(x).item<float>() == 100.0F, "the mapped values have changed");
  }
  io::write_safetensors(path, tensors);
  expect(files_in(folder) == 1, "temporary files are left");
  refused([&] { (void)io::read_safetensors(folder); }, "not a regular file: it is a folder");
  refused([&] { (void)io::read_safetensors(folder / "none"); }, "No such file or directory");
  io::write_text(folder / "text", "two\nlines\n");
  expect(io::read_text(folder / "text") == "two\nlines\n", "the text differs");
}

}  // namespace

int main() {
  const fs::path folder = fs::temp_directory_path() / fs::path(u8"ferrïte");
  fs::remove_all(folder);
  fs::create_directories(folder);
  try {
    run(folder);
  } catch (const std::exception& e) {
    expect(false, e.what());
  }
  fs::remove_all(folder);
  return failures;
}
