/// The steps of recurrent layers in operations: their definition, and what the sequences of recurrent.cpp are held to.
#include "ferrite/tensor/ops.h"

namespace ferrite {

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = matmul(x, weight);
  return bias.defined() ? y + bias : y;
}

Tensor gru_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh) {
  const std::int64_t H = h.shape()[1];
  const Tensors from_x = split(i, H, 1);  // r, z, n
  const Tensors from_h = split(affine(h, w_hh, b_hh), H, 1);
  const Tensor r = sigmoid(from_x[0] + from_h[0]);
  const Tensor z = sigmoid(from_x[1] + from_h[1]);
  const Tensor n = tanh(from_x[2] + r * from_h[2]);
  return n + z * (h - n);  // = (1 - z) * n + z * h
}

Tensor gru_step_reset_before(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh) {
  const std::int64_t H = h.shape()[1];
  const auto part = [&](const Tensor& t, std::int64_t from, std::int64_t to) {
    return t.defined() ? slice(t, -1, from * H, to * H) : t;
  };
  const Tensors from_x = split(i, H, 1);  // r, z, n
  const Tensors from_h = split(affine(h, part(w_hh, 0, 2), part(b_hh, 0, 2)), H, 1);
  const Tensor r = sigmoid(from_x[0] + from_h[0]);
  const Tensor z = sigmoid(from_x[1] + from_h[1]);
  const Tensor n = tanh(from_x[2] + affine(r * h, part(w_hh, 2, 3), part(b_hh, 2, 3)));
  return n + z * (h - n);
}

RecurrentState lstm_step(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& b_hh,
                         const Tensor& w_hr) {
  const Tensor sums = i + affine(before.h, w_hh, b_hh);
  const Tensors gates = split(sums, before.c.shape()[1], 1);  // i, f, g, o
  const Tensor c = sigmoid(gates[1]) * before.c + sigmoid(gates[0]) * tanh(gates[2]);
  const Tensor h = sigmoid(gates[3]) * tanh(c);
  return {w_hr.defined() ? matmul(h, w_hr) : h, c};
}

Tensor rnn_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh, bool with_relu) {
  const Tensor x = i + affine(h, w_hh, b_hh);
  return with_relu ? relu(x) : tanh(x);
}

namespace {

/// The mask of every step, each [B, 1]; empty where there is none.
struct StepMasks {
  StepMasks(const SequenceOptions& o, std::int64_t steps) {
    Tensor inside;  // [T, B, 1]
    if (o.lengths.defined()) inside = lt(reshape(arange(steps), {steps, 1, 1}), reshape(o.lengths, {1, -1, 1}));
    if (o.lengths.defined()) valid = unbind(inside, 0);
    if (!o.resets.defined()) return;
    const Tensor borders = unsqueeze(transpose(o.resets), 2);
    anew = unbind(o.lengths.defined() ? borders && inside : borders, 0);
  }
  Tensors valid;  ///< within the length
  Tensors anew;   ///< begins anew
};

}  // namespace

Tensor without_padding(const Tensor& x, const SequenceOptions& o) {
  if (!o.lengths.defined() || x.numel() == 0) return x;
  const std::int64_t time = o.batch_first ? 1 : 0, rows = 1 - time;
  const std::int64_t B = x.shape()[static_cast<int>(rows)], T = x.shape()[static_cast<int>(time)];
  // A row's extents beside those of one value of x: [1, B, 1, ...] or [B, 1, 1, ...].
  const auto beside = [&](const Tensor& of_rows) {
    Shape s = Shape::filled(x.rank(), 1);
    s[static_cast<int>(rows)] = B;
    return reshape(of_rows, s);
  };
  const Tensor steps = reshape(arange(T), o.batch_first ? Shape{1, T} : Shape{T, 1});
  Tensor inside = steps < reshape(o.lengths, o.batch_first ? Shape{B, 1} : Shape{1, B});
  for (int axis = 2; axis < x.rank(); ++axis) inside = unsqueeze(inside, axis);
  // The last step of every row; a row without steps takes that of the longest one.
  Shape one = x.shape();
  one[static_cast<int>(time)] = 1;
  const Tensor at = expand(beside(clamp(o.lengths - 1, 0, T - 1)), one);
  const Tensor row = where(o.lengths > 0, arange(B), argmax(o.lengths, 0, true));
  const Tensor last = index_select(gather(detach(x), time, at), rows, row);
  return where(inside, x, where(amax(o.lengths) > 0, last, 0));
}

Tensors unroll(const Tensor& i, const RecurrentState& before, const RecurrentStep& step, const SequenceOptions& o) {
  if (!step) throw ValueError("unroll: the step is null");
  const std::int64_t time = o.batch_first ? 1 : 0;
  const Tensors inputs = unbind(i, time);
  const std::size_t T = inputs.size();
  const StepMasks masks(o, static_cast<std::int64_t>(T));
  RecurrentState state = before;
  Tensors outputs(T);
  for (std::size_t n = 0; n < T; ++n) {
    const std::size_t t = o.reverse ? T - 1 - n : n;
    if (!masks.anew.empty() && !(o.reverse && n == 0)) {
      const Tensor& anew = masks.anew[o.reverse ? t + 1 : t];  // a border lies before the step that begins anew
      state.h = where(anew, 0, state.h);
      if (state.c.defined()) state.c = where(anew, 0, state.c);
    }
    RecurrentState next = step(inputs[t], state);
    if (masks.valid.empty()) {
      outputs[t] = next.h;
      state = std::move(next);
      continue;
    }
    outputs[t] = where(masks.valid[t], next.h, 0);
    state.h = where(masks.valid[t], next.h, state.h);
    if (state.c.defined()) state.c = where(masks.valid[t], next.c, state.c);
  }
  Tensors out = {stack(outputs, time), state.h};
  if (state.c.defined()) out.push_back(state.c);
  return out;
}

}  // namespace ferrite
