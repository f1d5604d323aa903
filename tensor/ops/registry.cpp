/// The list of all operations, joined from the lists at the ends of the families' files.
#include "ferrite/tensor/ops/define.h"

namespace ferrite {

std::span<const Primitive* const> primitives() {
  using namespace detail;
  static const std::vector<const Primitive*> all = joined({arithmetic_family(),
                                                           functions_family(),
                                                           logic_family(),
                                                           reduction_family(),
                                                           product_family(),
                                                           view_family(),
                                                           assembly_family(),
                                                           indexing_family(),
                                                           check_family(),
                                                           creation_family(),
                                                           random_family(),
                                                           draw_family(),
                                                           choice_family(),
                                                           pooling_family(),
                                                           unfolding_family(),
                                                           convolution_family(),
                                                           fourier_family(),
                                                           frame_family(),
                                                           linalg_family(),
                                                           math_family(),
                                                           bits_family(),
                                                           activation_family(),
                                                           activation_gradient_family(),
                                                           cumulative_family(),
                                                           linear_scan_family(),
                                                           sorting_family(),
                                                           scatter_family(),
                                                           selection_family(),
                                                           attention_family(),
                                                           selective_scan_family()});
  return all;
}

std::span<const Primitive* const> composites() {
  using namespace detail;
  static const std::vector<const Primitive*> all = joined({composite_family(),
                                                           composite_shape_family(),
                                                           composite_value_family(),
                                                           composite_padding_family(),
                                                           composite_random_family(),
                                                           composite_choice_family(),
                                                           composite_pooling_family(),
                                                           composite_window_family(),
                                                           composite_fourier_family(),
                                                           composite_spectrogram_family(),
                                                           composite_activation_family(),
                                                           norm_family(),
                                                           count_family(),
                                                           arrangement_family(),
                                                           composite_product_family(),
                                                           composite_math_family(),
                                                           composite_linalg_family(),
                                                           composite_samples_family(),
                                                           composite_order_family(),
                                                           composite_scatter_family(),
                                                           masked_scatter_family(),
                                                           composite_normalization_family(),
                                                           composite_attention_family()});
  return all;
}

const Primitive* find_primitive(std::string_view name) {
  for (const Primitive* p : primitives())
    if (p->name == name) return p;
  return nullptr;
}

}  // namespace ferrite
