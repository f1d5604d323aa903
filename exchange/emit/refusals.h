#pragma once
/// Operations that none of the formats expresses; each format adds its reason.
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/exchange/export_error.h"

namespace ferrite::exchange::detail {

/// Operations that draw random numbers by Philox4x32-10, with a counter for each element.
inline constexpr std::string_view kDraws[] = {
    "beta",   "exponential", "gamma",   "gumbel",  "laplace",          "multinomial",
    "normal", "permutation", "poisson", "randint", "truncated_normal", "uniform"};
inline constexpr std::string_view kDrawsHint =
    "draw outside of the traced function and give the numbers as an input; dropout is the identity in evaluation";
inline constexpr std::string_view kEliminations[] = {"cholesky", "eigh", "qr", "slogdet", "solve", "solve_triangular"};
inline constexpr std::string_view kEliminationsHint =
    "compute it outside of the traced function and give it as an input";
inline constexpr std::string_view kSpecialFunctions[] = {"digamma", "erfinv", "lgamma", "polygamma", "trigamma"};
inline constexpr std::string_view kSpecialFunctionsHint = "export the functions before and after it";

/// Operations that are refused for one reason.
struct RefusedOperations {
  std::span<const std::string_view> operations;
  std::string_view reason;
  std::string_view hint;
};

/// Returns the refusals `own`, followed by one for each operation in the groups.
inline std::vector<ExportRefusal> refusals(std::span<const ExportRefusal> own,
                                           std::initializer_list<RefusedOperations> groups) {
  std::vector<ExportRefusal> all(own.begin(), own.end());
  for (const RefusedOperations& group : groups)
    for (const std::string_view operation : group.operations) all.push_back({operation, group.reason, group.hint});
  return all;
}

}  // namespace ferrite::exchange::detail
