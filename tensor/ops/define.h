#pragma once
/// What the library's own operations have beside tensor/define.h: functors for packets, and the lists of their
/// families.
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/kernel/functors_activations.h"
#include "ferrite/tensor/kernel/functors_math.h"

namespace ferrite::detail {

namespace functors = FERRITE_LEVEL;

/// The place of a record that inherits from a functor in the functor's family; -1: it is none of this family.
template <class Op, class... F>
constexpr int place_in(functors::FunctorList<F...>) {
  int at = 0, found = -1;
  ((std::is_base_of_v<F, Op> ? found = at++ : at++), ...);
  return found;
}
template <class Op>
inline constexpr int kPlaces[5] = {place_in<Op>(functors::Arithmetic{}), place_in<Op>(functors::Functions{}),
                                   place_in<Op>(functors::Logic{}), place_in<Op>(functors::Math{}),
                                   place_in<Op>(functors::Activations{})};
template <class Op>
constexpr int family_of() {
  for (int f = 0; f < 5; ++f)
    if (kPlaces<Op>[f] >= 0) return f;
  return -1;
}

/// Operations with a functor: their kernels are those of the instruction set in use.
template <class Op>
requires(family_of<Op>() >= 0) struct KernelsOf<Op> {
  static constexpr const Blocks* own = nullptr;
  static constexpr TableRow row{static_cast<std::uint8_t>(family_of<Op>()),
                                static_cast<std::uint8_t>(kPlaces<Op>[family_of<Op>()])};
};

/// x Phi(x), the primitive behind `gelu`.
Tensor gelu_exact(const Tensor& x);

/// A family of operations, collected by the registry.
using Family = std::span<const Primitive* const>;
Family arithmetic_family();
Family functions_family();
Family logic_family();
Family reduction_family();
Family prod_others_family();
Family product_family();
Family view_family();
Family window_family();
Family assembly_family();
Family indexing_family();
Family check_family();
Family creation_family();
Family cumulative_family();
Family cumulative_extrema_family();
Family linear_scan_family();
Family sorting_family();
Family searching_family();
Family scatter_family();
Family scatter_prod_family();
Family masked_scatter_family();
Family selection_family();
Family random_family();
Family sampling_family();
Family fourier_family();
Family frame_family();
Family convolution_family();
Family linear_system_family();
Family factorisation_family();
Family attention_family();
Family selective_scan_family();
Family bits_family();
Family catalogue_family();
Family mixing_family();
Family rounding_family();
Family special_family();
Family trigonometry_family();
Family pooling_family();
Family pooling_sum_family();
Family unfolding_family();
Family resampling_family();
Family activation_family();
Family activation_gradient_family();
// Of composites.
Family composite_activation_family();
Family arrangement_family();
Family composite_catalogue_family();
Family composite_mixing_family();
Family composite_rounding_family();
Family composite_special_family();
Family composite_attention_family();
Family composite_family();
Family row_gradient_family();
Family count_family();
Family diagonal_family();
Family einsum_family();
Family norm_family();
Family vector_product_family();
Family composite_shape_family();
Family composite_value_family();
Family composite_padding_family();
Family composite_random_family();
Family composite_sampling_family();
Family composite_fourier_family();
Family composite_frequency_family();
Family composite_spectrogram_family();
Family composite_linalg_family();
Family composite_window_family();
Family composite_pooling_family();
Family composite_samples_family();
Family composite_order_family();
Family composite_counts_family();
Family composite_scatter_family();
Family composite_normalization_family();
Family composite_places_family();

}  // namespace ferrite::detail
