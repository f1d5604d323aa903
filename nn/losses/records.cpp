/// The lists of the operations and composites that losses are made of.
#include "ferrite/nn/losses/detail/losses.h"

namespace ferrite::nn::detail {

std::span<const Primitive* const> loss_operations() {
  static const auto all = joined({ctc_records(), rnnt_records()});
  return all;
}

std::span<const Primitive* const> loss_composites() {
  static const auto all = joined({reduction_records(), regression_records(), class_records(), binary_records(),
                                  margin_records(), region_records(), ranking_records(), audio_records()});
  return all;
}

}  // namespace ferrite::nn::detail
