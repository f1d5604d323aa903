/// What a function reads from outside while no tape listens to it.
#include "ferrite/autograd/detail/reads.h"

#include <algorithm>

namespace ferrite::detail {

OutsideReads::OutsideReads(std::string who, Parameters parameters) : who_(std::move(who)), parameters_(parameters) {
  for (const Recorder* r : frame().recorders)
    if (r->differentiates()) tapes_.push_back(r);
}

void OutsideReads::record(const Primitive& op, const Attrs&, Inputs in, std::span<Tensor>) {
  for (const Tensor& x : in)
    for (const Recorder* tape : tapes_)
      if (tape->holds(x))
        throw TapeError(who_ + ": the function refers to a tensor that is recorded on a tape, and " +
                        std::string(op.name) + " reads it, but no gradient would reach it: " + x.spec().str() +
                        "; make it an input, or detach it");
}

void OutsideReads::read(const Variable& variable, Tensor& value) {
  if (variable.kind() == VariableKind::parameter && parameters_ == Parameters::refused)
    throw TapeError(who_ + ": the function reads a parameter, but no gradient would reach it: '" + variable.name() +
                    "' " + variable.spec().str() + "; make its value an input");
  const bool known = std::ranges::any_of(reads_, [&](const Read& r) { return r.variable == variable; });
  if (!known) reads_.push_back({variable, value.unmarked()});
}

void OutsideReads::flag(const std::shared_ptr<const std::atomic<bool>>& flag, bool value) {
  switches_.push_back({flag, value});
}

}  // namespace ferrite::detail
