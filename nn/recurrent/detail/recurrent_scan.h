#pragma once
/// A recurrent layer's steps as a scan.
#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent/recurrent.h"

namespace ferrite::nn::detail {

/// A step from x_t [B, D] as the body of a scan.
Scan scan_of(RecurrentStep step);

/// All steps of a layer in one direction: outputs, the last h, the last c if there is one.
Tensors run_scan(const Scan& scan, const Tensor& x, const RecurrentState& before, const SequenceOptions& options);

/// What Form::scan names: these functions, and the steps of streams.
struct ScanForm {
  decltype(nn::detail::scan_of)* scan_of;
  decltype(run_scan)* run;
  decltype(nn::detail::traced_step)* traced_step;
};

}  // namespace ferrite::nn::detail
