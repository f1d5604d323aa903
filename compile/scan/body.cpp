/// Bodies of scans: checked, compared, prepared for gradients and for running.
#include "ferrite/compile/scan_body.h"

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan/detail/run.h"

namespace ferrite::detail {
namespace {

std::string count(std::size_t n, const char* what) { return std::to_string(n) + " " + what; }

Shape parts_of(const ScanSignature& s) {
  return {static_cast<std::int64_t>(s.carries), static_cast<std::int64_t>(s.xs), static_cast<std::int64_t>(s.sums)};
}

}  // namespace

ScanBody::ScanBody(Graph graph, const ScanSignature& signature) : graph_(std::move(graph)), signature_(signature) {
  graph_.validate();
  if (!graph_.reads.empty() || !graph_.writes.empty()) throw TraceError("scan: a body reads and writes no variables");
  if (graph_.inputs.size() < signature.carries + signature.xs ||
      graph_.outputs.size() < signature.carries + signature.sums)
    throw TraceError("scan: a body of " + count(graph_.inputs.size(), "inputs") + " and " +
                     count(graph_.outputs.size(), "outputs") + " cannot have " + count(signature.carries, "carries") +
                     ", " + count(signature.xs, "xs") + " and " + count(signature.sums, "sums"));
  passes::simplify(graph_);
  for (std::size_t k = 0; k < signature.carries; ++k)
    if (input(k) != output(k))
      throw ShapeError("scan: carry " + std::to_string(k) + " goes into a step as " + input(k).str() +
                       " and comes out as " + output(k).str() + "; both must be equal");
}

ScanBody::~ScanBody() = default;

void ScanBody::give(Attrs& attrs, Graph graph) {
  const Shape parts = attrs.as<ScanAttrs>("scan").parts;
  if (parts.rank() != 3 || parts[0] < 0 || parts[1] < 0 || parts[2] < 0)
    throw TraceError("scan: parts must be the numbers of carries, xs and sums, got " + parts.str());
  const auto at = [&](int i) { return static_cast<std::size_t>(parts[i]); };
  attrs.body = std::make_shared<const ScanBody>(std::move(graph), ScanSignature{at(0), at(1), at(2)});
}

Attrs ScanBody::attrs_of(std::shared_ptr<const ScanBody> body, std::int64_t steps, bool reverse) {
  Attrs attrs = ScanAttrs{parts_of(body->signature()), steps, reverse};
  attrs.body = std::move(body);
  return attrs;
}
Attrs ScanBody::attrs_of(std::shared_ptr<const ScanBody> body, std::int64_t steps, bool reverse, std::int64_t every) {
  Attrs attrs = CheckpointedScanAttrs{{parts_of(body->signature()), steps, reverse}, every};
  attrs.body = std::move(body);
  return attrs;
}

bool ScanBody::equals(const Subprogram& other) const {
  if (this == &other) return true;
  const auto* o = dynamic_cast<const ScanBody*>(&other);
  return o && signature_ == o->signature_ && same_graph(graph_, o->graph_);
}

std::shared_ptr<const ScanBody> ScanBody::saving() const {
  const std::lock_guard lock(mutex_);
  if (!saving_) {
    auto back = std::make_unique<const ScanBack>(*this);
    const auto forward = std::make_shared<ScanBody>(back->forward(), signature_);
    forward->back_ = std::move(back);
    forward->base_ = weak_from_this();
    saving_ = forward;
  }
  return saving_;
}

const ScanProgram& ScanBody::program() const {
  const std::lock_guard lock(mutex_);
  if (!program_) program_ = std::make_unique<const ScanProgram>(*this);
  return *program_;
}

}  // namespace ferrite::detail
