#pragma once
/// Names that must differ: of the values of a program that is written.
#include <set>
#include <string>

namespace ferrite::exchange::detail {

class UniqueNames {
 public:
  /// The name itself, or with a number behind it where it is taken; taken from now on.
  std::string claim(const std::string& wanted) {
    std::string name = wanted;
    for (int n = 1; !taken_.insert(name).second; ++n) name = wanted + "_" + std::to_string(n);
    return name;
  }

 private:
  std::set<std::string> taken_{};
};

}  // namespace ferrite::exchange::detail
