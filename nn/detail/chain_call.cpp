/// Calls of chains: lengths that are checked once, and what is put back when a layer throws.
#include "ferrite/nn/detail/chain_call.h"

#include "ferrite/nn/carry.h"
#include "ferrite/nn/detail/lengths.h"

namespace ferrite::nn::detail {
namespace {

/// Whether a chain runs on this thread, and the lengths that the innermost one passes on.
struct Running {
  bool inside = false;
  const void* lengths = nullptr;
};
constinit thread_local Running running;

/// Who checks lengths; chains of the library need no memory to say so.
Label label_of(const Layer& chain) {
  const std::string kind = chain.kind();
  if (kind == "network") return "network: a length of";
  if (kind == "sequential") return "sequential: a length of";
  if (kind == "residual") return "residual: a length of";
  return Label::of(kind + ": a length of");
}

}  // namespace

ChainCall::ChainCall(const Layer& chain, const Tensor& x, Context& context)
    : lengths_before_(running.lengths), inside_before_(running.inside) {
  if (context.lengths.defined() && context.lengths.identity() != running.lengths) check(chain, x, context);
  if (!running.inside && !ferrite::detail::frame().tracing) {
    const auto keep = [&](const Variable& v) {
      if (v.drawn()) kept_.emplace_back(v, v.peek());
    };
    for (const auto& b : chain.named_buffers()) keep(b.variable);
    for (const auto& s : chain.named_states()) keep(s.variable);
    if (context.carry)
      for (const State& s : context.carry->variables()) keep(s);
  }
  running = {true, context.lengths.defined() ? context.lengths.identity() : nullptr};
}

ChainCall::~ChainCall() { running = {inside_before_, lengths_before_}; }

void ChainCall::check(const Layer& chain, const Tensor& x, Context& context) {
  if (x.rank() != 3 && !(x.rank() == 2 && is_integer(x.dtype()))) return;  // no sequences
  const Tensor& lengths = context.lengths;
  // A chain of layers that take the time first has [T, B, D].
  const bool time_first =
      x.rank() == 3 && lengths.shape() != Shape{x.shape()[0]} && lengths.shape() == Shape{x.shape()[1]};
  const int rows = time_first ? 1 : 0;
  context.lengths = checked_lengths(label_of(chain), lengths, x.shape()[rows], x.shape()[1 - rows], 0);
}

void ChainCall::passes(const Tensor& lengths) { running.lengths = lengths.defined() ? lengths.identity() : nullptr; }

void ChainCall::undo() const {
  if (kept_.empty()) return;
  const NewFrame frame;
  for (const auto& [variable, value] : kept_)
    if (variable.peek().identity() != value.identity()) variable.assign(value);
}

}  // namespace ferrite::nn::detail
