/// Reports of streams: how each layer runs.
#include <algorithm>
#include <ostream>

#include "ferrite/nn/detail/states.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/nn/text_table.h"

namespace ferrite::nn {
namespace {

std::string words(Step::Runs runs) {
  switch (runs) {
    case Step::Runs::program: return "program";
    case Step::Runs::on_tensors: return "tensors";
    default: return "kernel";
  }
}

std::string why_single(const Step& step) {
  if (step.runs() == Step::Runs::on_tensors) return step.why();
  if (step.skips()) return "it does not give a step for each";
  if (step.most_at_once() == 1 && !step.never_throws()) return "a step of it may fail";
  return {};
}

}  // namespace

StreamReport Stream::report() const {
  StreamReport report{.at_once = at_once_};
  if (!step_) return report;
  step_->each([&report](Step& step) {
    std::int64_t bytes = 0;
    step.states([&bytes](const StateMemory& s) { bytes += detail::bytes_of(s.spec); });
    report.layers.push_back({.layer = std::string(step.scope().path()),
                             .kind = std::string(step.kind()),
                             .runs = words(step.runs()),
                             .at_once = std::min(step.most_at_once(), report.at_once),
                             .bytes = bytes,
                             .why = why_single(step)});
    report.bytes += bytes;
  });
  return report;
}

std::string StreamReport::str() const {
  std::vector<Cells> rows = {{"layer", "kind", "runs as", "why", "steps at once", "bytes of states"}};
  for (const LayerReport& l : layers)
    rows.push_back({l.layer, l.kind, l.runs, l.why, std::to_string(l.at_once), grouped(l.bytes)});
  rows.push_back({"", "", "", "", std::to_string(at_once), grouped(bytes)});
  return text_table(rows, 4);
}

std::ostream& operator<<(std::ostream& out, const StreamReport& report) { return out << report.str(); }

}  // namespace ferrite::nn
