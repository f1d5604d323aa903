#pragma once
/// Scans in plain loops over doubles, and the samples that tests try.
#include "ferrite/compile/scan_body.h"
#include "ferrite/tensor/oracle.h"

namespace ferrite::detail {

void scan_oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs);
void checkpointed_scan_oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs);
void checkpointed_scan_grad_oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs);

std::span<const Sample> scan_samples();
std::span<const Sample> checkpointed_scan_samples();
std::span<const Sample> checkpointed_scan_grad_samples();

}  // namespace ferrite::detail
