/// The list of the operations of sampling: draws by inversion and by rejection, choices, permutations.
#include "ferrite/tensor/ops/detail/draws.h"

namespace ferrite::detail {

Family sampling_family() {
  static const auto all = joined({draw_family(), rejection_family(), choice_family(), permutation_family()});
  return all;
}

Family composite_sampling_family() {
  static const auto all = joined({composite_choice_family(), composite_permutation_family()});
  return all;
}

}  // namespace ferrite::detail
