#pragma once
/// Helpers of recurrent layers: sizes from the options of a layer, checks of sizes and dtypes, steps as a scan.
#include <string>

#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent/recurrent.h"

namespace ferrite::nn::detail {

/// Returns the sizes of a layer with these options; options that its kind lacks keep their defaults.
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

/// Throws ValueError, whose text begins with the name, for sizes and probabilities that no layer can have.
void check_sizes(const std::string& name, const RecurrentSizes& sizes);

/// Throws DtypeError unless x has the dtype of the weights.
void check_dtype(const std::string& name, const Tensor& x, Dtype dtype, const char* what);

// ---- steps as a scan -----------------------------------------------------------------------------------

/// Returns a scan whose body is a step from x_t [B, D].
Scan scan_of(RecurrentStep step);

/// Runs all steps of a layer in one direction and returns the outputs, the last h, and the last c if there is one.
Tensors run_scan(const Scan& scan, const Tensor& x, const RecurrentState& before, const SequenceOptions& options);

/// The functions that Form::scan needs: those above, and the one that traces steps of streams.
struct ScanForm {
  decltype(nn::detail::scan_of)* scan_of;
  decltype(run_scan)* run;
  decltype(nn::detail::traced_step)* traced_step;
};

}  // namespace ferrite::nn::detail
