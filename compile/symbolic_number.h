#pragma once
/// Whole numbers that depend on sizes which are chosen later: a batch, a number of steps.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite {

/// A whole number that may depend on symbols: a sum of products of different symbols, divided and rounded down, as
/// 2 T - 1, B T + T or (T + 2) / 4.
class SymbolicNumber {
 public:
  /// Most symbols of a program.
  static constexpr std::size_t kMaxSymbols = 16;

  /// factor * the product of some symbols.
  struct Term {
    std::uint32_t symbols = 0;  ///< bit k: the k-th one is part of the product; not 0
    std::int64_t factor = 0;    ///< of the product; not 0

    bool has(std::size_t symbol) const { return (symbols >> symbol & 1) != 0; }
    auto operator<=>(const Term&) const = default;
  };

  SymbolicNumber(std::int64_t constant = 0) : more_(constant) {}
  /// The k-th symbol. Throws ValueError beyond kMaxSymbols.
  static SymbolicNumber symbol(std::size_t k);
  /// Gives every product of different symbols, of a number of symbols; products of few come first.
  static std::vector<SymbolicNumber> products(std::size_t symbols);
  /// The number that has these values at these sizes of the symbols, one list of sizes for each value: of few terms
  /// rather than many. At least one value more than determine it has to agree, two where it has a divisor. A divisor
  /// must divide every term for all sizes that are multiples of `steps`; empty: there is none. None where no number
  /// has these values.
  static std::optional<SymbolicNumber> with_values(std::span<const std::vector<std::int64_t>> sizes,
                                                   std::span<const std::int64_t> values,
                                                   std::span<const std::int64_t> steps = {});

  /// Gives all numbers floor((factor * product + more) / divisor), with a divisor of 2 to 8, that have these values at
  /// these sizes. There is one where the values show each rest of a division at which it grows; several may differ only
  /// at sizes that are not possible.
  static std::vector<SymbolicNumber> rounded_with_values(std::span<const std::vector<std::int64_t>> sizes,
                                                         std::span<const std::int64_t> values);

  /// The value of a number that does not depend on symbols; none of others.
  std::optional<std::int64_t> constant() const { return terms_.empty() ? std::optional(more_) : std::nullopt; }
  bool is_constant() const { return terms_.empty(); }
  /// floor((sum of terms + more) / divisor). Terms are in the order of their symbols.
  std::span<const Term> terms() const& { return terms_; }
  std::int64_t more() const { return more_; }
  std::int64_t divisor() const { return divisor_; }

  /// Computes the value at these sizes of the symbols. Throws ShapeError beyond 64 bits, ValueError for too few sizes.
  std::int64_t at(std::span<const std::int64_t> sizes) const;
  /// Tells whether the value is below 0 at some sizes above 0.
  bool may_be_negative() const;
  /// "2*T - 1", "(B*T + 2)/4".
  std::string str(std::span<const std::string> symbols) const;
  auto operator<=>(const SymbolicNumber&) const = default;

 private:
  /// The value before it is divided.
  std::int64_t dividend(std::span<const std::int64_t> sizes) const;

  std::vector<Term> terms_{};
  std::int64_t more_ = 0, divisor_ = 1;
};

}  // namespace ferrite
