#pragma once
/// Conversions between the options of one kind of recurrent layer and those of all.
#include "ferrite/nn/recurrent/recurrent.h"

namespace ferrite::nn::detail {

/// What all kinds of options have in common, with the two sizes.
template <class Options>
RecurrentSizes sizes_of(std::int64_t input_size, std::int64_t hidden_size, const Options& o) {
  RecurrentSizes s{.input_size = input_size,
                   .hidden_size = hidden_size,
                   .layers = o.layers,
                   .bidirectional = o.bidirectional,
                   .bias = o.bias,
                   .dropout = o.dropout,
                   .batch_first = o.batch_first,
                   .proj_size = 0,
                   .form = o.form,
                   .recompute = o.recompute};
  if constexpr (requires { o.proj_size; }) s.proj_size = o.proj_size;
  s.zoneout = o.zoneout;
  if constexpr (requires { o.zoneout_cell; }) s.zoneout_cell = o.zoneout_cell;
  return s;
}

}  // namespace ferrite::nn::detail
