#pragma once
/// Whole numbers that depend on sizes chosen later, such as a batch or a number of steps.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite {

/// A whole number that may depend on symbols: a sum of products of different symbols, divided and rounded down, such as
/// 2 T - 1, B T + T or (T + 2) / 4.
class SymbolicNumber {
 public:
  /// The maximum number of symbols: a symbol's index is below it.
  static constexpr std::size_t kMaxSymbols = 16;

  /// A product of some symbols, times a factor.
  struct Term {
    std::uint32_t symbols = 0;  ///< bit k: the k-th symbol is part of the product; not 0
    std::int64_t factor = 0;    ///< the product's factor; not 0

    /// Returns whether a symbol is part of the product.
    bool has(std::size_t symbol) const { return (symbols >> symbol & 1) != 0; }
    auto operator<=>(const Term&) const = default;
  };

  /// Makes a number that depends on no symbol.
  SymbolicNumber(std::int64_t constant = 0) : more_(constant) {}
  /// Returns the k-th symbol as a number. Throws ValueError when k is not below kMaxSymbols.
  static SymbolicNumber symbol(std::size_t k);
  /// Returns every product of one or more different symbols, of the symbols 0 to `symbols` - 1; products of few symbols
  /// come first.
  static std::vector<SymbolicNumber> products(std::size_t symbols);
  /// Finds the number that has these values at these sizes of the symbols, one list of sizes for each value. Prefers
  /// few terms to many. At least one value more than determine the number must agree, two where it has a divisor.
  /// `steps` holds for each symbol a number that divides all of its sizes; a divisor must then divide every term.
  /// Without `steps` there is no divisor. Returns nullopt when no number has these values.
  static std::optional<SymbolicNumber> with_values(std::span<const std::vector<std::int64_t>> sizes,
                                                   std::span<const std::int64_t> values,
                                                   std::span<const std::int64_t> steps = {});

  /// Returns the numbers floor((factor * product + more) / divisor) that have these values at these sizes: a product
  /// of some symbols, divisor 2 to 8. Needs sizes at which the products differ by more than 14, else it may miss some.
  /// Returns several where the sizes do not tell them apart: T / 2 and (T + 1) / 2, if every T tried is even.
  static std::vector<SymbolicNumber> rounded_with_values(std::span<const std::vector<std::int64_t>> sizes,
                                                         std::span<const std::int64_t> values);

  /// Returns the value of a number that does not depend on symbols, nullopt for other numbers.
  std::optional<std::int64_t> constant() const { return terms_.empty() ? std::optional(more_) : std::nullopt; }
  /// Returns whether the number depends on no symbol.
  bool is_constant() const { return terms_.empty(); }
  /// Returns the terms of the number, products of symbols with a factor: the number is floor((sum of terms + more) /
  /// divisor). They are in the order of Term::symbols.
  std::span<const Term> terms() const& { return terms_; }
  /// Returns the constant that is added to the terms before the division.
  std::int64_t more() const { return more_; }
  /// Returns the divisor, at least 1.
  std::int64_t divisor() const { return divisor_; }

  /// Returns the number's value for these sizes of the symbols. Throws ShapeError beyond 64 bits, ValueError for too
  /// few sizes.
  std::int64_t at(std::span<const std::int64_t> sizes) const;
  /// Returns whether the value may be below 0 for some sizes above 0: a factor is negative, or so is the value where
  /// all sizes are 1.
  bool may_be_negative() const;
  /// Returns the number as text: "2*T - 1", "(B*T + 2)/4".
  std::string str(std::span<const std::string> symbols) const;
  auto operator<=>(const SymbolicNumber&) const = default;

 private:
  /// Returns the value before it is divided.
  std::int64_t dividend(std::span<const std::int64_t> sizes) const;

  std::vector<Term> terms_{};
  std::int64_t more_ = 0, divisor_ = 1;
};

}  // namespace ferrite
