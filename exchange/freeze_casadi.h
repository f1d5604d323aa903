#pragma once
/// C functions as external functions of CasADi.
#include <cstdint>
#include <string>
#include <vector>

#include "ferrite/exchange/jacobian_program.h"

namespace ferrite::exchange {

/// A C function that `casadi_wrapper` calls: `int function(instance *n, const double *..., double *...)`, which returns
/// 0, with one pointer for each input and result, none of them null.
struct CasadiCallee {
  std::string function;  ///< its name, "net_run"
  std::string instance;  ///< the type of its first argument, "net"; empty: it has no such argument
  std::string init;      ///< `void init(instance *n)`, called before each call; empty: there is nothing to call
};

/// What `casadi_wrapper` writes: a function of vectors, and its derivatives, under CasADi's names.
struct CasadiFunction {
  /// An input or a result: its name, a C identifier, and its number of elements, which CasADi sees as a column.
  struct Argument {
    std::string name;
    std::int64_t elements = 0;
  };
  /// A C function that gives Jacobian blocks.
  struct Blocks {
    CasadiCallee callee;
    /// The blocks that it gives, in the order of its arguments: those of JacobianProgram::blocks. CasADi sees missing
    /// ones, and those that are zeros, as empty.
    std::vector<JacobianBlock> blocks{};
    bool column_major = false;  ///< JacobianProgramOptions::column_major
    bool results = true;        ///< whether it gives the results, too, before the blocks
  };
  std::string name;     ///< the function's name in CasADi, a C identifier, "net_step"
  std::string include;  ///< the header that declares the C functions, "net.h"; empty: they stand above
  std::vector<Argument> inputs, results;
  CasadiCallee primal;  ///< takes the inputs and the results
  Blocks jacobian{};    ///< takes the inputs; without a function, CasADi has no derivatives
  /// Takes the inputs and a cotangent of each result, and gives the gradients of the inputs (AdjointProgram); without a
  /// function, CasADi multiplies by the Jacobian.
  CasadiCallee adjoint{};
  /// Takes what `adjoint` takes, and gives its Jacobian with respect to the inputs: second derivatives. Without a
  /// function, IPOPT needs `hessian_approximation = limited-memory`.
  Blocks hessian{};
};

/// Returns C99, which is also C++, that makes a C function an external function of CasADi 3.6 and later:
///
///   f = casadi.external("net_step", "./net.so")
///   f(x, h)                       # y, h_next
///   f.jacobian()                  # its blocks: jac_y_x, jac_y_h, ...
///
/// The text defines `net_step` with `_n_in`, `_n_out`, `_name_in`, `_name_out`, `_sparsity_in`, `_sparsity_out` and
/// `_work`, and the same for `jac_net_step`, `adj1_net_step` and `jac_adj1_net_step`, as far as they are given. Inputs
/// and results are those that CasADi gives these functions: a Jacobian also takes the results of the function, which it
/// does not read. Blocks are dense, or empty where they are zeros. An input that CasADi leaves out is zeros, a result
/// that it leaves out is not copied, and a C function of which it wants nothing is not called. The text allocates
/// nothing: instances and temporaries lie in the work array that CasADi gives each call, so that calls on different
/// threads do not meet.
///
/// Throws ValueError for names that are no C identifiers or occur twice, for sizes below 1, for blocks that repeat or
/// do not exist, and for a Hessian without an adjoint or a Jacobian.
std::string casadi_wrapper(const CasadiFunction& f);

/// Options of `freeze_casadi`: the function's name and the derivatives that it has.
struct CasadiOptions {
  std::string name = "net_step";                    ///< its name in CasADi and of the files, a C identifier
  std::string command = "exchange::freeze_casadi";  ///< the command or call that made the files, for their first lines
  bool hessian = true;                              ///< whether to write second derivatives, too, for exact Hessians
};

/// A file of C: its name and its text.
struct CasadiFile {
  std::string name;
  std::string text;
};

/// Returns a step of a stream in f64, with its derivatives, as C files for CasADi:
///
///   for (const auto& f : exchange::freeze_casadi(exchange::step_program(net, {.batch = 1, .width = 2})))
///     std::ofstream(f.name) << f.text;
///
///   cc -O2 -march=native -fPIC -shared -o net_step.so net_step*.c -lm
///   python3 -c "import casadi; print(casadi.external('net_step', './net_step.so'))"
///
/// On x86-64, `-march=native` or `-mfma` matters: without fused multiply-adds, the C library emulates them, a hundred
/// times slower. CasADi's names of inputs and results are those of the step: x, h -> y, h_next. Throws as
/// `jacobian_program` and `freeze` do.
std::vector<CasadiFile> freeze_casadi(const StepProgram& step, const CasadiOptions& options = {});

}  // namespace ferrite::exchange
