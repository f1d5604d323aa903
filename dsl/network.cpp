/// Networks that the builder made, and their summaries.
#include "ferrite/dsl/network.h"

#include "ferrite/nn/text_table.h"

namespace ferrite::dsl {
std::string Network::summary() const {
  using nn::grouped;
  const bool steps = input_.kind == InputKind::sequence || input_.kind == InputKind::tokens;
  std::vector<nn::Cells> rows = {
      {"layer", "kind", "output", "parameters", steps ? "multiply-adds/step" : "multiply-adds"}};
  std::int64_t parameters = 0;
  std::int64_t multiply_adds = 0;
  for (const SummaryRow& r : rows_) {
    rows.push_back({r.name, r.kind, r.output, grouped(r.parameters), grouped(r.multiply_adds)});
    parameters += r.parameters;
    multiply_adds += r.multiply_adds;
  }
  rows.push_back({"total", "", "", grouped(parameters), grouped(multiply_adds)});
  return nn::text_table(rows, 3);
}

Network Network::copy() const {
  Network net(input_, rows_);
  clone_into(net);
  return net;
}

std::unique_ptr<nn::Layer> Network::clone() const { return std::make_unique<Network>(copy()); }

}  // namespace ferrite::dsl
