#pragma once
/// Texts made of parts.
#include <string>
#include <vector>

namespace ferrite::tools {

/// Returns the parts joined to one text: "a, b, c" with ", " between.
inline std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string s;
  for (const std::string& part : parts) s += (s.empty() ? "" : between) + part;
  return s;
}

}  // namespace ferrite::tools
