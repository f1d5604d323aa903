#pragma once
/// A network that the builder made: a chain of layers with `summary()`, `stream()` and `compiled()`.
#include <string>
#include <vector>

#include "ferrite/compile/symbols.h"
#include "ferrite/nn/layers/sequential.h"

namespace ferrite::dsl {

/// What a network reads.
enum class InputKind : std::uint8_t { sequence, features, tokens, image };
struct Input {
  InputKind kind;
  std::int64_t size;  ///< features, the vocabulary, or channels
  Shape space{};      ///< of images: the extents behind the channels
};

/// How many steps are left of T: floor((T + offset) / stride).
struct StepsLeft {
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  bool operator==(const StepsLeft&) const = default;
};

/// What flows from one layer to the next while a network is built.
struct Flow {
  SymbolicSpec spec;            ///< for any batch B and any number of steps T, those that are left
  std::int64_t vocabulary = 0;  ///< of tokens
  StepsLeft steps{};            ///< of the input's steps
};

struct SummaryRow {
  std::string name, kind;
  std::string output;  ///< "[B, T, 64]"; where steps were joined "[B, floor((T + 1)/2), 64]"
  std::int64_t parameters = 0;
  std::int64_t multiply_adds = 0;  ///< of one sample, or of one step of the input's sequence, on average
};

/// A chain of layers that knows its input. Move-only; `clone` copies.
class Network final : public nn::Sequential {
 public:
  Network(Input input, std::vector<SummaryRow> rows) : input_(input), rows_(std::move(rows)) {}

  const Input& input() const& { return input_; }
  Input input() const&& { return input_; }
  std::string kind() const override { return "network"; }
  /// Throws ShapeError for an input without the batch's axis, where a layer does not take it.
  Tensor forward(const Tensor& x, const nn::Context& context) const override;
  std::unique_ptr<nn::Layer> clone() const override;
  /// An independent copy, as a Network.
  Network copy() const;

  /// A table: layer, kind, output shape, parameters, multiply-adds; totals at the end.
  std::string summary() const override;
  const std::vector<SummaryRow>& rows() const& { return rows_; }
  std::vector<SummaryRow> rows() const&& { return rows_; }

 private:
  friend class Builder;
  Input input_;
  std::vector<SummaryRow> rows_;
};

}  // namespace ferrite::dsl
