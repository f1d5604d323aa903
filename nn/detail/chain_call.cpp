/// Calls of layers: lengths that are checked once, and what a chain puts back when a layer throws.
#include "ferrite/nn/detail/chain_call.h"

#include "ferrite/nn/carry.h"
#include "ferrite/nn/detail/lengths.h"

namespace ferrite::nn::detail {
namespace {

/// Whether a chain runs on this thread, and the lengths that the innermost call passes on.
constinit thread_local bool inside_chain = false;
constinit thread_local const void* passed_on = nullptr;

const void* identity_of(const Tensor& lengths) { return lengths.defined() ? lengths.identity() : nullptr; }

/// Who checks lengths; chains of the library need no memory to say so.
Label label_of(const Layer& chain) {
  const std::string kind = chain.kind();
  if (kind == "network") return "network: a length of";
  if (kind == "sequential") return "sequential: a length of";
  if (kind == "residual") return "residual: a length of";
  return Label::of(kind + ": a length of");
}

}  // namespace

LengthsCall::LengthsCall(const Layer& layer, const Tensor& x, Context& context) : before_(passed_on) {
  const Tensor& lengths = context.lengths;
  // Sequences or tokens; anything else has no steps.
  if (lengths.defined() && !has_checked(lengths) && (x.rank() == 3 || (x.rank() == 2 && is_integer(x.dtype())))) {
    // A chain of layers that take the time first has [T, B, D].
    const bool time_first =
        x.rank() == 3 && lengths.shape() != Shape{x.shape()[0]} && lengths.shape() == Shape{x.shape()[1]};
    const int rows = time_first ? 1 : 0;
    context.lengths = checked_lengths(label_of(layer), lengths, x.shape()[rows], x.shape()[1 - rows], 0);
  }
  passes(context.lengths);
}

LengthsCall::~LengthsCall() { passed_on = before_; }

void LengthsCall::passes(const Tensor& lengths) { passed_on = identity_of(lengths); }

bool LengthsCall::has_checked(const Tensor& lengths) { return identity_of(lengths) == passed_on; }

ChainCall::ChainCall(const Layer& chain, const Tensor& x, Context& context)
    : lengths_(chain, x, context), inside_before_(inside_chain) {
  if (!inside_chain && !ferrite::detail::frame().tracing) {
    const auto keep = [&](const Variable& v) {
      if (v.drawn()) kept_.emplace_back(v, v.peek());
    };
    for (const auto& b : chain.named_buffers()) keep(b.variable);
    for (const auto& s : chain.named_states()) keep(s.variable);
    if (context.carry)
      for (const State& s : context.carry->variables()) keep(s);
  }
  inside_chain = true;
}

ChainCall::~ChainCall() { inside_chain = inside_before_; }

void ChainCall::undo() const {
  if (kept_.empty()) return;
  const NewFrame frame;
  for (const auto& [variable, value] : kept_)
    if (variable.peek().identity() != value.identity()) variable.assign(value);
}

}  // namespace ferrite::nn::detail
