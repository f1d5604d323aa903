#!/usr/bin/env python3
"""Writes signal.safetensors: what PyTorch gives for Fourier transforms and spectrograms, in f64 on values that f32 holds.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_signal_fixtures.py [FOLDER]

twice.py says what a case holds. Complex tensors have a last axis of real and imaginary parts.
tests/golden/signal_test.cpp has the counterpart of every case.
"""
import math
import pathlib
import sys

import scipy.fft
import torch

import twice

torch.manual_seed(17)


def r(*shape, low=-1.0, high=1.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


def real(z):
    return torch.view_as_real(z.resolve_conj()).contiguous()


def cx(x):
    return torch.view_as_complex(x.contiguous())


def power(z):
    """A function with curvature, so that the double backward is not zero."""
    return z * z


def rfft(**o):
    return lambda x: power(real(torch.fft.rfft(x, **o)))


def irfft(**o):
    return lambda x: power(torch.fft.irfft(cx(x), **o))


def fft(**o):
    return lambda x: power(real(torch.fft.fft(cx(x), **o)))


def ifft(**o):
    return lambda x: power(real(torch.fft.ifft(cx(x), **o)))


def stft(*window, **o):
    def f(x, *w):
        return power(real(torch.stft(x, window=w[0] if w else None, return_complex=True, **o)))
    return f


def istft(*window, **o):
    def f(x, *w):
        return power(torch.istft(cx(x), window=w[0] if w else None, **o))
    return f


def spectrum(rows, seconds, n_fft, **o):
    return real(torch.stft(r(rows, seconds), n_fft, window=torch.hann_window(n_fft).double(), return_complex=True, **o)).float().double()


HANN = torch.hann_window(16).double().float().double()

CASES = {
    "rfft_even": (rfft(), [r(3, 8)]), "rfft_odd": (rfft(), [r(3, 9)]), "rfft_one": (rfft(), [r(4, 1)]),
    "rfft_axis": (rfft(dim=1), [r(2, 12, 3)]), "rfft_cut": (rfft(n=7), [r(2, 10)]),
    "rfft_padded": (rfft(n=16, norm="ortho"), [r(2, 10)]), "rfft_forward": (rfft(norm="forward", dim=0), [r(10, 2)]),
    "rfft_prime": (rfft(), [r(41)]), "rfft_twice_a_prime": (rfft(), [r(74)]), "rfft_64": (rfft(norm="ortho"), [r(64)]),
    "rfft_60": (rfft(norm="ortho"), [r(60)]), "rfft_105": (rfft(norm="ortho"), [r(105)]),
    "irfft": (irfft(), [r(3, 5, 2)]), "irfft_odd": (irfft(n=9), [r(3, 5, 2)]), "irfft_axis": (irfft(dim=0), [r(5, 3, 2)]),
    "irfft_padded": (irfft(n=16, norm="ortho"), [r(3, 5, 2)]), "irfft_cut": (irfft(n=5, norm="forward"), [r(2, 7, 2)]),
    "irfft_prime": (irfft(n=83), [r(42, 2)]), "irfft_one": (irfft(n=1), [r(2, 1, 2)]),
    "fft": (fft(), [r(3, 8, 2)]), "fft_odd": (fft(norm="ortho"), [r(15, 2)]), "fft_axis": (fft(dim=0), [r(6, 3, 2)]),
    "fft_cut": (fft(n=5), [r(2, 7, 2)]), "fft_padded": (fft(n=11, norm="forward"), [r(2, 7, 2)]),
    "fft_prime": (fft(), [r(37, 2)]), "ifft": (ifft(), [r(3, 8, 2)]), "ifft_ortho": (ifft(norm="ortho"), [r(3, 12, 2)]),
    "ifft_forward": (ifft(norm="forward", dim=0), [r(7, 2, 2)]), "ifft_prime": (ifft(), [r(43, 2)]),
    "fftshift": (lambda x: power(torch.fft.fftshift(x)), [r(5, 4)]),
    "fftshift_axis": (lambda x: power(torch.fft.fftshift(x, dim=(1,))), [r(3, 7)]),
    "ifftshift": (lambda x: power(torch.fft.ifftshift(x)), [r(5, 4)]),
    "stft": (stft(n_fft=16, center=True), [r(2, 17)]),
    "stft_window": (stft(n_fft=16, hop_length=5), [r(1, 31), HANN]),
    "stft_one_signal": (stft(n_fft=12, hop_length=3), [r(24), r(12, low=0.1)]),
    "stft_short_window": (stft(n_fft=16, hop_length=4, win_length=9), [r(1, 24), r(9, low=0.1)]),
    "stft_short_window_of_ones": (stft(n_fft=16, hop_length=4, win_length=10), [r(1, 24)]),
    "stft_not_centred": (stft(n_fft=16, hop_length=7, center=False), [r(1, 31), HANN]),
    "stft_constant": (stft(n_fft=10, hop_length=4, pad_mode="constant"), [r(1, 19)]),
    "stft_replicate": (stft(n_fft=10, hop_length=4, pad_mode="replicate"), [r(1, 19)]),
    "stft_circular": (stft(n_fft=10, hop_length=4, pad_mode="circular"), [r(1, 19)]),
    "stft_normalized": (stft(n_fft=16, normalized=True), [r(1, 31), HANN]),
    "stft_two_sided": (stft(n_fft=12, hop_length=5, onesided=False), [r(1, 24)]),
    "stft_odd": (stft(n_fft=15, hop_length=4), [r(1, 24), r(15, low=0.1)]),
    "istft": (istft(n_fft=16), [spectrum(1, 30, 16), HANN]),
    "istft_length": (istft(n_fft=16, length=30), [spectrum(1, 30, 16), HANN]),
    "istft_longer": (istft(n_fft=16, length=39), [spectrum(1, 30, 16), HANN]),
    "istft_shorter": (istft(n_fft=16, hop_length=4, length=21), [spectrum(1, 30, 16), HANN]),
    "istft_normalized": (istft(n_fft=16, normalized=True), [spectrum(2, 20, 16), HANN]),
    "istft_not_centred": (istft(n_fft=16, hop_length=5, center=False), [r(1, 9, 6, 2), r(16, low=0.3)]),
    "istft_short_window": (istft(n_fft=16, hop_length=3, win_length=9), [r(1, 9, 6, 2), r(9, low=0.3)]),
    "istft_two_sided": (istft(n_fft=12, hop_length=3, onesided=False), [r(1, 12, 5, 2), r(12, low=0.3)]),
    "istft_odd": (istft(n_fft=15, hop_length=4), [r(8, 6, 2), r(15, low=0.3)]),
}

def mels(n_frequencies, n_mels, rate, low, high, slaney, area):
    """Triangles by their definition, one element at a time."""
    def to_mel(f):
        if not slaney:
            return 2595 * math.log10(1 + f / 700)
        return 3 * f / 200 if f < 1000 else 15 + 27 * math.log(f / 1000) / math.log(6.4)

    def corner(i):
        target, a, b = to_mel(low) + (to_mel(high) - to_mel(low)) * i / (n_mels + 1), 0.0, 1e6
        for _ in range(200):
            a, b = ((a + b) / 2, b) if to_mel((a + b) / 2) < target else (a, (a + b) / 2)
        return (a + b) / 2

    bank = torch.zeros(n_frequencies, n_mels, dtype=torch.float64)
    for m in range(n_mels):
        left, top, right = corner(m), corner(m + 1), corner(m + 2)
        for k in range(n_frequencies):
            f = rate / 2 * k / (n_frequencies - 1)
            if left < f < right:
                bank[k, m] = ((f - left) / (top - left) if f <= top else (right - f) / (right - top)) * (2 / (right - left) if area else 1)
    return bank


def cosines(n, count, norm):
    """The transforms of unit vectors."""
    return torch.from_numpy(scipy.fft.dct(torch.eye(n).double().numpy(), 2, norm=norm)[:, :count].copy())


CONSTANTS = {
    "mel_htk": mels(33, 8, 16000, 0, 8000, False, False), "mel_slaney": mels(21, 6, 8000, 20, 3800, True, True),
    "cosines_8_5": cosines(8, 5, "ortho"), "cosines_7_7": cosines(7, 7, None),
    "fftfreq_even": torch.fft.fftfreq(8, 0.1, dtype=torch.float64), "fftfreq_odd": torch.fft.fftfreq(9, dtype=torch.float64),
    "rfftfreq_even": torch.fft.rfftfreq(8, 0.1, dtype=torch.float64), "rfftfreq_odd": torch.fft.rfftfreq(9, 3, dtype=torch.float64),
    **{f"{name}_{n}{'' if periodic else '_symmetric'}": f(n, periodic=periodic, dtype=torch.float64)
       for name, f in (("hann", torch.hann_window), ("hamming", torch.hamming_window), ("blackman", torch.blackman_window),
                       ("bartlett", torch.bartlett_window), ("kaiser", torch.kaiser_window))
       for n in (1, 2, 7, 16) for periodic in (True, False)},
    "kaiser_8_beta": torch.kaiser_window(8, True, 5.5, dtype=torch.float64),
    "hamming_8_alpha": torch.hamming_window(8, True, 0.6, 0.3, dtype=torch.float64),
}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    twice.write(folder / "signal.safetensors", CASES, {"constant/" + name: t for name, t in CONSTANTS.items()})
