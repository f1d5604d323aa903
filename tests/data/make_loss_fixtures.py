#!/usr/bin/env python3
"""Writes losses.safetensors: what PyTorch gives for losses, their gradients and the gradients of these, in f64 on values
that f32 holds. Losses of audio are those of auraloss; where PyTorch has no function, or none that is differentiable
twice, the formula stands here in operations.

    python3 -m pip install -r tests/data/requirements.txt auraloss==0.4.0
    python3 tests/data/make_loss_fixtures.py [FOLDER]

Case NAME holds the inputs NAME/in0, ... (f64, or f32 of the same values) that are differentiated, constants NAME/c0, ..., NAME/out, a cotangent
NAME/cot, the gradients NAME/g0, ..., cotangents of these NAME/v0, ..., and NAME/h0, ...: the gradients of the sum of
<v, g>. Cases without `h` are not differentiated twice, by PyTorch or at all. tests/golden/losses_golden_test.cpp has the counterparts.
"""
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from auraloss.freq import MultiResolutionSTFTLoss
from auraloss.perceptual import FIRFilter
from auraloss.time import DCLoss, ESRLoss
from safetensors.torch import save_file

torch.manual_seed(17)


def r(*shape, low=-2.0, high=2.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


def p(*shape):
    return r(*shape, low=0.05, high=0.95)


def n(*values):
    return torch.tensor(values, dtype=torch.int64)


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def signs(*shape):
    return torch.where(torch.rand(*shape) < 0.5, -1.0, 1.0).double()


def masked(losses, lengths):
    """The mean of the first steps of every row."""
    mask = torch.arange(losses.shape[1])[None] < lengths[:, None]
    mask = mask.reshape(mask.shape + (1,) * (losses.dim() - 2)).expand(losses.shape)
    return losses[mask].mean()


def focal(x, y, alpha=0.25, gamma=2.0):
    """torchvision.ops.sigmoid_focal_loss."""
    prob = torch.sigmoid(x)
    ce = F.binary_cross_entropy_with_logits(x, y, reduction="none")
    p_t = prob * y + (1 - prob) * (1 - y)
    loss = ce * (1 - p_t) ** gamma
    return (loss if alpha < 0 else (alpha * y + (1 - alpha) * (1 - y)) * loss).mean()


def tversky(x, y, a, b, s):
    axes = tuple(range(1, x.dim()))
    both, wrong, missed = (x * y).sum(axes), (x * (1 - y)).sum(axes), ((1 - x) * y).sum(axes)
    return (1 - (both + s) / (both + a * wrong + b * missed + s)).mean()


def dice(x, y, s):
    axes = tuple(range(1, x.dim()))
    return (1 - (2 * (x * y).sum(axes) + s) / (x.sum(axes) + y.sum(axes) + s)).mean()


def ctc(log_probs, targets, inputs, labels, blank=0):
    """Graves et al. 2006, section 4.1, sequence by sequence."""
    losses = []
    for b in range(log_probs.shape[1]):
        states = [blank]
        for y in targets[b, : labels[b]].tolist():
            states += [y, blank]
        alpha = [log_probs[0, b, c] if s < 2 else None for s, c in enumerate(states)]
        for frame in range(1, int(inputs[b])):
            new = []
            for s, c in enumerate(states):
                before = [s, s - 1] + ([s - 2] if s % 2 and s > 1 and c != states[s - 2] else [])
                ways = [alpha[k] for k in before if k >= 0 and alpha[k] is not None]
                new.append(torch.logsumexp(torch.stack(ways), 0) + log_probs[frame, b, c] if ways else None)
            alpha = new
        ends = [a for a in alpha[-2:] if a is not None]
        losses.append(-torch.logsumexp(torch.stack(ends), 0))
    return torch.stack(losses)


def rnnt(log_probs, targets, inputs, labels, blank):
    """Graves 2012, equations 16 to 18, sequence by sequence."""
    losses = []
    for b in range(log_probs.shape[0]):
        T, U = int(inputs[b]), int(labels[b])
        alpha = {(0, 0): log_probs.new_zeros(())}
        for i in range(T):
            for u in range(U + 1):
                ways = []
                if i > 0:
                    ways.append(alpha[i - 1, u] + log_probs[b, i - 1, u, blank])
                if u > 0:
                    ways.append(alpha[i, u - 1] + log_probs[b, i, u - 1, targets[b, u - 1]])
                if ways:
                    alpha[i, u] = torch.logsumexp(torch.stack(ways), 0)
        losses.append(-(alpha[T - 1, U] + log_probs[b, T - 1, U, blank]))
    return torch.stack(losses)


A, B = r(3, 4), r(3, 4)
W = r(3, 4, low=0.2, high=2)
LENGTHS = n(4, 0, 2)
SEQ, SEQ2 = r(3, 4, 2), r(3, 4, 2)
X5, Y5 = r(4, 5, low=-6, high=6), n(1, 0, 4, 4)
C5 = r(5, low=0.2, high=2)
X3, Y3 = r(2, 5, 3), n([1, 0, 4], [4, 2, 2])
IGNORED = n(1, -100, 4, -100)
P5 = torch.softmax(r(4, 5), 1).float().double()
P3 = torch.softmax(r(2, 5, 3), 1).float().double()
LOG5, LOG3 = F.log_softmax(X5, 1).float().double(), F.log_softmax(X3, 1).float().double()
TIES = [t(1.0, 1.0, 0.5, 0.0, -1.0, 2.0), t(1.0, 0.0, 0.0, 0.5, 0.0, 0.0)]
TARGETS = n([3, 1, 0], [1, 1, 2])
INPUTS, LABELS = n(6, 5), n(3, 2)

def fir(x):
    """Zeros around a signal, and their filter, which is a correlation, so that it runs backwards in time."""
    x = F.pad(x, (1, 1))
    f = FIRFilter("hp", coef=0.85)
    f.fir.weight.data = f.fir.weight.data.double()
    f.fir.weight.data[0, 0, 1] = -0.85
    return f.fir(x.reshape(-1, 1, x.shape[-1]).flip(-1)).flip(-1).reshape(x.shape)


# Name: function, differentiated inputs, constants, whether it is differentiated twice.
CASES = {}


def case(name, f, inputs, constants=(), twice=True):
    CASES[name] = (f, inputs, list(constants), twice)


def case_each(name, f, inputs, constants=(), kinds=("mean", "none")):
    for kind in kinds:
        case(f"{name}_{kind}", lambda *a, kind=kind: f(*a, reduction=kind), inputs, constants)


case_each("mse", F.mse_loss, [A, B], kinds=("mean", "sum", "none"))
case("mse_weight_mean", lambda a, b, w: F.mse_loss(a, b, weight=w), [A, B], [W])
case("mse_weight_none", lambda a, b, w: F.mse_loss(a, b, weight=w, reduction="none"), [A, B], [W])
case("mse_lengths", lambda a, b, k: masked(F.mse_loss(a, b, reduction="none"), k), [SEQ, SEQ2], [LENGTHS])
case("mse_mask", lambda a, b, m: ((a - b) ** 2)[m == 1].mean(), [A, B], [(W > 1).long()])
case("mse_mask_weight", lambda a, b, w, m: (((a - b) ** 2 * w)[m == 1]).sum() / w[m == 1].sum(), [A, B], [W, (B > 0).long()])
case("mse_empty", F.mse_loss, [r(0, 3), r(0, 3)])
case_each("l1", F.l1_loss, [A, B])
case("l1_ties", F.l1_loss, TIES)
case("l1_weight_mean", lambda a, b, w: F.l1_loss(a, b, weight=w), [A, B], [W])
case_each("smooth_l1", F.smooth_l1_loss, [A, B])
case("smooth_l1_beta", lambda a, b: F.smooth_l1_loss(a, b, beta=0.3), [A, B])
case("smooth_l1_0", lambda a, b: F.smooth_l1_loss(a, b, beta=0.0), [A, B])
case("smooth_l1_ties", lambda a, b: F.smooth_l1_loss(a, b, beta=0.5, reduction="none"), TIES)
case_each("huber", F.huber_loss, [A, B])
case("huber_delta", lambda a, b: F.huber_loss(a, b, delta=0.3), [A, B])
case("huber_ties", lambda a, b: F.huber_loss(a, b, delta=0.5, reduction="none"), TIES)
case("huber_weight_mean", lambda a, b, w: F.huber_loss(a, b, weight=w), [A, B], [W])
case_each("poisson_nll", F.poisson_nll_loss, [A], [r(3, 4, low=0, high=4)])
case("poisson_nll_rate", lambda a, y: F.poisson_nll_loss(a, y, log_input=False), [W], [r(3, 4, low=0, high=4)])
case("poisson_nll_full", lambda a, y: F.poisson_nll_loss(a, y, full=True), [A], [r(3, 4, low=0, high=4).round()])
case_each("gaussian_nll", F.gaussian_nll_loss, [A, B, W])
case("gaussian_nll_full", lambda a, b, v: F.gaussian_nll_loss(a, b, v, full=True), [A, B, W])
case("gaussian_nll_bound", lambda a, b, v: F.gaussian_nll_loss(a, b, v, eps=0.7), [A, B, W])
case("gaussian_nll_row", lambda a, b, v: F.gaussian_nll_loss(a, b, v), [A, B, r(3, 1, low=0.3, high=2)])
case_each("kl_div", F.kl_div, [torch.log(P5).float().double()], [torch.softmax(X5, 1)])
case("kl_div_batch", lambda a, y: F.kl_div(a, y, reduction="batchmean"), [r(4, 5)], [P5])
case("kl_div_target", F.kl_div, [r(4, 5), P5])
case("kl_div_log", lambda a, y: F.kl_div(a, y, reduction="batchmean", log_target=True), [r(4, 5), torch.log(P5).float().double()])
case("kl_div_zero", lambda a, y: F.kl_div(a, y, reduction="none"), [r(1, 3)], [t([0.0, 0.25, 0.75])])

case_each("bce", F.binary_cross_entropy, [p(3, 4), p(3, 4)])
case("bce_weight", lambda a, b, w: F.binary_cross_entropy(a, b, weight=w), [p(3, 4), p(3, 4)], [W])
case("bce_ends", lambda a, b: F.binary_cross_entropy(a, b, reduction="none"), [t(0.0, 1.0, 0.5, 0.25)], [t(1.0, 0.0, 1.0, 0.0)], False)
case_each("bce_with_logits", F.binary_cross_entropy_with_logits, [A * 4, p(3, 4)], kinds=("mean", "sum", "none"))
case("bce_with_logits_weight", lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, weight=w), [A, p(3, 4)], [W])
case("bce_with_logits_pos", lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, pos_weight=w), [A, p(3, 4)], [r(4, low=0.2, high=3)])
case("bce_with_logits_both", lambda a, b, w, q: F.binary_cross_entropy_with_logits(a, b, weight=w, pos_weight=q, reduction="sum"), [A, p(3, 4)], [W, r(3, 4, low=0.2, high=3)])
case("bce_with_logits_lengths", lambda a, b, k: masked(F.binary_cross_entropy_with_logits(a, b, reduction="none"), k), [SEQ], [p(3, 4, 2), LENGTHS])
case("focal", focal, [A, p(3, 4)])
case("focal_labels", lambda a, b: focal(a, b, 0.6, 1.5), [A * 4], [(B > 0).double()])
case("focal_plain", lambda a, b: focal(a, b, -1, 3), [A], [(B > 0).double()])
case_each("soft_margin", F.soft_margin_loss, [A * 4], [signs(3, 4)])
case_each("multilabel_soft_margin", F.multilabel_soft_margin_loss, [X5], [(P5 > 0.2).double()])
case("multilabel_soft_margin_weight", lambda a, b, w: F.multilabel_soft_margin_loss(a, b, weight=w), [X5], [(P5 > 0.2).double(), C5])
case("tversky", lambda a, b: tversky(a, b, 0.3, 0.7, 0.5), [p(2, 3, 4), p(2, 3, 4)])
case("dice", lambda a, b: dice(a, b, 1.0), [p(2, 3, 4)], [(r(2, 3, 4) > 0).double()])
case("dice_smooth", lambda a, b: dice(a, b, 0.1), [p(3, 4), p(3, 4)])

case_each("cross_entropy", F.cross_entropy, [X5], [Y5])
case_each("cross_entropy_weight", lambda a, y, w, reduction: F.cross_entropy(a, y, w, reduction=reduction), [X5], [Y5, C5])
case_each("cross_entropy_ignored", F.cross_entropy, [X5], [IGNORED])
case("cross_entropy_ignore_4", lambda a, y, w: F.cross_entropy(a, y, w, ignore_index=4), [X5], [Y5, C5])
case_each("cross_entropy_smooth", lambda a, y, reduction: F.cross_entropy(a, y, label_smoothing=0.1, reduction=reduction), [X5], [Y5])
case_each("cross_entropy_all", lambda a, y, w, reduction: F.cross_entropy(a, y, w, ignore_index=2, label_smoothing=0.2, reduction=reduction), [X3], [Y3, C5], kinds=("mean", "sum", "none"))
case_each("cross_entropy_image", F.cross_entropy, [r(2, 3, 2, 2)], [n([[0, 1], [2, 2]], [[1, 1], [0, 2]])])
case("cross_entropy_last", lambda a, y: F.cross_entropy(a.transpose(1, 2), y), [r(2, 3, 5)], [Y3])
case("cross_entropy_lengths", lambda a, y, k: masked(F.cross_entropy(a.transpose(1, 2), y, reduction="none"), k), [r(2, 3, 5)], [Y3, n(3, 1)])
case("cross_entropy_one", F.cross_entropy, [r(5)], [torch.tensor(3)])
case_each("cross_entropy_shares", F.cross_entropy, [X5, P5])
case_each("cross_entropy_shares_all", lambda a, y, w, reduction: F.cross_entropy(a, y, w, label_smoothing=0.2, reduction=reduction), [X3, P3], [C5])
case_each("nll", F.nll_loss, [LOG5], [Y5])
case_each("nll_weight", lambda a, y, w, reduction: F.nll_loss(a, y, w, ignore_index=4, reduction=reduction), [LOG5], [Y5, C5])
case_each("nll_image", F.nll_loss, [LOG3], [Y3])
case_each("multi_margin", F.multi_margin_loss, [A], [n(1, 0, 3)])
case("multi_margin_2", lambda a, y, w: F.multi_margin_loss(a, y, p=2, margin=0.4, weight=w), [A], [n(1, 0, 3), W[0].clone()])
case_each("multilabel_margin", F.multilabel_margin_loss, [A], [n([3, 0, -1, 1], [-1, 0, 0, 0], [2, 1, 3, 0])])

case_each("hinge_embedding", F.hinge_embedding_loss, [A], [signs(3, 4)])
case("hinge_embedding_margin", lambda a, y: F.hinge_embedding_loss(a, y, margin=0.5, reduction="none"), [t(0.5, 0.5, 0.25, 1.0)], [t(-1.0, 1.0, -1.0, -1.0)])
case_each("margin_ranking", F.margin_ranking_loss, [A, B], [signs(3, 4)])
case("margin_ranking_margin", lambda a, b, y: F.margin_ranking_loss(a, b, y, margin=0.5), [A, B], [signs(3, 4)])
case("margin_ranking_ties", lambda a, b, y: F.margin_ranking_loss(a, b, y, reduction="none"), [t(1.0, 1.0, 2.0), t(1.0, 1.0, 1.0)], [t(1.0, -1.0, -1.0)])
case_each("cosine_embedding", F.cosine_embedding_loss, [A, B], [t(1.0, -1.0, -1.0)])
case("cosine_embedding_margin", lambda a, b, y: F.cosine_embedding_loss(a, b, y, margin=-0.3), [A, B], [t(-1.0, -1.0, 1.0)])
case_each("triplet", F.triplet_margin_loss, [A, B, W], kinds=("mean", "sum", "none"))
case("triplet_swap", lambda a, b, c: F.triplet_margin_loss(a, b, c, margin=3, swap=True), [A, B, W])
case("triplet_p1", lambda a, b, c: F.triplet_margin_loss(a, b, c, margin=3, p=1), [A, B, W])
case("triplet_p3", lambda a, b, c: F.triplet_margin_loss(a, b, c, margin=3, p=3, swap=True), [A, B, W])
case("triplet_inf", lambda a, b, c: F.triplet_margin_loss(a, b, c, margin=3, p=math.inf), [A, B, W])

CTC = r(6, 2, 4)
case("ctc_none", lambda x, y, k, m: ctc(F.log_softmax(x, 2), y, k, m), [CTC], [n([3, 1, 2], [1, 1, 2]), INPUTS, LABELS])
case("ctc_mean", lambda x, y, k, m: (ctc(F.log_softmax(x, 2), y, k, m, 3) / m.clamp(min=1)).mean(), [CTC], [TARGETS % 3, INPUTS, LABELS])
case("ctc_torch_mean", lambda x, y, k, m: F.ctc_loss(F.log_softmax(x, 2), y, k, m), [CTC], [n([3, 1, 2], [1, 1, 2]), INPUTS, LABELS], False)
case("ctc_torch_sum", lambda x, y, k, m: F.ctc_loss(F.log_softmax(x, 2), y, k, m, blank=2, reduction="sum"), [CTC], [n([3, 1, 0], [1, 1, 0]), INPUTS, LABELS], False)
case("ctc_torch_long", lambda x, y, k, m: F.ctc_loss(F.log_softmax(x, 2), y, k, m, reduction="none"), [r(40, 3, 6)], [torch.randint(1, 6, (3, 12)), n(40, 33, 25), n(12, 7, 0)], False)
case("ctc_torch_zero_infinity", lambda x, y, k, m: F.ctc_loss(F.log_softmax(x, 2), y, k, m, reduction="none", zero_infinity=True), [CTC], [n([1, 1, 1], [1, 1, 2]), n(4, 5), LABELS], False)
case("ctc_torch_infinity", lambda x, y, k, m: F.ctc_loss(F.log_softmax(x, 2), y, k, m, reduction="none"), [CTC], [n([1, 1, 1], [1, 1, 2]), n(4, 5), LABELS], False)
RNNT = r(2, 4, 4, 3)
case("rnnt_none", lambda x, y, k, m: rnnt(F.log_softmax(x, 3), y, k, m, 2), [RNNT], [n([1, 0, 1], [1, 1, 0]), n(4, 3), n(3, 2)])
case("rnnt_mean", lambda x, y, k, m: rnnt(F.log_softmax(x, 3), y, k, m, 0).mean(), [RNNT], [n([1, 2, 1], [1, 1, 2]), n(4, 3), n(3, 0)])
case("rnnt_log_probs", lambda x, y, k, m: rnnt(x, y, k, m, 0).sum(), [RNNT], [n([1, 2, 1], [1, 1, 2]), n(4, 1), n(3, 2)])

case_each("esr", lambda a, b, reduction: ESRLoss(reduction=reduction)(a, b), [r(2, 3, 16), r(2, 3, 16)])
case_each("dc", lambda a, b, reduction: DCLoss(reduction=reduction)(a, b), [r(2, 3, 16), r(2, 3, 16)])
case("esr_emphasis", lambda a, b: ESRLoss()(fir(a), fir(b)), [r(2, 1, 14), r(2, 1, 14)])
case("dc_emphasis", lambda a, b: DCLoss()(fir(a), fir(b)), [r(2, 1, 14), r(2, 1, 14)])
case("esr_lengths", lambda a, b, k: torch.stack([ESRLoss()(a[i, :m].T, b[i, :m].T) for i, m in enumerate(k)]).mean(), [r(2, 9, 2), r(2, 9, 2)], [n(9, 4)])
case("dc_lengths", lambda a, b, k: torch.stack([DCLoss()(a[i, :m].T, b[i, :m].T) for i, m in enumerate(k)]).mean(), [r(2, 9, 2), r(2, 9, 2)], [n(9, 4)])


def spectra(a, b, **weights):
    loss = MultiResolutionSTFTLoss([32, 16], [8, 5], [24, 16], **weights)
    for f in loss.stft_losses:
        f.window = torch.hann_window(len(f.window), dtype=torch.float64)
    return loss(a, b)


case("stft", spectra, [r(2, 1, 40), r(2, 1, 40)])
case("stft_weights", lambda a, b: spectra(a, b, w_sc=0.5, w_log_mag=0.0, w_lin_mag=2.0), [r(1, 2, 40), r(1, 2, 40)])


def check_definitions():
    """The definitions above are PyTorch's functions where it has them."""
    x = F.log_softmax(CTC, 2)
    y = n([3, 1, 2], [1, 1, 2])
    theirs = F.ctc_loss(x, y, INPUTS, LABELS, reduction="none")
    assert torch.allclose(theirs, ctc(x, y, INPUTS, LABELS), rtol=1e-12)


def shortened(x):
    """In f32 where that holds all values."""
    short = x.float()
    return (short if x.is_floating_point() and torch.equal(short.double(), x) else x).clone().contiguous()


def main():
    check_definitions()
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    for name, (f, inputs, constants, twice) in CASES.items():
        inputs = [x.clone().requires_grad_() for x in inputs]
        out = f(*inputs, *constants)
        for k, x in enumerate(inputs):
            tensors[f"{name}/in{k}"] = x
        for k, x in enumerate(constants):
            tensors[f"{name}/c{k}"] = x
        tensors[f"{name}/out"] = out
        tensors[f"{name}/cot"] = cotangent = torch.randn_like(out).float().double()
        grads = torch.autograd.grad(out, inputs, cotangent, create_graph=twice)
        for k, g in enumerate(grads):
            tensors[f"{name}/g{k}"] = g
        if not twice:
            continue
        directions = [torch.randn_like(g).float().double() for g in grads]
        for k, v in enumerate(directions):
            tensors[f"{name}/v{k}"] = v
        total = sum((v * g).sum() for v, g in zip(directions, grads))
        again = [None] * len(inputs)
        try:
            if total.requires_grad:
                again = torch.autograd.grad(total, inputs, allow_unused=True)
        except RuntimeError as e:
            assert "is not implemented" in str(e), e
            continue
        for k, h in enumerate(again):
            tensors[f"{name}/h{k}"] = torch.zeros_like(inputs[k]) if h is None else h
    save_file({name: shortened(x.detach()) for name, x in tensors.items()}, folder / "losses.safetensors",
              {"torch": torch.__version__})
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
