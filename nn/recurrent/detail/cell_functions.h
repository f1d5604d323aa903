#pragma once
/// What a cell's folder says besides its kernels: its step in operations, and the same in plain numbers for tests.
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "ferrite/nn/recurrent/detail/gated_cell.h"
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/oracle.h"

namespace ferrite::nn::detail {

using Row = std::vector<double>;

/// One step of one row in doubles. Functions of (gate, unit) give x W_ih + b_ih and operand W_hh + b_hh.
struct StepOracle {
  std::int64_t H;
  std::function<double(std::int64_t gate, std::int64_t j)> input;
  std::function<double(const Row& operand, std::int64_t gate, std::int64_t j)> product;
  std::function<double(std::int64_t vector, std::int64_t j)> vector;
  Row h;      ///< before the step
  Row c;      ///< before it, and after
  Row next;   ///< h after it, before a projection
  Row saved;  ///< place by place

  double sum(std::int64_t gate, std::int64_t j) const { return input(gate, j) + product(h, gate, j); }
  double& save(std::int64_t place, std::int64_t j) { return saved[static_cast<std::size_t>(place * H + j)]; }
};

/// One step of one row of the backward pass. The functions that take a cotangent add it where it belongs.
struct BackOracle {
  std::int64_t H;
  std::function<double(std::int64_t place, std::int64_t j)> saved;
  std::function<double(std::int64_t vector, std::int64_t j)> vector;
  Row y, h, c;  ///< after the step; before it
  Row d;        ///< cotangent of h after the step, before a projection
  Row dh;       ///< of h before the step
  Row dc;       ///< of c after the step, and before it
  /// Of x W_ih + b_ih.
  std::function<void(std::int64_t gate, std::int64_t j, double d)> add_input;
  /// Of operand W_hh + b_hh; that of the operand is added to d_operand.
  std::function<void(const Row& operand, std::int64_t gate, std::int64_t j, double d, Row& d_operand)> add_product;
  std::function<void(std::int64_t vector, std::int64_t j, double d)> add_vector;

  void add_sum(std::int64_t gate, std::int64_t j, double cotangent) {
    add_input(gate, j, cotangent);
    add_product(h, gate, j, cotangent, dh);
  }
};

/// SequenceWeights that belong to somebody else: counting handles costs as much as a small step.
struct BorrowedWeights {
  const Tensor *w_ih, *w_hh, *b_ih, *b_hh, *w_hr, *w_ch;  ///< undefined ones for what is left out
  static BorrowedWeights of(const SequenceWeights& w) { return {&w.w_ih, &w.w_hh, &w.b_ih, &w.b_hh, &w.w_hr, &w.w_ch}; }
};

struct CellFunctions {
  /// One step from i = x W_ih + b_ih [B, G H]: the definition.
  RecurrentState (*step)(const Tensor& i, const RecurrentState& before, const SequenceWeights& w);
  /// All steps as one operation.
  Tensors (*sequence)(const Tensor& x, const RecurrentState& before, const BorrowedWeights& w,
                      const SequenceOptions& options);
  void (*oracle)(StepOracle& s);
  void (*oracle_back)(BackOracle& s);
};

/// What a folder adds to nn::operations() and nn::composites().
struct CellOperations {
  const Primitive* sequence;
  const Primitive* gradient;
  std::span<const Primitive* const> steps;
};

/// A step as a composite has it: operands i [B, G H], h, (c,) w_hh, (w_ch,) (b_hh), (w_hr) -> h, (c).
void step_oracle(const GatedCell& cell, std::span<const ferrite::detail::Dense> in,
                 std::span<ferrite::detail::Dense> out, bool bias, bool projection);
/// Samples of it, with and without its bias.
std::vector<ferrite::detail::Sample> step_samples(const GatedCell& cell);

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace ferrite::nn::detail
