/// Checks and compositions of losses over alignments.
#include "ferrite/nn/losses/detail/alignments.h"

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {
namespace {

void check_lengths(std::string_view where, std::string_view what, const Tensor& lengths, std::int64_t B) {
  if (lengths.dtype() != Dtype::i64)
    throw_dtype(where, std::string(what) + " must be i64, got " + lengths.spec().str());
  if (lengths.shape() != Shape{B})
    throw_shape(where, std::string(what) + " must be " + Shape{B}.str() + ", got " + lengths.shape().str());
}

[[noreturn]] void throw_length(std::string_view where, std::string_view what, std::int64_t value, std::int64_t low,
                               std::int64_t high) {
  throw_shape(where, std::string(what) + " " + std::to_string(value) + " lies outside " + std::to_string(low) + ".." +
                         std::to_string(high));
}

}  // namespace

void check_alignment(std::string_view where, const Tensor& targets, const Tensor& input_lengths,
                     const Tensor& target_lengths, const AlignmentShape& shape) {
  if (targets.dtype() != Dtype::i64) throw_dtype(where, "targets must be i64, got " + targets.spec().str());
  if (targets.rank() != 2 || targets.shape()[0] != shape.B || targets.shape()[1] != shape.S)
    throw_shape(where, "targets must be " + Shape{shape.B, shape.S}.str() + ", got " + targets.shape().str());
  check_lengths(where, "input_lengths", input_lengths, shape.B);
  check_lengths(where, "target_lengths", target_lengths, shape.B);
}

AlignmentRow alignment_row(std::string_view where, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths, std::int64_t b, const AlignmentShape& shape,
                           std::int64_t blank, std::int64_t least) {
  const AlignmentRow row{targets.data<std::int64_t>() + b * shape.S, input_lengths.data<std::int64_t>()[b],
                         target_lengths.data<std::int64_t>()[b]};
  if (row.T < least || row.T > shape.T) throw_length(where, "input length", row.T, least, shape.T);
  if (row.S < 0 || row.S > shape.S) throw_length(where, "target length", row.S, 0, shape.S);
  for (std::int64_t s = 0; s < row.S; ++s) {
    const std::int64_t y = row.targets[s];
    if (y < 0 || y >= shape.C || y == blank)
      throw ValueError(std::string(where) + ": target " + std::to_string(y) +
                       (y == blank ? " is the blank" : " lies outside 0.." + std::to_string(shape.C - 1)));
  }
  return row;
}

Tensor lengths_or(std::string_view where, std::string_view what, const Tensor& lengths, std::int64_t B,
                  std::int64_t all) {
  if (!lengths.defined()) return full({B}, all, Dtype::i64);
  const Tensor all_of = lengths.dtype() == Dtype::i32 ? cast(lengths, Dtype::i64) : lengths;
  check_lengths(where, what, all_of, B);
  return all_of;
}

Tensor as_targets(std::string_view where, const Tensor& targets) {
  if (!is_integer(targets.dtype())) throw_dtype(where, "targets must be i64 or i32, got " + targets.spec().str());
  if (targets.rank() != 2)
    throw_shape(where, "targets must be [B, S], got " + targets.shape().str() + "; pad sequences to one length");
  return cast(targets, Dtype::i64);
}

Tensor of_rows(const Counted& rows, const Tensor& lengths, std::int64_t instead) {
  return rows.valid.defined() ? where(rows.valid, lengths, instead) : lengths;
}

Tensor reference_gradient(const Tensor& cotangent, const Tensor& scores, Tensor (*loss)(Inputs, const Attrs&),
                          Inputs in, const Attrs& attrs) {
  Tape tape;
  const Tensor x = tape.watch(scores);
  const Tensor all[] = {x, in[2], in[3], in[4]};
  const Tensor losses = loss(OperandList(all), attrs);
  const GradOf of{losses, cotangent};
  return lenient_grad(tape, of, {&x, 1})[0];
}

Tensor with_impossible(const Tensor& losses, bool zero_infinity) {
  const double instead = zero_infinity ? 0.0 : std::numeric_limits<double>::infinity();
  return where(gt(losses, -0.5 * kNearlyImpossible), instead, losses);
}

}  // namespace ferrite::nn::detail
