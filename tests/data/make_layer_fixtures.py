#!/usr/bin/env python3
"""Writes layers.safetensors: what PyTorch's modules give, in training and in evaluation, in f64 on values that f32 holds.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_layer_fixtures.py [FOLDER]

Case NAME holds x, y, a cotangent cot of y, the parameters under p/, buffers before the call under b/ and after it under
a/; for x and for every parameter the gradient under g/, a direction under v/, and under h/ the gradient of the sum of
<g, v>. Names ending in _eval are of modules in evaluation. tests/golden/layers_golden_test.cpp has the counterpart of
every case.

torch._weight_norm takes its norms as constants in its second derivative (torch.autograd.gradgradcheck refuses it), so
its formula stands in for it here; value and gradient are the same.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

torch.manual_seed(37)
torch.set_default_dtype(torch.float64)


def r(*shape, low=-2.0, high=2.0):
    return (torch.rand(shape) * (high - low) + low).float().double()


torch._weight_norm = lambda v, g, dim: v * (g / torch.norm_except_dim(v, 2, dim))


def both(name, module, x):
    return {name: (module, x), name + "_eval": (module, x)}


CASES = {
    "conv1d": (nn.Conv1d(3, 4, 3), r(2, 3, 7)),
    "conv1d_same": (nn.Conv1d(2, 4, 4, padding="same", dilation=2, groups=2), r(2, 2, 9)),
    "conv1d_circular": (nn.Conv1d(2, 3, 3, stride=2, padding=2, padding_mode="circular", bias=False), r(1, 2, 8)),
    "conv2d": (nn.Conv2d(2, 3, 3, padding=1), r(2, 2, 5, 4)),
    "conv2d_uneven": (nn.Conv2d(4, 6, (2, 3), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2), r(2, 4, 6, 7)),
    "conv2d_reflect": (nn.Conv2d(1, 2, 3, padding=2, padding_mode="reflect"), r(1, 1, 4, 5)),
    "conv2d_depthwise": (nn.Conv2d(3, 6, 3, groups=3, padding="valid", bias=False), r(2, 3, 5, 5)),
    "conv3d": (nn.Conv3d(2, 3, 2, stride=(1, 2, 1), padding_mode="replicate", padding=1), r(1, 2, 3, 4, 3)),
    "conv_transpose1d": (nn.ConvTranspose1d(3, 4, 3, stride=2, padding=1, output_padding=1), r(2, 3, 5)),
    "conv_transpose2d": (nn.ConvTranspose2d(4, 6, (2, 3), stride=(2, 1), groups=2, dilation=(1, 2)), r(2, 4, 3, 4)),
    "conv_transpose3d": (nn.ConvTranspose3d(2, 2, 2, stride=2, bias=False), r(1, 2, 2, 3, 2)),
    "max_pool1d": (nn.MaxPool1d(3, 2, 1), r(2, 3, 9)), "max_pool2d": (nn.MaxPool2d(2), r(2, 2, 6, 5)),
    "max_pool2d_ceil": (nn.MaxPool2d((3, 2), (2, 1), dilation=(1, 2), ceil_mode=True), r(1, 2, 6, 7)),
    "max_pool3d": (nn.MaxPool3d(2, 1), r(1, 2, 3, 4, 3)), "avg_pool1d": (nn.AvgPool1d(2), r(2, 3, 7)),
    "avg_pool2d": (nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), r(1, 2, 6, 6)),
    "avg_pool3d": (nn.AvgPool3d(2, divisor_override=3), r(1, 2, 4, 2, 3)),
    "lp_pool1d": (nn.LPPool1d(3, 2), r(2, 2, 6, low=0.5)), "lp_pool2d": (nn.LPPool2d(2, 3, 2), r(1, 2, 7, 5)),
    "lp_pool3d": (nn.LPPool3d(2, 2), r(1, 1, 4, 4, 2)),
    "adaptive_avg_pool1d": (nn.AdaptiveAvgPool1d(3), r(2, 2, 7)), "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d((2, 3)), r(2, 2, 5, 4)),
    "adaptive_avg_pool3d": (nn.AdaptiveAvgPool3d(1), r(1, 2, 2, 3, 2)), "adaptive_max_pool1d": (nn.AdaptiveMaxPool1d(2), r(2, 2, 5)),
    "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d((None, 2)), r(1, 2, 3, 5)), "adaptive_max_pool3d": (nn.AdaptiveMaxPool3d(2), r(1, 1, 3, 4, 2)),
    **both("batch_norm1d", nn.BatchNorm1d(4), r(3, 4, 5)), **both("batch_norm1d_flat", nn.BatchNorm1d(3, eps=0.1), r(6, 3)),
    **both("batch_norm2d", nn.BatchNorm2d(3, momentum=0.3), r(2, 3, 4, 3)), **both("batch_norm2d_mean", nn.BatchNorm2d(2, momentum=None), r(3, 2, 2, 2)),
    **both("batch_norm3d", nn.BatchNorm3d(2, affine=False), r(2, 2, 2, 3, 2)),
    **both("batch_norm_untracked", nn.BatchNorm1d(3, track_running_stats=False), r(2, 3, 4)),
    "group_norm": (nn.GroupNorm(3, 6), r(2, 6, 4)), "group_norm_flat": (nn.GroupNorm(2, 4, affine=False), r(3, 4)),
    "instance_norm1d": (nn.InstanceNorm1d(3), r(2, 3, 6)), **both("instance_norm2d", nn.InstanceNorm2d(2, affine=True, track_running_stats=True), r(3, 2, 3, 4)),
    **both("instance_norm3d", nn.InstanceNorm3d(2, track_running_stats=True, momentum=0.4), r(2, 2, 2, 2, 3)),
    "rms_norm": (nn.RMSNorm(5), r(2, 3, 5)), "rms_norm_epsilon": (nn.RMSNorm(4, eps=0.1, elementwise_affine=False), r(3, 4)),
    "prelu": (nn.PReLU(), r(2, 5)), "prelu_channels": (nn.PReLU(3), r(2, 3, 4)),
    "elu": (nn.ELU(0.5), r(3, 5)), "celu": (nn.CELU(2.0), r(3, 5)), "leaky_relu": (nn.LeakyReLU(0.2), r(3, 5)),
    "hardtanh": (nn.Hardtanh(-0.5, 1.5), r(3, 5)), "softshrink": (nn.Softshrink(0.3), r(3, 5)), "hardshrink": (nn.Hardshrink(0.7), r(3, 5)),
    "threshold": (nn.Threshold(0.2, -3.0), r(3, 5)), "glu": (nn.GLU(), r(2, 3, 6)), "glu_channels": (nn.GLU(1), r(2, 4, 3)),
    "weight_norm_conv1d": (weight_norm(nn.Conv1d(2, 3, 3)), r(2, 2, 6)), "weight_norm_axis": (weight_norm(nn.Conv2d(2, 3, 2), dim=1), r(1, 2, 4, 3)),
    "weight_norm_whole": (weight_norm(nn.Conv1d(2, 3, 2, bias=False), dim=None), r(2, 2, 4)),
    "weight_norm_linear": (weight_norm(nn.Linear(3, 4)), r(2, 3)), "weight_norm_linear_axis": (weight_norm(nn.Linear(3, 4), dim=1), r(2, 3)),
    "weight_norm_bias": (weight_norm(nn.Linear(3, 4), "bias"), r(2, 3)),
    **both("spectral_norm_conv2d", spectral_norm(nn.Conv2d(2, 3, 2)), r(1, 2, 4, 3)),
    **both("spectral_norm_linear", spectral_norm(nn.Linear(3, 4), n_power_iterations=3), r(2, 3)),
    **both("spectral_norm_axis", spectral_norm(nn.Conv1d(2, 3, 2, bias=False), dim=2), r(2, 2, 4)),
    **both("spectral_norm_conv_transpose1d", spectral_norm(nn.ConvTranspose1d(2, 3, 2)), r(2, 2, 4)),
    "spectral_norm_bias": (spectral_norm(nn.Linear(3, 4), "bias", eps=0.5), r(2, 3)),
}


class Stft(nn.Module):
    """Signals [B, L, C] -> frames [B, T, C F 2], or of one number for each frequency."""

    def __init__(self, n_fft, win_length=None, given=None, **options):
        super().__init__()
        self.n_fft, self.given, self.options = n_fft, given, options
        self.register_buffer("window", torch.empty(win_length or n_fft))

    def forward(self, x):
        rows, _, channels = x.shape
        flat = x.transpose(1, 2).reshape(rows * channels, -1)
        y = torch.stft(flat, self.n_fft, win_length=len(self.window), window=self.window, return_complex=True, **self.options)
        y = self.given(y).unsqueeze(-1) if self.given else torch.view_as_real(y)
        return y.reshape(rows, channels, *y.shape[1:]).permute(0, 3, 1, 2, 4).flatten(2)


class InverseStft(nn.Module):
    """Frames [B, T, C F 2] -> blocks [B, T', hop C], without center those that as many frames as any cover."""

    def __init__(self, n_fft, hop_length, win_length=None, channels=1, center=True, normalized=False):
        super().__init__()
        self.n_fft, self.hop, self.channels, self.center, self.normalized = n_fft, hop_length, channels, center, normalized
        self.register_buffer("window", torch.empty(win_length or n_fft))

    def forward(self, x):
        rows, frames, _ = x.shape
        spectra = torch.view_as_complex(x.reshape(rows, frames, self.channels, -1, 2).contiguous()).permute(0, 2, 3, 1)
        y = torch.istft(spectra.reshape(rows * self.channels, -1, frames), self.n_fft, self.hop, len(self.window), self.window,
                        center=self.center, normalized=self.normalized)
        if not self.center:
            y = y[:, (-(-self.n_fft // self.hop) - 1) * self.hop:frames * self.hop]
        return y.reshape(rows, self.channels, -1).transpose(1, 2).reshape(rows, -1, self.hop * self.channels)


def spectra():
    """Of a generator of their own, so that the cases before them stay."""
    torch.manual_seed(38)
    return {
        "stft": (Stft(8), r(2, 19, 1)), "stft_channels": (Stft(6, hop_length=2, normalized=True), r(2, 11, 2)),
        "stft_streaming": (Stft(8, win_length=6, hop_length=3, center=False), r(1, 20, 2)),
        "stft_magnitude": (Stft(5, given=torch.abs, hop_length=2, center=False), r(2, 12, 2)),
        "stft_power": (Stft(8, given=lambda y: y.real**2 + y.imag**2, pad_mode="constant"), r(1, 13, 1)),
        "inverse_stft": (InverseStft(8, 2), r(2, 5, 10)),
        "inverse_stft_channels": (InverseStft(6, 3, win_length=5, channels=2, normalized=True), r(1, 4, 16)),
        "inverse_stft_streaming": (InverseStft(8, 2, center=False), r(2, 6, 10)),
        "inverse_stft_uneven": (InverseStft(7, 3, channels=2, center=False, normalized=True), r(1, 5, 16)),
        "inverse_stft_apart": (InverseStft(4, 4, center=False), r(1, 3, 6)),
    }


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    write(CASES, tensors)
    write(spectra(), tensors)
    save_file(tensors, folder / "layers.safetensors", {"torch": torch.__version__})
    print(len({name.split("/")[0] for name in tensors}), "cases")


def write(cases, tensors):
    for name, (module, x) in cases.items():
        module.train(not name.endswith("_eval"))
        with torch.no_grad():
            for t in [*module.parameters(), *[b for b in module.buffers() if b.is_floating_point()]]:
                t.copy_(r(*t.shape, low=0.5))
        put = lambda what, t: tensors.__setitem__(f"{name}/{what}", t.detach().clone().contiguous())
        for key, buffer in module.named_buffers():
            put("b/" + key, buffer)
        inputs = {"x": x.clone().requires_grad_(), **dict(module.named_parameters())}
        y = module(inputs["x"])
        cotangent = torch.randn_like(y).float().double()
        values = list(inputs.values())
        grads = torch.autograd.grad(y, values, cotangent, create_graph=True)
        directions = [torch.randn_like(t).float().double() for t in values]
        total = sum((g * v).sum() for g, v in zip(grads, directions))
        second = torch.autograd.grad(total, values, allow_unused=True, materialize_grads=True) if total.requires_grad else [torch.zeros_like(t) for t in values]
        put("y", y), put("cot", cotangent)
        for key, t, g, v, h in zip(inputs, values, grads, directions, second):
            put("x" if key == "x" else "p/" + key, t), put("g/" + key, g), put("v/" + key, v), put("h/" + key, h)
        for key, buffer in module.named_buffers():
            put("a/" + key, buffer)


if __name__ == "__main__":
    main()
