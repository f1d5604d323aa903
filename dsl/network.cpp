/// Networks that the builder made, with their summaries.
#include "ferrite/dsl/network.h"

#include "ferrite/nn/summary.h"

namespace ferrite::dsl {
namespace {

/// Returns an input as text: "sequences [B, T, 12]".
std::string text_of(const Input& input) {
  const std::string n = std::to_string(input.size);
  switch (input.kind) {
    case InputKind::sequence: return "sequences [B, T, " + n + "]";
    case InputKind::features: return "vectors [B, " + n + "]";
    case InputKind::tokens: return "tokens [B, T]";
    case InputKind::image: break;
  }
  std::string text = "images [B, " + n;
  for (const std::int64_t extent : input.space) text += ", " + std::to_string(extent);
  return text + "]";
}

int rank_of(const Input& input) {
  if (input.kind == InputKind::image) return 2 + input.space.rank();
  return input.kind == InputKind::sequence ? 3 : 2;
}

}  // namespace

Tensor Network::forward(const Tensor& x, const nn::Context& context) const {
  if (x.rank() + 1 != rank_of(input_)) return Sequential::forward(x, context);
  try {  // some layers take an input without a batch
    return Sequential::forward(x, context);
  } catch (const ShapeError& e) {
    throw ShapeError("network: expects " + text_of(input_) + ", got " + x.shape().str() +
                     " without the axis of the batch; unsqueeze(x, 0) adds one (" + e.what() + ")");
  }
}

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
