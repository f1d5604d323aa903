// Random programs (tests/random). Their gradients depend on the order in which a compiler evaluates the operands of
// their expressions (docs/numerics.md, rule 13).
#include "random/programs.h"
#include "bits/results.h"

namespace bits {
namespace {

using namespace ferrite;

constexpr std::uint64_t kGroups = 10, kSeeds = 30;

/// Adds the results of a program, or nothing where it refuses its operands.
void add(Tensors& to, std::uint64_t seed) {
  const programs::WideProgram program(seed);
  try {
    for (const Tensor& y : program(program.values())) to.push_back(y);
  } catch (const Error&) {
    to.push_back(Tensor());
  }
}

}  // namespace

std::vector<Result> program_results() {
  std::vector<Result> all;
  for (std::uint64_t group = 0; group < kGroups; ++group)
    all.push_back({"programs/" + std::to_string(group), [group] {
                     Tensors results;
                     for (std::uint64_t i = 1; i <= kSeeds; ++i) add(results, group * kSeeds + i);
                     return results;
                   }});
  return all;
}

}  // namespace bits
