/// Checks of the lengths of a batch's sequences, as part of the program.
#include "ferrite/nn/detail/lengths.h"

#include <string>

#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {

Tensor checked_lengths(Label who, const Tensor& lengths, std::int64_t B, std::int64_t T) {
  if (lengths.dtype() != Dtype::i64 || lengths.shape() != Shape{B})
    throw ShapeError(std::string(who.text().substr(0, who.text().find(':'))) + ": expects lengths i64[" +
                     std::to_string(B) + "], got " + lengths.spec().str());
  return checked(lengths, 1, T, who);
}

}  // namespace ferrite::nn::detail
