/// Networks that the builder made, and their summaries.
#include "ferrite/dsl/network.h"

#include <algorithm>

namespace ferrite::dsl {
namespace {

using Cells = std::vector<std::string>;

/// 1234567 as "1,234,567".
std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(s.size()) - 3; at > 0; at -= 3)
    s.insert(static_cast<std::size_t>(at), ",");
  return s;
}

std::string padded(const std::string& s, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, s.size()), ' ');
  return right ? blanks + s : s + blanks;
}

std::string table(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const Cells& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  const auto line = [&](const Cells& row) {
    std::string s;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i) s += "  ";
      s += padded(row[i], widths[i], i >= 3);
    }
    s.erase(s.find_last_not_of(' ') + 1);
    text += s + "\n";
  };
  std::size_t total = 2 * (widths.size() - 1);
  for (const std::size_t w : widths) total += w;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 1 || i + 1 == rows.size()) text += std::string(total, '-') + "\n";
    line(rows[i]);
  }
  return text;
}

}  // namespace

std::string Network::summary() const {
  const bool steps = input_.kind == InputKind::sequence || input_.kind == InputKind::tokens;
  std::vector<Cells> rows = {{"layer", "kind", "output", "parameters", steps ? "multiply-adds/step" : "multiply-adds"}};
  std::int64_t parameters = 0;
  std::int64_t multiply_adds = 0;
  for (const SummaryRow& r : rows_) {
    rows.push_back({r.name, r.kind, r.output, grouped(r.parameters), grouped(r.multiply_adds)});
    parameters += r.parameters;
    multiply_adds += r.multiply_adds;
  }
  rows.push_back({"total", "", "", grouped(parameters), grouped(multiply_adds)});
  return table(rows);
}

Network Network::copy() const {
  Network net(input_, rows_);
  clone_into(net);
  return net;
}

std::unique_ptr<nn::Layer> Network::clone() const { return std::make_unique<Network>(copy()); }

}  // namespace ferrite::dsl
