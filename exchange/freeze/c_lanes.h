#pragma once
/// Layouts of frozen programs: products of concatenations that are never written, and blocks of steps whose vectors run
/// over time.
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ferrite/exchange/freeze/c_body.h"

namespace ferrite::exchange::detail {

/// Returns the operands of products that are concatenations of windows along their last axis, [M, k] each.
std::map<ValueId, std::vector<LoweredWindow>> joined_rows(const LoweredProgram& program);

/// Lays the channels of narrow convolutions one after the other, in the lines and in all values of a block, so that
/// vectors of a block run over time. Leaves programs alone in which products are wide, or an operation cannot do that.
void turn_to_lanes(FrozenProgram& step, FrozenProgram& block);

/// A product of a block whose vectors run over time: y[n][t] = sum of a[k][t] b[k][n].
struct LanesProduct {
  std::int64_t steps = 0, terms = 0, columns = 0;
  std::int64_t a_step = 0, a_term = 0;    ///< strides of a
  std::int64_t b_term = 0, b_column = 0;  ///< strides of b
  std::int64_t y_step = 0, y_column = 0;  ///< strides of y
};
/// Returns a step as such a product; nullopt if it is none.
std::optional<LanesProduct> lanes_product(const LoweredStep& step);
/// Returns the largest number of columns of such products in a program.
std::int64_t widest_product(const FrozenProgram& program);
/// Writes a product of a block whose vectors run over time. Returns false for another operation.
bool write_lanes_product(CBody& body, const LoweredStep& step, CText& to);

/// Windows of one value that lie equally far apart, as the taps of a convolution do.
struct Taps {
  LoweredWindow first;
  std::int64_t taps = 1, apart = 0;  ///< their number, and the elements from one to the next
  std::int64_t count = 0;            ///< elements of each
};
/// Returns windows as such groups, in order.
std::vector<Taps> taps_of(std::span<const LoweredWindow> windows);

/// Writes the sums of a product over past frames, which wait for no other result of the step.
void write_past_sums(CBody& body, const ColumnProduct& p, CText& to);

}  // namespace ferrite::exchange::detail
