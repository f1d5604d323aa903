// Examples of steps of recurrent cells, and of losses and what their page has besides.
#include "conformance/operation_examples.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "ferrite/nn/recurrent/rnn.h"

namespace conformance {
namespace {

using namespace ferrite;

const OperationExample kRecurrent[] = {
    {"gru_step", "torch.nn.GRUCell after the product with its input",
     FERRITE_EXAMPLE(gru_step(ones({1, 3}), zeros({1, 1}), ones({1, 3}), ones({3})))},
    {"lstm_step", "torch.nn.LSTMCell after the product with its input",
     FERRITE_EXAMPLE(lstm_step(ones({1, 4}), {zeros({1, 1}), zeros({1, 1})}, ones({1, 4}), zeros({4})).h)},
    {"rnn_step", "torch.nn.RNNCell after the product with its input",
     FERRITE_EXAMPLE(rnn_step(ones({1, 1}), zeros({1, 1}), ones({1, 1}), zeros({1})))},
    {"gru_step_reset_before", "",
     FERRITE_EXAMPLE(gru_step_reset_before(ones({1, 3}), zeros({1, 1}), ones({1, 3}), ones({3})))},
    {"peephole_lstm_step", "",
     FERRITE_EXAMPLE(peephole_lstm_step(ones({1, 4}), {zeros({1, 1}), ones({1, 1})}, ones({1, 4}), ones({3})).h)},
};

const OperationExample kLosses[] = {
    {"length_mask", "", FERRITE_EXAMPLE(nn::length_mask(arange(3), 2))},
    {"reduce_loss", "",
     FERRITE_EXAMPLE(nn::reduce_loss(Tensor::from({1.f, 3.f}), {.mask = Tensor::from({true, false})}))},
    {"mse_loss", "torch.nn.functional.mse_loss", FERRITE_EXAMPLE(nn::mse_loss(Tensor::from({1.f, 2.f}), zeros({2})))},
    {"l1_loss", "torch.nn.functional.l1_loss", FERRITE_EXAMPLE(nn::l1_loss(Tensor::from({1.f, 2.f}), zeros({2})))},
    {"smooth_l1_loss", "torch.nn.functional.smooth_l1_loss",
     FERRITE_EXAMPLE(nn::smooth_l1_loss(Tensor::from({1.f, 3.f}), zeros({2}), 2))},
    {"huber_loss", "torch.nn.functional.huber_loss",
     FERRITE_EXAMPLE(nn::huber_loss(Tensor::from({0.5f, 2.f}), zeros({2})))},
    {"poisson_nll_loss", "torch.nn.functional.poisson_nll_loss",
     FERRITE_EXAMPLE(nn::poisson_nll_loss(Tensor::from({0.f, 1.f}), ones({2})))},
    {"gaussian_nll_loss", "torch.nn.functional.gaussian_nll_loss",
     FERRITE_EXAMPLE(nn::gaussian_nll_loss(zeros({2}), ones({2}), Tensor::from({1.f, 4.f})))},
    {"kl_div", "torch.nn.functional.kl_div",
     FERRITE_EXAMPLE(nn::kl_div(log(full({2}, 0.5)), Tensor::from({0.25f, 0.75f})))},
    {"cross_entropy", "torch.nn.functional.cross_entropy",
     FERRITE_EXAMPLE(nn::cross_entropy(Tensor::from({1.f, 3.f}, {1, 2}), zeros({1}, Dtype::i64)))},
    {"nll_loss", "torch.nn.functional.nll_loss",
     FERRITE_EXAMPLE(nn::nll_loss(log(Tensor::from({0.2f, 0.8f}, {1, 2})), zeros({1}, Dtype::i64)))},
    {"accuracy", "", FERRITE_EXAMPLE(nn::accuracy(eye(2), zeros({2}, Dtype::i64)))},
    {"bce", "torch.nn.functional.binary_cross_entropy",
     FERRITE_EXAMPLE(nn::bce(Tensor::from({0.2f, 0.8f}), Tensor::from({0.f, 1.f})))},
    {"bce_with_logits", "torch.nn.functional.binary_cross_entropy_with_logits",
     FERRITE_EXAMPLE(nn::bce_with_logits(Tensor::from({-2.f, 0.f}), Tensor::from({0.f, 1.f})))},
    {"focal_loss", "`torchvision.ops.sigmoid_focal_loss`, whose default reduction is \"none\"",
     FERRITE_EXAMPLE(nn::focal_loss(zeros({1}), ones({1})))},
    {"soft_margin_loss", "torch.nn.functional.soft_margin_loss",
     FERRITE_EXAMPLE(nn::soft_margin_loss(Tensor::from({0.f, 2.f}), Tensor::from({1.f, -1.f})))},
    {"multilabel_soft_margin_loss", "torch.nn.functional.multilabel_soft_margin_loss",
     FERRITE_EXAMPLE(nn::multilabel_soft_margin_loss(Tensor::from({0.f, 2.f}, {1, 2}), ones({1, 2})))},
    {"multi_margin_loss", "torch.nn.functional.multi_margin_loss",
     FERRITE_EXAMPLE(nn::multi_margin_loss(Tensor::from({0.f, 0.5f}, {1, 2}), zeros({1}, Dtype::i64)))},
    {"multilabel_margin_loss", "torch.nn.functional.multilabel_margin_loss",
     FERRITE_EXAMPLE(nn::multilabel_margin_loss(zeros({1, 2}), reshape(arange(0, -2, -1), {1, 2})))},
    {"tversky_loss", "",
     FERRITE_EXAMPLE(nn::tversky_loss(full({1, 2}, 0.5), Tensor::from({0.f, 1.f}, {1, 2}), {.smooth = 2}))},
    {"dice_loss", "", FERRITE_EXAMPLE(nn::dice_loss(full({1, 2}, 0.5), Tensor::from({0.f, 1.f}, {1, 2})))},
    {"margin_ranking_loss", "torch.nn.functional.margin_ranking_loss",
     FERRITE_EXAMPLE(nn::margin_ranking_loss(zeros({2}), Tensor::from({3.f, -3.f}), ones({2})))},
    {"hinge_embedding_loss", "torch.nn.functional.hinge_embedding_loss",
     FERRITE_EXAMPLE(nn::hinge_embedding_loss(Tensor::from({0.5f, 0.2f}), Tensor::from({1.f, -1.f})))},
    {"cosine_embedding_loss", "torch.nn.functional.cosine_embedding_loss",
     FERRITE_EXAMPLE(nn::cosine_embedding_loss(Tensor::from({1.f, 0.f}), ones({2}), ones({})))},
    {"triplet_margin_loss", "torch.nn.functional.triplet_margin_loss",
     FERRITE_EXAMPLE(nn::triplet_margin_loss(zeros({2}), Tensor::from({3.f, 4.f}), ones({2})))},
    {"ctc_loss", "torch.nn.functional.ctc_loss",
     FERRITE_EXAMPLE(nn::ctc_loss(log_softmax(zeros({3, 1, 2})), ones({1, 1}, Dtype::i64)))},
    {"rnnt_loss", "`torchaudio.functional.rnnt_loss`",
     FERRITE_EXAMPLE(nn::rnnt_loss(zeros({1, 2, 2, 3}), zeros({1, 1}, Dtype::i64)))},
    {"esr_loss", "`auraloss.time.ESRLoss`", FERRITE_EXAMPLE(nn::esr_loss(full({1, 4}, 0.5), ones({1, 4})))},
    {"dc_loss", "`auraloss.time.DCLoss`", FERRITE_EXAMPLE(nn::dc_loss(Tensor::from({0.f, 1.f}, {1, 2}), ones({1, 2})))},
    {"multi_resolution_stft_loss", "`auraloss.freq.MultiResolutionSTFTLoss`",
     FERRITE_EXAMPLE(nn::multi_resolution_stft_loss(full({1, 16}, 2), ones({1, 16}), {.resolutions = {{4, 1, 4}}}))},
};

}  // namespace

std::span<const OperationExample> recurrent_examples() { return kRecurrent; }
std::span<const OperationExample> loss_examples() { return kLosses; }

}  // namespace conformance
