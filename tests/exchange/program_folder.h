#pragma once
/// Programs in files for scripts that run them elsewhere, read by tests/exchange/exchange.py.
#include <fstream>
#include <string>

#include "exchange/program_cases.h"
#include "ferrite/io/numpy.h"
#include "io/temporary_folder.h"
#include "support/python.h"

namespace exchange_test {

/// A folder with 0.<ending>, 0.npz, ... and a list of them: number, tolerance, name.
class ProgramFolder {
 public:
  explicit ProgramFolder(std::string ending) : ending_(std::move(ending)) {}

  /// Adds a case: its program as written, and its arguments and results.
  void add(const ProgramCase& c, const std::string& program) {
    const std::string number = std::to_string(count_++);
    std::ofstream(folder_ / (number + ending_), std::ios::binary) << program;
    std::vector<ferrite::io::NamedTensor> tensors;
    for (const ferrite::Tensor& x : c.arguments) tensors.push_back({"argument" + std::to_string(tensors.size()), x});
    const std::size_t first = tensors.size();
    for (const ferrite::Tensor& y : c.results)
      tensors.push_back({"result" + std::to_string(tensors.size() - first), y});
    ferrite::io::write_npz(folder_ / (number + ".npz"), tensors);
    list_ << number << '\t' << c.tolerance << '\t' << c.name << '\n';
  }

  /// Returns whether a script of the tests confirms all results; `more` follows the folder on its command line.
  bool agrees(const std::string& script, const std::string& more = {}) {
    list_.flush();
    const std::string path = std::string(FERRITE_SOURCE_DIR) + "/tests/" + script;
    return std::system((support::python() + " '" + path + "' '" + folder_.path().string() + "' " + more).c_str()) == 0;
  }

 private:
  std::string ending_;
  io_test::TemporaryFolder folder_;
  std::ofstream list_{folder_ / "cases.txt"};
  int count_ = 0;
};

}  // namespace exchange_test
