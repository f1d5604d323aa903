/// Summaries of calls of modules that are not chains, and the text tables that summaries print.
#include "ferrite/nn/summary.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "ferrite/compile/compile.h"
#include "ferrite/tensor/recorder.h"

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

namespace {

struct Row {
  std::string output = "-";
  std::int64_t parameters = 0, multiply_adds = 0;
};

/// A recorder that adds up, for each layer's path, what runs on types alone.
class ByLayer final : public Recorder {
 public:
  void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) override {
    Specs from, to;
    for (const Tensor& x : in) from.push_back(x.spec());
    for (const Tensor& x : out) to.push_back(x.spec());
    Row& row = at(std::string(ferrite::detail::frame().scope.path()));
    row.multiply_adds += cost_of(op, {from.data(), from.size()}, {to.data(), to.size()}, attrs).multiply_adds;
    if (!out.empty()) row.output = out[0].spec().str();
  }
  void read(const Variable&, Tensor&) override {}
  bool write(const Variable&, const Tensor&) override { return true; }
  bool tracing() const override { return true; }

  /// Returns the row of a path; new rows are added at the end, in the order in which layers run.
  Row& at(const std::string& path) {
    const auto [place, fresh] = places_.try_emplace(path, rows.size());
    if (fresh) rows.emplace_back(path, Row{});
    return rows[place->second].second;
  }
  std::vector<std::pair<std::string, Row>> rows;

 private:
  std::map<std::string, std::size_t> places_;
};

/// Returns the path of a parameter's module, "encoder.0" for "encoder.0.weight".
std::string path_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? std::string() : parameter.substr(0, dot);
}

}  // namespace

std::string summary(const Module& module, const std::function<void()>& call) {
  if (!call) throw ValueError("summary: the call is null");
  ByLayer layers;
  {
    const NewFrame frame(layers);
    call();
  }
  const std::string own = module.path(), prefix = own.empty() ? "" : own + ".";
  std::unordered_set<const void*> seen;
  for (const Named<Parameter>& p : module.named_parameters())
    if (seen.insert(p.variable.identity()).second) {
      std::string path = path_of(p.name);
      path = path.empty() ? own : prefix + path;
      // The path of a parameter need not be that of a layer that ran: find the one that did.
      std::string layer = path;
      const auto ran = [&](const std::string& name) {
        return std::ranges::any_of(layers.rows, [&](const auto& row) { return row.first == name; });
      };
      while (!layer.empty() && !ran(layer)) layer = path_of(layer);
      layers.at(layer.empty() ? path : layer).parameters += p.variable.numel();
    }
  std::vector<Cells> rows{{"layer", "output", "parameters", "multiply-adds"}};
  Row total;
  for (const auto& [path, row] : layers.rows) {
    rows.push_back({path.empty() ? "(itself)" : path, row.output, grouped(row.parameters), grouped(row.multiply_adds)});
    total.parameters += row.parameters;
    total.multiply_adds += row.multiply_adds;
  }
  rows.push_back({"total", "", grouped(total.parameters), grouped(total.multiply_adds)});
  return text_table(rows, 2);
}

}  // namespace ferrite::nn
