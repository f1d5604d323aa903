/// Compositions of checkpointed scans and their gradients as scans over segments that contain scans over steps.
#include <algorithm>

#include "ferrite/compile/scan.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::CheckpointedScanAttrs;
using ferrite::detail::ScanBack;
using ferrite::detail::ScanBody;
using ferrite::detail::ScanSignature;

/// The division of the steps into whole segments and, run last, a shorter one with the remaining steps.
struct Cut {
  explicit Cut(const CheckpointedScanAttrs& a)
      : every(a.every), whole(a.steps / every), rest(a.steps % every), reverse(a.reverse) {}
  std::int64_t every, whole, rest;
  bool reverse;

  /// Returns the whole segments of a stack of all steps as [whole, every, ...], in the order of the stack.
  Tensor wholes_of(const Tensor& stack) const {
    const std::int64_t begin = reverse ? rest : 0;
    Shape shape = stack.shape();
    shape[0] = every;
    shape.insert(0, whole);
    return reshape(slice(stack, 0, begin, begin + whole * every), shape);
  }
  Tensor rest_of(const Tensor& stack) const {
    const std::int64_t begin = reverse ? 0 : whole * every;
    return slice(stack, 0, begin, begin + rest);
  }
  Tensor join(Tensor wholes, const Tensor& last) const {
    if (wholes.defined()) {
      Shape shape = wholes.shape();
      shape.erase(0);
      shape[0] = whole * every;
      wholes = reshape(wholes, shape);
    }
    if (!wholes.defined() || !last.defined()) return wholes.defined() ? wholes : last;
    return reverse ? concat({last, wholes}, 0) : concat({wholes, last}, 0);
  }
  /// Converts a stack with one entry for each whole segment from stack order to running order, or back.
  Tensor in_order(const Tensor& wholes) const { return reverse ? flip(wholes, {0}) : wholes; }
};

/// The inputs and outputs of a segment: carries, stacks of its steps, and one value for each segment.
struct Part {
  Tensors carry, stacks, singles;
};
using SegmentBody = std::function<Part(const Part& in, std::int64_t steps)>;

Tensors joined(Tensors a, const Tensors& b) {
  for (const Tensor& t : b) a.push_back(t);
  return a;
}
Tensors part_of(const Tensors& list, std::size_t begin, std::size_t count) {
  const auto first = list.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

/// Runs all segments; its input and result have stacks of all steps and of all segments.
class Segments {
 public:
  Segments(const Cut& cut, const SegmentBody& body) : cut_(cut), body_(body) {}

  Part run(const Part& in, bool back) {
    Tensors carry = in.carry;
    if (back) carry = last(carry, in);
    carry = wholes(carry, in, back);
    if (!back) carry = last(carry, in);
    Part out{carry, {}, {}};
    const Part &a = wholes_, &b = last_;
    for (std::size_t k = 0; k < std::max(a.stacks.size(), b.stacks.size()); ++k)
      out.stacks.push_back(cut_.join(cut_.whole ? a.stacks[k] : Tensor(), cut_.rest ? b.stacks[k] : Tensor()));
    for (std::size_t k = 0; k < std::max(a.singles.size(), b.singles.size()); ++k) {
      Tensors parts;
      if (cut_.whole) parts.push_back(cut_.in_order(a.singles[k]));
      if (cut_.rest) parts.push_back(unsqueeze(b.singles[k], 0));
      out.singles.push_back(concat(parts, 0));
    }
    return out;
  }

 private:
  Tensors wholes(const Tensors& carry, const Part& in, bool back) {
    if (cut_.whole == 0) return carry;
    Tensors xs;
    for (const Tensor& s : in.stacks) xs.push_back(cut_.wholes_of(s));
    for (const Tensor& s : in.singles) xs.push_back(cut_.in_order(slice(s, 0, 0, cut_.whole)));
    std::size_t stacks = 0;
    const auto step = [&](const Tensors& now, const Tensors& x) -> ScanStep {
      const std::size_t n = in.stacks.size();
      Part out = body_({now, part_of(x, 0, n), part_of(x, n, x.size() - n)}, cut_.every);
      stacks = out.stacks.size();
      return {out.carry, joined(out.stacks, out.singles)};
    };
    const ScanResult r = scan(step, carry, xs, {.reverse = cut_.reverse != back, .steps = cut_.whole});
    wholes_ = {{}, part_of(r.y, 0, stacks), part_of(r.y, stacks, r.y.size() - stacks)};
    return r.carry;
  }

  Tensors last(const Tensors& carry, const Part& in) {
    if (cut_.rest == 0) return carry;
    Part x{carry, {}, {}};
    for (const Tensor& s : in.stacks) x.stacks.push_back(cut_.rest_of(s));
    for (const Tensor& s : in.singles) x.singles.push_back(select(s, 0, cut_.whole));
    last_ = body_(x, cut_.rest);
    return last_.carry;
  }

  const Cut& cut_;
  const SegmentBody& body_;
  Part wholes_, last_;
};

Tensors apply(std::shared_ptr<const ScanBody> body, const Tensors& operands, std::int64_t steps, bool reverse) {
  return ferrite::detail::scan_primitive().apply(OperandList(operands),
                                                 ScanBody::attrs_of(std::move(body), steps, reverse));
}

Tensors forward(const Composed& c, const Tensors& in) {
  const auto body = std::static_pointer_cast<const ScanBody>(c.attrs.body);
  const ScanSignature& s = body->signature();
  const Cut cut(c.attrs.as<CheckpointedScanAttrs>());
  const Tensors captures = part_of(in, s.carries + s.xs, body->captures());
  const SegmentBody segment = [&](const Part& x, std::int64_t steps) -> Part {
    const Tensors out = apply(body, joined(joined(x.carry, x.stacks), captures), steps, cut.reverse);
    return {part_of(out, 0, s.carries), part_of(out, s.carries, body->ys()), x.carry};
  };
  const Part all = Segments(cut, segment).run({part_of(in, 0, s.carries), part_of(in, s.carries, s.xs), {}}, false);
  return joined(joined(all.carry, all.stacks), all.singles);
}

/// Composes the gradient of a checkpointed scan. Its operands are the saved carries, xs, captures, cotangents of the
/// float carries and of the ys that have one, and the first carries, which it does not read.
Tensors backward(const Composed& c, const Tensors& in) {
  const ScanBody& body = ScanBody::of(c.attrs);
  const ScanSignature& s = body.signature();
  const std::shared_ptr<const ScanBody> saving = body.saving();
  const ScanBack::Pass& pass = saving->back()->pass(ferrite::detail::checkpointed_request(c.attrs, body));
  const ScanSignature& w = pass.body->signature();
  const std::size_t cotangents = body.graph().inputs.size();
  const Tensors captures = part_of(in, s.carries + s.xs, body.captures());
  const Cut cut(c.attrs.as<CheckpointedScanAttrs>());

  const SegmentBody segment = [&](const Part& x, std::int64_t steps) -> Part {
    const Tensors xs = part_of(x.stacks, 0, s.xs), dys = part_of(x.stacks, s.xs, x.stacks.size() - s.xs);
    const Tensors again = apply(saving, joined(joined(x.singles, xs), captures), steps, cut.reverse);
    Tensors operands = part_of(x.carry, 0, w.carries);
    for (const std::size_t k : pass.saved) operands.push_back(again[body.graph().outputs.size() + k]);
    for (const std::size_t k : pass.xs) operands.push_back(xs[k]);
    for (const std::size_t dy : pass.arrived) operands.push_back(dys[dy]);
    for (const std::size_t k : pass.captures) operands.push_back(captures[k]);
    const Tensors out = apply(pass.body, operands, steps, !cut.reverse);
    Tensors carry = part_of(out, 0, w.carries);
    for (std::size_t k = 0; k < w.sums; ++k) carry.push_back(x.carry[w.carries + k] + out[w.carries + k]);
    return {carry, part_of(out, w.carries + w.sums, out.size() - w.carries - w.sums), {}};
  };
  Part first{part_of(in, cotangents, w.carries), part_of(in, s.carries, s.xs), part_of(in, 0, s.carries)};
  for (std::size_t k = 0; k < w.sums; ++k)
    first.carry.push_back(zeros(c.out[w.carries + k].shape, c.out[w.carries + k].dtype));
  first.stacks =
      joined(first.stacks, part_of(in, cotangents + w.carries, in.size() - cotangents - w.carries - s.carries));
  const Part all = Segments(cut, segment).run(first, true);
  return joined(all.carry, all.stacks);
}

}  // namespace

Compositions scan_compositions() {
  static constexpr NamedComposition list[] = {{"scan_checkpointed", forward}, {"scan_checkpointed_grad", backward}};
  return list;
}

}  // namespace ferrite::exchange::detail
