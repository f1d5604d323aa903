/// The list of all operations, composed of the lists in the families' files.
#include "ferrite/tensor/ops/define.h"

namespace ferrite {
namespace detail {

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

}  // namespace detail

std::span<const Primitive* const> primitives() {
  static const std::vector<const Primitive*> all =
      detail::joined({detail::arithmetic_family(),    detail::functions_family(),
                      detail::logic_family(),         detail::reduction_family(),
                      detail::prod_others_family(),   detail::product_family(),
                      detail::view_family(),          detail::window_family(),
                      detail::assembly_family(),      detail::indexing_family(),
                      detail::check_family(),         detail::creation_family(),
                      detail::random_family(),        detail::sampling_family(),
                      detail::pooling_family(),       detail::pooling_sum_family(),
                      detail::unfolding_family(),     detail::resampling_family(),
                      detail::convolution_family(),   detail::fourier_family(),
                      detail::frame_family(),         detail::linear_system_family(),
                      detail::factorisation_family(), detail::catalogue_family(),
                      detail::cumulative_family(),    detail::cumulative_extrema_family(),
                      detail::linear_scan_family(),   detail::sorting_family(),
                      detail::searching_family(),     detail::scatter_family(),
                      detail::scatter_prod_family(),  detail::selection_family(),
                      detail::attention_family(),     detail::selective_scan_family()});
  return all;
}

std::span<const Primitive* const> composites() {
  static const std::vector<const Primitive*> all = detail::joined({detail::composite_family(),
                                                                   detail::row_gradient_family(),
                                                                   detail::composite_shape_family(),
                                                                   detail::composite_value_family(),
                                                                   detail::composite_padding_family(),
                                                                   detail::composite_random_family(),
                                                                   detail::composite_sampling_family(),
                                                                   detail::composite_pooling_family(),
                                                                   detail::composite_window_family(),
                                                                   detail::composite_fourier_family(),
                                                                   detail::composite_frequency_family(),
                                                                   detail::composite_spectrogram_family(),
                                                                   detail::composite_catalogue_family(),
                                                                   detail::composite_linalg_family(),
                                                                   detail::composite_samples_family(),
                                                                   detail::composite_order_family(),
                                                                   detail::composite_counts_family(),
                                                                   detail::composite_scatter_family(),
                                                                   detail::composite_places_family(),
                                                                   detail::masked_scatter_family(),
                                                                   detail::composite_normalization_family(),
                                                                   detail::composite_attention_family()});
  return all;
}

const Primitive* find_primitive(std::string_view name) {
  for (const Primitive* p : primitives())
    if (p->name == name) return p;
  return nullptr;
}

}  // namespace ferrite
