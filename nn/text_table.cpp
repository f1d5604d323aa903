/// Tables of text.
#include "ferrite/nn/text_table.h"

#include <algorithm>

namespace ferrite::nn {

std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(s.size()) - 3; at > 0; at -= 3)
    s.insert(static_cast<std::size_t>(at), ",");
  return s;
}

std::string text_table(const std::vector<Cells>& rows, std::size_t numbers) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const Cells& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::size_t total = 2 * (widths.size() - 1);
  for (const std::size_t w : widths) total += w;
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (r == 1 || r + 1 == rows.size()) text += std::string(total, '-') + "\n";
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      const std::string blanks(widths[i] - rows[r][i].size(), ' ');
      line += (i ? "  " : "") + (i >= numbers ? blanks + rows[r][i] : rows[r][i] + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace ferrite::nn
