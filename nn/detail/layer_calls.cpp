/// Helpers of a layer's call: checks of lengths, windows within them, and what a chain restores after an error.
#include "ferrite/nn/detail/layer_calls.h"

#include <string>

#include "ferrite/nn/carry.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/system/per_thread.h"

namespace ferrite::nn::detail {
namespace {

/// Whether a chain runs on this thread.
FERRITE_PER_THREAD constinit ferrite::detail::PerThread<bool> inside_chain(false);
/// Identity of the lengths that the innermost call of this thread passes on.
FERRITE_PER_THREAD constinit ferrite::detail::PerThread<const void*> passed_on(nullptr);

const void* identity_of(const Tensor& lengths) { return lengths.defined() ? lengths.identity() : nullptr; }

/// Returns the beginning of errors about a layer's lengths; for the library's chains it allocates nothing.
Label label_of(const Layer& chain) {
  const std::string kind = chain.kind();
  if (kind == "network") return "network: a length of";
  if (kind == "sequential") return "sequential: a length of";
  if (kind == "residual") return "residual: a length of";
  return Label::of(kind + ": a length of");
}

}  // namespace

LengthsCall::LengthsCall(const Layer& layer, const Tensor& x, Context& context) : before_(passed_on()) {
  const Tensor& lengths = context.lengths;
  // x holds sequences or tokens; anything else has no steps.
  if (lengths.defined() && !has_checked(lengths) && (x.rank() == 3 || (x.rank() == 2 && is_integer(x.dtype())))) {
    // x is [T, B, D] in a chain of layers with batch_first = false.
    const bool time_first =
        x.rank() == 3 && lengths.shape() != Shape{x.shape()[0]} && lengths.shape() == Shape{x.shape()[1]};
    const int rows = time_first ? 1 : 0;
    context.lengths = checked_lengths(label_of(layer), lengths, x.shape()[rows], x.shape()[1 - rows], 0);
  }
  passes(context.lengths);
}

LengthsCall::~LengthsCall() { passed_on() = before_; }

void LengthsCall::passes(const Tensor& lengths) { passed_on() = identity_of(lengths); }

bool LengthsCall::has_checked(const Tensor& lengths) { return identity_of(lengths) == passed_on(); }

ChainCall::ChainCall(const Layer& chain, const Tensor& x, Context& context)
    : lengths_(chain, x, context), inside_before_(inside_chain()) {
  if (!inside_chain() && !ferrite::detail::frame().tracing) {
    const auto keep = [&](const Variable& v) {
      if (v.drawn()) kept_.emplace_back(v, v.peek());
    };
    for (const auto& b : chain.named_buffers()) keep(b.variable);
    for (const auto& s : chain.named_states()) keep(s.variable);
    if (context.carry)
      for (const State& s : context.carry->variables()) keep(s);
  }
  inside_chain() = true;
}

ChainCall::~ChainCall() { inside_chain() = inside_before_; }

void ChainCall::undo() const {
  if (kept_.empty()) return;
  const NewFrame frame;
  for (const auto& [variable, value] : kept_)
    if (variable.peek().identity() != value.identity()) variable.assign(value);
}

namespace {

/// Returns x [B, T, C] with `outside` in place of the steps beyond each row's length.
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
  if (w->after == 0) {  // no valid output sees the padding
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
