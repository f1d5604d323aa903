/// The operations and composed functions of activations, norms, rearrangements and mathematics, as one list each.
#include "ferrite/tensor/ops/define.h"

namespace ferrite::detail {

Family catalogue_family() {
  static const std::vector<const Primitive*> all =
      joined({trigonometry_family(), rounding_family(), special_family(), mixing_family(), bits_family(),
              activation_family(), activation_gradient_family()});
  return all;
}

Family composite_catalogue_family() {
  static const std::vector<const Primitive*> all =
      joined({composite_activation_family(), norm_family(), count_family(), diagonal_family(), arrangement_family(),
              einsum_family(), vector_product_family(), composite_rounding_family(), composite_special_family(),
              composite_mixing_family()});
  return all;
}

}  // namespace ferrite::detail
