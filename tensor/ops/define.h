#pragma once
/// Additions to tensor/define.h for the library's own operations: functors for packets, refusals, and the lists of
/// their families.
#include <string>
#include <string_view>

#include "ferrite/tensor/define.h"
#include "ferrite/tensor/kernel/functors.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

namespace functors = FERRITE_LEVEL;

/// Returns the position, in the functor's family, of a record that inherits from a functor; -1 if it is not in this
/// family.
template <class Op, class... F>
constexpr int place_in(functors::FunctorList<F...>) {
  int at = 0, found = -1;
  ((std::is_base_of_v<F, Op> ? found = at++ : at++), ...);
  return found;
}
/// The first family that contains a record's functor, and its position there.
struct FunctorPlace {
  bool found = false;
  std::size_t family = 0, place = 0;
};
template <class Op>
constexpr FunctorPlace functor_place() {
  FunctorPlace found;
  [&]<class... List>(std::tuple<List...>*) {
    std::size_t family = 0;
    const auto look = [&](int place) {
      if (!found.found && place >= 0) found = {true, family, static_cast<std::size_t>(place)};
      ++family;
    };
    (look(place_in<Op>(List{})), ...);
  }(static_cast<functors::Families*>(nullptr));
  return found;
}

// Defined by the sources of levels (tensor/kernel/pointwise_kernel.cpp).
#define FERRITE_DECLARE_BLOCKS(level)              \
  namespace level {                                \
  template <std::size_t family, std::size_t place> \
  struct BlocksAt {                                \
    static const Blocks value;                     \
  };                                               \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE_BLOCKS)
#undef FERRITE_DECLARE_BLOCKS

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif
#define FERRITE_BLOCKS_AT(level) &level::BlocksAt<family, place>::value,
template <std::size_t family, std::size_t place>
inline constexpr const Blocks* kBlocksOfLevels[] = {FERRITE_EACH_LEVEL(FERRITE_BLOCKS_AT)};
#undef FERRITE_BLOCKS_AT
#ifdef __clang__
#pragma clang diagnostic pop
#endif
template <std::size_t family, std::size_t place>
inline constinit const TableInUse<Blocks> blocks_in_use(kBlocksOfLevels<family, place>);

/// The kernels of an operation whose function of elements is in a list of functors: those of the instruction set in
/// use. `own` is null.
template <class Op>
requires(functor_place<Op>().found) struct KernelsOf<Op> {
  static constexpr const Blocks* own = nullptr;
  static constexpr const TableInUse<Blocks>* in_use =
      &blocks_in_use<functor_place<Op>().family, functor_place<Op>().place>;
};

/// Returns x Phi(x): the primitive that implements `gelu`.
Tensor gelu_exact(const Tensor& x);

/// Returns whether elements are not 0, as bool.
inline Tensor truth(const Tensor& x) { return x.dtype() == Dtype::boolean ? x : ne(x, 0); }

/// Calls f with a number of the float type t.
template <class F>
void visit_float(Dtype t, F&& f) {
  t == Dtype::f32 ? f(float{}) : f(double{});
}

/// Throws DtypeError unless x is f32 or f64.
inline void check_float(const Tensor& x, std::string_view where) {
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast it to a float first");
}

/// Throws ValueError for an epsilon that is negative or NaN.
inline void check_epsilon(std::string_view where, double epsilon) {
  if (!(epsilon >= 0))
    throw ValueError(std::string(where) + ": epsilon must not be negative, got " + Scalar(epsilon).str());
}

/// Throws TraceError for a traced tensor, whose values are not known.
inline void check_values_known(std::string_view where, const Tensor& x, std::string_view what_to_do) {
  if (x.is_abstract())
    throw TraceError(std::string(where) +
                     ": the shape of the result depends on values that are not known while tracing: " + x.spec().str() +
                     "; " + std::string(what_to_do));
}

/// The operations of one family, collected by the registry.
using Family = std::span<const Primitive* const>;
Family arithmetic_family();
Family functions_family();
Family logic_family();
Family reduction_family();
Family product_family();
Family view_family();
Family assembly_family();
Family indexing_family();
Family check_family();
Family creation_family();
Family cumulative_family();
Family linear_scan_family();
Family sorting_family();
Family scatter_family();
Family masked_scatter_family();
Family selection_family();
Family random_family();
Family draw_family();
Family choice_family();
Family fourier_family();
Family frame_family();
Family convolution_family();
Family linalg_family();
Family attention_family();
Family selective_scan_family();
Family bits_family();
Family math_family();
Family pooling_family();
Family unfolding_family();
Family activation_family();
Family activation_gradient_family();
// Families of composites.
Family composite_activation_family();
Family arrangement_family();
Family composite_math_family();
Family composite_attention_family();
Family composite_family();
Family count_family();
Family composite_product_family();
Family norm_family();
Family composite_shape_family();
Family composite_value_family();
Family composite_padding_family();
Family composite_random_family();
Family composite_choice_family();
Family composite_fourier_family();
Family composite_spectrogram_family();
Family composite_linalg_family();
Family composite_window_family();
Family composite_pooling_family();
Family composite_samples_family();
Family composite_order_family();
Family composite_scatter_family();
Family composite_normalization_family();

}  // namespace ferrite::detail
