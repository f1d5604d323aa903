// Random programs, including scans, recurrent sequences, lengths, indices out of range, and empty and special inputs.
#include "digests.h"
#include "random/programs.h"

namespace digests {

std::vector<Case> random_cases(std::uint64_t first, std::uint64_t count) {
  std::vector<Case> all;
  for (std::uint64_t seed = first; seed < first + count; ++seed)
    all.push_back(derivatives(
        "random/" + std::to_string(seed),
        [seed]() -> Instance {
          const programs::WideProgram program(seed);
          return {program.values(), [program](const Tensors& in) { return program(in); }};
        },
        false));
  return all;
}

}  // namespace digests
