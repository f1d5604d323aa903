// What the text of a graph does not show of a scan: how its body is taken apart and planned. Only this file needs
// internals of the library.
#include "digests.h"
#include "ferrite/compile/scan/detail/run.h"

namespace digests {
namespace {

std::string names(const detail::ScanStage& stage) {
  std::string s;
  for (const Graph::Node& n : stage.graph.nodes) s += (s.empty() ? "" : " ") + std::string(n.op->name);
  return s.empty() ? "-" : s;
}

std::string describe(const Graph::Node& n) {
  const detail::ScanProgram& p = detail::ScanBody::of(n.attrs).program();
  const detail::ScanParts& parts = p.parts();
  std::string s = std::string(n.op->name) + ": hoisted: " + names(parts.once) + "; before: " + names(parts.before) +
                  "; step: " + names(parts.step) + "; after: " + names(parts.after) + "; " +
                  std::to_string(parts.terms.size()) + " sums, " + std::to_string(parts.carried.size()) +
                  " stacks of carries, chunks of " + std::to_string(p.chunk()) + " steps:";
  for (const Spec& c : parts.chunks) s += " " + c.str();
  return s + "; plan of the step: " + p.step_report().str();
}

}  // namespace

std::vector<std::string> scans_of(const Graph& g) {
  std::vector<std::string> all;
  for (const Graph::Node& n : g.nodes) {
    if (!n.attrs.body) continue;
    all.push_back(describe(n));
    for (std::string& inner : scans_of(detail::ScanBody::of(n.attrs).graph())) all.push_back("inside: " + inner);
  }
  return all;
}

}  // namespace digests
