// Examples of running sums, order, recurrences, optimisers and programs.
#include "conformance/operation_examples.h"
#include "ferrite/autograd/checkpoint.h"
#include "ferrite/autograd/custom_function.h"
#include "ferrite/autograd/hooks.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/autograd/value_and_grad.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/adam_update.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/min_gru.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/tensor/attention.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/selective_scan.h"
#include "ferrite/tensor/sorting.h"

namespace conformance {
namespace {

using namespace ferrite;

// ---- definitions that the page shows ----
/// The step of a scan.
ScanStep step(const Tensors& carry, const Tensors&) { return {{cos(carry[0])}}; }

/// Applies the step four times; the gradient keeps every second carry.
Tensor four_steps(const Tensor& x) { return scan(step, {x}, {}, {.checkpoint_every = 2, .steps = 4}).carry[0]; }

/// The forward and the backward function of an identity that reverses gradients.
Tensors same(const Tensors& x) { return x; }
Tensors reversed(const Tensors&, const Tensors&, const Tensors& g) { return {-g[0]}; }

/// Returns the weight 1 after a step of Adam by the gradient 1.
Tensor after_adam() {
  const Parameter weight("weight", ones({1}));
  nn::Adam adam({weight});
  adam.step({ones({1})});
  return weight;
}
// ---- the examples ----

const OperationExample kSequences[] = {
    // Running sums and order.
    {"cumsum", "torch.cumsum", FERRITE_EXAMPLE(cumsum(Tensor::from({1.f, 2.f, 3.f}), 0))},
    {"cumprod", "torch.cumprod", FERRITE_EXAMPLE(cumprod(Tensor::from({1.f, 2.f, 3.f}), 0))},
    {"linear_recurrence", "", FERRITE_EXAMPLE(linear_recurrence(full({3}, 0.5), ones({3}), 0))},
    {"cummax", "torch.cummax", FERRITE_EXAMPLE(cummax(Tensor::from({1.f, 3.f, 2.f}), 0))},
    {"cummin", "torch.cummin", FERRITE_EXAMPLE(cummin(Tensor::from({2.f, 1.f, 3.f}), 0))},
    {"logcumsumexp", "torch.logcumsumexp", FERRITE_EXAMPLE(logcumsumexp(zeros({3}), 0))},
    {"linear_scan", "", FERRITE_EXAMPLE(linear_scan(full({1, 3, 1}, 0.5), ones({1, 3, 1})))},
    {"linear_scan_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& b) { return sum(linear_scan(full({1}, 0.5), b)); })(ones({1, 3, 1})))},
    {"sort", "torch.sort with stable=True", FERRITE_EXAMPLE(sort(Tensor::from({3.f, 1.f, 2.f})))},
    {"topk", "torch.topk", FERRITE_EXAMPLE(topk(Tensor::from({3.f, 1.f, 2.f}), 2))},
    {"rank_index", "", FERRITE_EXAMPLE(kthvalue(Tensor::from({3.f, 1.f, 2.f}), 2).indices)},
    {"searchsorted", "torch.searchsorted",
     FERRITE_EXAMPLE(searchsorted(Tensor::from({1.f, 3.f, 5.f}), Tensor::from({2.f, 5.f})))},

    // Attention and recurrences.
    {"attention", "torch.nn.functional.scaled_dot_product_attention",
     FERRITE_EXAMPLE(scaled_dot_product_attention(eye(2), eye(2), eye(2)))},
    {"attention_grad", "", FERRITE_EXAMPLE(grad([](auto q) {
       return sum(square(scaled_dot_product_attention(q, eye(2), eye(2))));
     })(eye(2)))},
    {"selective_scan", "",
     FERRITE_EXAMPLE(
         selective_scan(ones({1, 3, 1}), ones({1, 3, 1}), zeros({1, 1}), ones({1, 3, 1}), ones({1, 3, 1})))},
    {"selective_scan_grad", "", FERRITE_EXAMPLE(grad([](auto x) {
       return sum(selective_scan(x, x, zeros({1, 1}), x, x));
     })(ones({1, 3, 1})))},
    {"gru_sequence", "torch.nn.GRU of one layer",
     FERRITE_EXAMPLE(gru_sequence(ones({2, 1, 1}), {ones({1, 3}), ones({1, 3})}, zeros({1, 1}))[0])},
    {"lstm_sequence", "torch.nn.LSTM of one layer",
     FERRITE_EXAMPLE(lstm_sequence(ones({2, 1, 1}), {ones({1, 4}), ones({1, 4})}, {zeros({1, 1}), zeros({1, 1})})[0])},
    {"rnn_sequence", "torch.nn.RNN of one layer",
     FERRITE_EXAMPLE(rnn_sequence(ones({2, 1, 1}), {ones({1, 1}), ones({1, 1})}, zeros({1, 1}))[0])},
    {"rnn_relu_sequence", "torch.nn.RNN of one layer with nonlinearity=\"relu\"",
     FERRITE_EXAMPLE(rnn_sequence(ones({2, 1, 1}), {ones({1, 1}), ones({1, 1})}, zeros({1, 1}), true)[0])},
    {"gru_reset_before_sequence", "",
     FERRITE_EXAMPLE(nn::Gru(1, 1, {.reset_after = false}, {.seed = 1})(ones({1, 2, 1})))},
    {"peephole_lstm_sequence", "", FERRITE_EXAMPLE(nn::PeepholeLstm(1, 1, {.seed = 1})(ones({1, 2, 1})))},
    {"gru_sequence_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(nn::Gru(1, 1, {.seed = 1})(x)); })(ones({1, 2, 1})))},
    {"lstm_sequence_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(nn::Lstm(1, 1, {.seed = 1})(x)); })(ones({1, 2, 1})))},
    {"rnn_sequence_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(nn::Rnn(1, 1, {.seed = 1})(x)); })(ones({1, 2, 1})))},
    {"rnn_relu_sequence_grad", "", FERRITE_EXAMPLE(grad([](auto x) {
       return rnn_sequence(x, {x[0], x[0]}, zeros({1, 1}), true)[1];
     })(ones({2, 1, 1})))},
    {"gru_reset_before_sequence_grad", "", FERRITE_EXAMPLE(grad([](auto x) {
       return nn::Gru(1, 1, {.reset_after = false}, {.seed = 2})(x);
     })(ones({1, 1, 1})))},
    {"peephole_lstm_sequence_grad", "", FERRITE_EXAMPLE(grad([](const Tensor& x) {
       return sum(nn::PeepholeLstm(1, 1, {.seed = 1})(x));
     })(ones({1, 2, 1})))},
    {"min_gru_scan", "", FERRITE_EXAMPLE(min_gru_scan(ones({1, 3, 2})))},
    {"min_gru_scan_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(min_gru_scan(x)); })(ones({1, 3, 2})))},
    {"min_lstm_scan", "", FERRITE_EXAMPLE(min_lstm_scan(ones({1, 2, 3})))},
    {"min_lstm_scan_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(min_lstm_scan(x)); })(ones({1, 3, 3})))},

    // Optimisers.
    {"adam_begin", "", FERRITE_EXAMPLE(after_adam())},
    {"rule_update", "torch.optim.Adam and other optimisers",
     FERRITE_EXAMPLE(nn::adam_update(ones({}), ones({}), zeros({}), zeros({}), full({}, 0.1), ones({}), ones({}))[0])},

    // Gradients of losses over alignments; the losses themselves are among the losses.
    {"ctc_loss_grad", "", FERRITE_EXAMPLE(grad([](auto x) {
       return nn::ctc_loss(log(x), ones({1, 1}, Dtype::i64));
     })(full({3, 1, 2}, 0.5)))},
    {"rnnt_loss_grad", "", FERRITE_EXAMPLE(grad([](auto x) {
       return nn::rnnt_loss(x, zeros({1, 1}, Dtype::i64));
     })(zeros({1, 2, 2, 3})))},

    // Programs.
    {"scan", "", FERRITE_EXAMPLE(scan(step, {ones({1})}, {}, {.steps = 3}).carry[0])},
    {"scan_checkpointed", "", FERRITE_EXAMPLE(value_and_grad(four_steps)(ones({})).first)},
    {"scan_checkpointed_grad", "", FERRITE_EXAMPLE(value_and_grad(four_steps)(ones({})).second)},
    {"compiled", "torch.compile", FERRITE_EXAMPLE(compile([](const Tensor& x) { return x * x; })(full({}, 3)))},
    {"custom_gradient", "torch.autograd.Function",
     FERRITE_EXAMPLE(grad(custom_function("reversed", same, reversed))(ones({})))},
    {"gradient_hook", "torch.Tensor.register_hook", FERRITE_EXAMPLE(grad([](const Tensor& x) {
       return 3 * hook_gradient(x, [](auto& g) { return 2 * g; });
     })(ones({})))},
    {"recompute", "torch.utils.checkpoint.checkpoint", FERRITE_EXAMPLE(grad([](auto x) {
       return checkpoint([](const Tensor& y) { return exp(exp(y)); }, x);
     })(zeros({})))},
};

}  // namespace

std::span<const OperationExample> sequence_examples() { return kSequences; }

}  // namespace conformance
