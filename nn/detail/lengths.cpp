/// Checks of the lengths of a batch's sequences, as part of the program.
#include "ferrite/nn/detail/lengths.h"

#include <string>

#include "ferrite/nn/detail/chain_call.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {
namespace {

/// x [B, T, C] with `outside` in place of the steps beyond each row's length.
Tensor kept_within(const Tensor& x, const Tensor& lengths, double outside) {
  return where(unsqueeze(lt(arange(x.shape()[1]), unsqueeze(lengths, 1)), 2), x, outside);
}

}  // namespace

Tensor checked_lengths(Label who, const Tensor& lengths, std::int64_t B, std::int64_t T, std::int64_t least) {
  if (lengths.dtype() != Dtype::i64 || lengths.shape() != Shape{B})
    throw ShapeError(std::string(who.text().substr(0, who.text().find(':'))) + ": expects lengths i64[" +
                     std::to_string(B) + "], got " + lengths.spec().str());
  return checked(lengths, least, T, who);
}

Tensor within_lengths(const Layer& layer, const std::optional<StepWindow>& w, const Tensor& x, const Context& context,
                      bool padding, double outside) {
  if (!context.lengths.defined() && !context.reset_mask.defined()) return x;
  const auto refuse = [&](const std::string& what) { throw ValueError(layer.kind() + ": " + what); };
  if (!w) refuse("takes no lengths and reset masks: its windows are not over the steps of sequences [B, T, C]");
  if (context.reset_mask.defined() && (w->reach() > 0 || w->stride > 1))
    refuse("takes no reset mask: its windows reach over resets; causal_conv1d looks back to the last one");
  if (!context.lengths.defined() || x.rank() != 3) return x;
  if (w->after == 0) {  // nothing reads them
    Context own = context;
    const LengthsCall checks(layer, x, own);
    return x;
  }
  if (!padding)
    refuse("takes no lengths with this padding, which would be that of the longest row; pad with zeros that count");
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  const Tensor lengths = checked_lengths(Label::of(layer.kind() + ": a length of"), context.lengths, B, T);
  return kept_within(x, lengths, outside);
}

Tensor with_zeros_behind(const Windowed& layer, const Tensor& y, const Context& context) {
  if (!context.lengths.defined() || y.rank() != 3 || layer.window()->after == 0) return y;
  return kept_within(y, layer.lengths_after(context.lengths), 0);
}

}  // namespace ferrite::nn::detail
