#pragma once
/// A locale with decimal commas, for tests of numbers in texts.
#include <locale>

namespace support {

/// Makes the program's locale write 1.234,5 while it lives.
class CommaLocale {
 public:
  CommaLocale() : kept_(std::locale::global(std::locale(std::locale::classic(), new Comma))) {}
  ~CommaLocale() { std::locale::global(kept_); }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

 private:
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale kept_;
};

}  // namespace support
