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

/// What `casadi_wrapper` writes: a function of vectors, and its Jacobian, under CasADi's names.
struct CasadiFunction {
  /// An input or a result: its name, a C identifier, and its number of elements, which CasADi sees as a column.
  struct Argument {
    std::string name;
    std::int64_t elements = 0;
  };
  std::string name;     ///< the function's name in CasADi, a C identifier, "net_step"
  std::string include;  ///< the header that declares the C functions, "net.h"; empty: they stand above
  std::vector<Argument> inputs, results;
  CasadiCallee primal;    ///< takes the inputs and the results
  CasadiCallee jacobian;  ///< takes the inputs and the blocks; without a function, CasADi has no derivatives
  /// The blocks that `jacobian` gives, in the order of its arguments: one for each pair of result and input, or those
  /// that are not zero.
  std::vector<JacobianBlock> blocks;
  bool column_major = false;      ///< the layout of the blocks: JacobianProgramOptions::column_major
  bool jacobian_results = false;  ///< whether `jacobian` gives the results, too, before the blocks
};

/// Returns C99, which is also C++, that makes a C function an external function of CasADi 3.6 and later:
///
///   f = casadi.external("net_step", "./net.so")
///   f(x, h)                       # y, h_next
///   f.jacobian()                  # its blocks: jac_y_x, jac_y_h, ...
///
/// The text defines `net_step` with `_n_in`, `_n_out`, `_name_in`, `_name_out`, `_sparsity_in`, `_sparsity_out` and
/// `_work`, and with a Jacobian the same for `jac_net_step`, whose inputs are those of the function and then its
/// results (which it does not read), and whose results are blocks in CasADi's order, dense, or empty where they are
/// zeros. An input that CasADi leaves out is zeros, a result that it leaves out is not copied. It allocates nothing:
/// instances and temporaries lie in the work array that CasADi gives each call, so that calls on different threads do
/// not meet.
///
/// Throws ValueError for names that are no C identifiers or occur twice, for sizes below 1, and for blocks that repeat
/// or do not exist.
std::string casadi_wrapper(const CasadiFunction& f);

}  // namespace ferrite::exchange
