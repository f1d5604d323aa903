#pragma once
/// How layers are made and called from Python.
#include "casters.h"
#include "ferrite/nn/module.h"

namespace ferrite::python {

/// Returns the source of a layer's first weights: the seed given or, without one, the next of the process.
nn::Init init_of(std::optional<std::uint64_t> seed, Dtype dtype);
/// Makes the seeds of layers that are made without one begin again.
void set_seed(std::uint64_t seed);

/// Constructs a layer from its options, with or without first weights.
template <class L, class O>
void construct(L* self, const O& options, const nn::Init& init) {
  if constexpr (std::is_constructible_v<L, const O&, const nn::Init&>)
    new (self) L(options, init);
  else
    new (self) L(options);
}

/// Returns a layer that C++ may own for a layer that Python owns. Both have the same variables.
std::unique_ptr<nn::Layer> owned(nb::handle layer);

}  // namespace ferrite::python
