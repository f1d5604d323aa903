#pragma once
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
  return s;
}

/// The way back.
template <class Options>
Options options_of(const RecurrentSizes& s) {
  Options o;
  o.layers = s.layers;
  o.bidirectional = s.bidirectional;
  o.bias = s.bias;
  o.dropout = s.dropout;
  o.batch_first = s.batch_first;
  o.form = s.form;
  o.recompute = s.recompute;
  if constexpr (requires { o.proj_size; }) o.proj_size = s.proj_size;
  return o;
}

}  // namespace ferrite::nn::detail
