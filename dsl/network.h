#pragma once
/// A network that the builder made: a chain of layers with `summary()`, `stream()` and `compiled()`.
#include <string>
#include <vector>

#include "ferrite/compile/symbols.h"
#include "ferrite/nn/layers/sequential.h"

namespace ferrite::dsl {

/// The kind of input that a network reads; volumes count as images.
enum class InputKind : std::uint8_t { sequence, features, tokens, image };
/// The input of a network: its kind and its sizes.
struct Input {
  InputKind kind;
  std::int64_t size;  ///< features, the vocabulary, or channels
  Shape space{};      ///< extents of an image or volume, without the channels
};

/// The number of steps of a value inside a network as a function of T, the number of steps of the network's input:
/// floor((T + offset) / stride). The defaults mean T itself.
struct StepsLeft {
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  bool operator==(const StepsLeft&) const = default;
};

/// A description (dtype and shape, no data) of the value that one layer passes to the next while a network is built.
struct Flow {
  SymbolicSpec spec;  ///< dtype and shape, with symbols for the batch and for this value's own number of steps
  std::int64_t vocabulary = 0;  ///< number of distinct tokens; 0 if the value is not tokens
  StepsLeft steps{};            ///< this value's number of steps, computed from that of the network's input
};

/// A row of `Network::summary`: one layer.
struct SummaryRow {
  std::string name, kind;          ///< the layer's name in the chain and its Layer::kind
  std::string output;              ///< shape: "[B, T, 64]"; with a stride of 2 steps "[B, floor((T + 1)/2), 64]"
  std::int64_t parameters = 0;     ///< number of parameter elements
  std::int64_t multiply_adds = 0;  ///< for one sample, or on average for one step of the input's sequence
};

/// A chain of layers that `Builder::build` made, with a description of its input. Move-only; `copy` copies it.
class Network final : public nn::Sequential {
 public:
  /// Makes a network without layers yet; `Builder::build` adds them.
  Network(Input input, std::vector<SummaryRow> rows) : input_(input), rows_(std::move(rows)) {}

  /// Returns the description of the input: its kind and sizes.
  const Input& input() const& { return input_; }
  Input input() const&& { return input_; }
  std::string kind() const override { return "network"; }
  /// Returns the result of the layers for x, whose shape `input()` describes. Throws ShapeError for an input without a
  /// batch axis when a layer does not accept that.
  Tensor forward(const Tensor& x, const nn::Context& context) const override;
  std::unique_ptr<nn::Layer> clone() const override;
  /// Returns an independent copy, as `clone` does, but as a Network.
  Network copy() const;

  /// Returns a table of layer, kind, output shape, parameters and multiply-adds, with totals at the end.
  std::string summary() const override;
  /// Returns the rows of the table that `summary` prints, one for each layer.
  const std::vector<SummaryRow>& rows() const& { return rows_; }
  std::vector<SummaryRow> rows() const&& { return rows_; }

 private:
  friend class Builder;
  Input input_;
  std::vector<SummaryRow> rows_;
};

}  // namespace ferrite::dsl
