#pragma once
/// Writing a net's derivatives as C, for solvers that linearise it.
#include "ferrite/exchange/freeze.h"
#include "ferrite/exchange/jacobian_program.h"

namespace ferrite::exchange {

/// Writes a step of a stream together with its Jacobians as C, in f64 unless `jacobian` says otherwise:
///
///   const auto step = exchange::step_program(net, {.batch = 1, .width = 2});
///   const exchange::FrozenNet c = exchange::freeze_jacobian(step, {}, {.name = "net_jacobian"});
///
/// For a net of one recurrent layer, the header declares
///
///   int net_jacobian_run(net_jacobian *n, const double *x, const double *h, double *y, double *h_next, double *dy_dx,
///                        double *dy_dh, double *dh_next_dx, double *dh_next_dh);
///
/// The caller keeps the state: the instance holds working memory alone. A block has one row for each element of the
/// result and one column for each element of the input, row by row, or column by column with `jacobian.column_major`.
/// Blocks that are always zeros are written, too. For second derivatives and CasADi, see exchange/freeze/casadi.h.
///
/// `options.inputs` and `options.outputs` are ignored: the names are those of `jacobian_program`. Throws as
/// `jacobian_program` and `freeze` do.
FrozenNet freeze_jacobian(const StepProgram& step, const JacobianProgramOptions& jacobian = {},
                          const FreezeOptions& options = {});

}  // namespace ferrite::exchange
