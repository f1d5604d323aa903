// Writes one small file of every format that this version writes: make_released FOLDER, once for each release, into
// tests/data/released/<version>. What is there is never written again.
#include <iostream>

#include "ferrite/io/module_file.h"
#include "ferrite/io/numpy.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/torch.h"
#include "released/contents.h"

int main(int argc, char** argv) {
  using namespace ferrite;
  if (argc != 2 || std::filesystem::exists(argv[1])) {
    std::cerr << "usage: make_released FOLDER, which must not exist yet\n";
    return 1;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  released::Training t;
  t.begin();
  const std::vector<io::NamedTensor> tensors = released::tensors();
  const io::ModuleContents net = io::contents(t.net, {.metadata = {{"made by", "make_released"}}});
  io::write_safetensors(folder / "tensors.safetensors", tensors, {{"made by", "make_released"}});
  io::write_torch(folder / "tensors.pt", tensors);
  io::write_npz(folder / "tensors.npz", tensors);
  io::write_npy(folder / "array.npy", tensors[0].tensor);
  io::save(t.net, folder / "net.safetensors");
  io::write_torch(folder / "net.pt", net.tensors);
  io::write_npz(folder / "net.npz", net.tensors);
  io::save_rtneural(t.net, folder / "net.json");
  train::save_checkpoint(folder / "checkpoint.safetensors", t.net, t.adam, t.at, &t.schedule);
}
