#include <string>

#include "ferrite/nn/detail/lengths.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {

void check_lengths(std::string_view where, const Tensor& lengths, std::int64_t B, std::int64_t T) {
  const auto refuse = [&](const std::string& what) { throw ShapeError(std::string(where) + ": " + what); };
  if (lengths.dtype() != Dtype::i64 || lengths.shape() != Shape{B})
    refuse("expects lengths i64[" + std::to_string(B) + "], got " + lengths.spec().str());
  if (lengths.is_abstract()) return;
  const NewFrame frame;
  const Tensor dense = contiguous(lengths);
  for (const std::int64_t n : dense.values<std::int64_t>())
    if (n < 1 || n > T) refuse("a length of " + std::to_string(n) + " lies outside 1.." + std::to_string(T));
}

}  // namespace ferrite::nn::detail
