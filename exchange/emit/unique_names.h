#pragma once
/// Unique names for the values of a program that is written.
#include <set>
#include <string>

namespace ferrite::exchange::detail {

class UniqueNames {
 public:
  /// Returns `wanted`, with a number appended where it is taken, and marks the result as taken.
  std::string claim(const std::string& wanted) {
    std::string name = wanted;
    for (int n = 1; !taken_.insert(name).second; ++n) name = wanted + "_" + std::to_string(n);
    return name;
  }

 private:
  std::set<std::string> taken_{};
};

}  // namespace ferrite::exchange::detail
