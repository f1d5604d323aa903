#pragma once
/// Numbers that the command prints, the same in every locale.
#include <ios>
#include <locale>
#include <ostream>

namespace ferrite::tools {

/// Makes a stream print numbers as C++ writes them, 1234.5, during its lifetime; the destructor restores the stream's
/// locale and format.
class ClassicNumbers {
 public:
  explicit ClassicNumbers(std::ostream& out) : out_(out), before_(nullptr) {
    before_.copyfmt(out);
    out.imbue(std::locale::classic());
  }
  ~ClassicNumbers() { out_.copyfmt(before_); }
  ClassicNumbers(const ClassicNumbers&) = delete;
  ClassicNumbers& operator=(const ClassicNumbers&) = delete;

 private:
  std::ostream& out_;
  std::ios before_;
};

}  // namespace ferrite::tools
