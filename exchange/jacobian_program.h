#pragma once
/// Programs that return a function's results together with its derivatives, for solvers that linearise a net.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/exchange/step_program.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange {

/// The way in which a program computes its Jacobians.
enum class JacobianMode : std::uint8_t {
  cheaper,  ///< the one of the two that does less arithmetic
  forward,  ///< by columns: the derivatives along all elements of an input, together
  reverse,  ///< by rows: the gradients of all elements of a result, together
};

/// Options of `jacobian_program`: which derivatives it computes, in which dtype and in which order.
struct JacobianProgramOptions {
  /// Indices of the results to differentiate; without a value, all floats.
  std::optional<std::vector<std::size_t>> results{};
  /// Indices of the inputs to differentiate by; without a value, all floats.
  std::optional<std::vector<std::size_t>> inputs{};
  /// The dtype of the arithmetic, f64 or f32: inputs, results and constants that are f32 get it.
  Dtype dtype = Dtype::f64;
  JacobianMode mode = JacobianMode::cheaper;
  /// Whether blocks are column-major, [elements of the input, elements of the result], as CasADi and Fortran store
  /// them.
  bool column_major = false;
};

/// Says what a Jacobian block is the derivative of.
struct JacobianBlock {
  std::size_t result = 0;  ///< index among the results of the function
  std::size_t input = 0;   ///< index among its inputs
  /// Whether the block is zeros for every input, because no operation leads from the input to the result.
  bool zero = false;
};

/// A function of tensors with its Jacobians, as a function of tensors. Its trace holds ordinary operations only, and
/// computes what results and derivatives have in common once.
///
///   const auto step = exchange::step_program(net, {.batch = 1, .width = 3});
///   const auto j = exchange::jacobian_program(step);
///   const Tensors r = j.function({x, h});  // y, h.next, dy/dx, dy/dh, dh.next/dx, dh.next/dh
struct JacobianProgram {
  /// inputs -> results, then the blocks, each [elements of the result, elements of the input] (or `column_major`).
  std::function<Tensors(const Tensors&)> function;
  /// inputs -> results alone, of the same dtype and bits.
  std::function<Tensors(const Tensors&)> primal;
  std::vector<Spec> inputs;                   ///< types of the inputs
  std::vector<Spec> results;                  ///< types of the results, without the blocks
  std::vector<JacobianBlock> blocks;          ///< result by result, the inputs of each in order
  std::vector<std::string> input_names;       ///< names of the inputs; empty for a function without names
  std::vector<std::string> output_names;      ///< names of the results and blocks, "dy_dx"; empty for one without names
  JacobianMode mode = JacobianMode::forward;  ///< forward or reverse, as chosen
};

/// Returns the Jacobians of a function of tensors of fixed types. The function is traced once, here; its variables are
/// constants of the program, with their present values. Models of f32 are computed in f64, from the same weights.
///
/// All rows, or all columns, run together, as one batch; operations that have no form for a batch run once for each.
/// Derivatives are those of the library's operations, as `jacobian` (autograd/jacobian.h) gives them. Where an
/// operation has several, such as relu at 0, they follow its documentation.
///
/// Throws ValueError for a null function, for one that assigns variables or draws random numbers, for a dtype other
/// than f32 and f64, and for indices that do not exist; DtypeError for indices of inputs or results that are not
/// floats; TraceError for what cannot be traced; and whatever the function throws.
JacobianProgram jacobian_program(const std::function<Tensors(const Tensors&)>& function, std::span<const Spec> inputs,
                                 const JacobianProgramOptions& options = {});

/// Returns the Jacobians of a step of a stream: of y and the next states, with respect to x and the states. Names are
/// those of the step as C identifiers: "y", "h_next", "dy_dx", "dh_next_dh".
JacobianProgram jacobian_program(const StepProgram& step, const JacobianProgramOptions& options = {});

/// The gradients of a function's inputs for given cotangents of its results, as a function of tensors.
struct AdjointProgram {
  /// inputs, then a cotangent of each result -> the gradient of every input: zeros for one that has no derivative.
  std::function<Tensors(const Tensors&)> function;
  std::vector<Spec> inputs;  ///< types of the inputs, then of the cotangents
};

/// Returns the adjoint of a program: J'u for its Jacobian J. Its own Jacobian with respect to the inputs of the program
/// holds second derivatives, the Hessian of <u, f>:
///
///   const auto adjoint = exchange::adjoint_program(p);
///   const auto hessian = exchange::jacobian_program(adjoint.function, adjoint.inputs, {.inputs = {{0, 1}}});
///
/// Throws DtypeError for inputs or results that are not floats.
AdjointProgram adjoint_program(const JacobianProgram& program);

}  // namespace ferrite::exchange
