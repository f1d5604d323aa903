#pragma once
/// Helpers of the oracles of recurrent cells: one step of a row in doubles, forward and backward, and sequences of
/// steps.
#include <cmath>
#include <functional>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"

namespace oracles {
using ferrite::nn::detail::GatedCell;
using ferrite::nn::detail::SequenceOrder;

using Row = std::vector<double>;

/// One step of one row in doubles. Functions of (gate, unit) return x W_ih + b_ih and operand W_hh + b_hh.
struct StepOracle {
  std::int64_t H;
  std::function<double(std::int64_t gate, std::int64_t j)> input;
  std::function<double(const Row& operand, std::int64_t gate, std::int64_t j)> product;
  std::function<double(std::int64_t vector, std::int64_t j)> vector;
  Row h;      ///< h before the step
  Row c;      ///< c before the step, then after it
  Row next;   ///< h after the step, before a projection
  Row saved;  ///< saved values, place by place

  double sum(std::int64_t gate, std::int64_t j) const { return input(gate, j) + product(h, gate, j); }
  double& save(std::int64_t place, std::int64_t j) { return saved[static_cast<std::size_t>(place * H + j)]; }
};

/// One step of one row of the backward pass. The functions that take a cotangent add it to its place.
struct BackOracle {
  std::int64_t H;
  std::function<double(std::int64_t place, std::int64_t j)> saved;
  std::function<double(std::int64_t vector, std::int64_t j)> vector;
  Row y, h, c;  ///< y after the step; h and c before it
  Row d;        ///< cotangent of h after the step, before a projection
  Row dh;       ///< cotangent of h before the step
  Row dc;       ///< cotangent of c after the step, then before it
  /// Adds a cotangent of x W_ih + b_ih.
  std::function<void(std::int64_t gate, std::int64_t j, double d)> add_input;
  /// Adds a cotangent of operand W_hh + b_hh; that of the operand is added to d_operand.
  std::function<void(const Row& operand, std::int64_t gate, std::int64_t j, double d, Row& d_operand)> add_product;
  std::function<void(std::int64_t vector, std::int64_t j, double d)> add_vector;

  void add_sum(std::int64_t gate, std::int64_t j, double cotangent) {
    add_input(gate, j, cotangent);
    add_product(h, gate, j, cotangent, dh);
  }
};

/// The formulas of a cell.
struct CellOracle {
  const GatedCell* cell;
  void (*step)(StepOracle& s);
  void (*back)(BackOracle& s);
};
/// Returns the formulas of a cell from gated_cells.cpp.
const CellOracle& oracle_of(const GatedCell& cell);

/// Computes a step as the composite does: operands i [B, G H], h, (c,) w_hh, (w_ch,) (b_hh), (w_hr) -> h, (c).
void step_oracle(const GatedCell& cell, std::span<const Dense> in, std::span<Dense> out, bool bias, bool projection);
/// Returns samples of a step, with and without bias.
std::vector<Sample> step_samples(const GatedCell& cell);
/// Computes all steps of a sequence.
void sequence_oracle(const GatedCell& cell, std::span<const Dense> in, std::span<Dense> out,
                     const SequenceOrder& order);
std::vector<Sample> sequence_samples(const GatedCell& cell);
/// Computes the gradient of a sequence.
void sequence_grad_oracle(const GatedCell& cell, std::span<const Dense> in, std::span<Dense> out,
                          const SequenceOrder& order);
std::vector<Sample> sequence_grad_samples(const GatedCell& cell);

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace oracles
