#!/usr/bin/env python3
"""Writes wav/*.wav with Python's wave and SciPy, and wav/expected.npz, what they hold as f32 [C, N].

    python3 -m pip install -r tests/data/requirements.txt soundfile && python3 tests/data/make_wav_fixtures.py [FOLDER]

Integers are divided by 2^(bits - 1). SciPy reads every file, and so does the module wave those that it understands. Of
RF64, A-law and mu-law, libsndfile (the package soundfile) says what they hold: every byte of both laws is there.
"""
import pathlib
import struct
import sys
import wave

import numpy as np
import soundfile
from scipy.io import wavfile

SUBTYPE = bytes.fromhex("000000001000800000aa00389b71")


def integers(bits, channels, frames):
    """The ends of the range, zero, and others between."""
    full = 2 ** (bits - 1)
    ends = [0, full - 1, -full, 1, -1]
    rest = np.random.default_rng(bits).integers(-full, full, channels * frames - len(ends))
    return np.concatenate([ends, rest]).reshape(frames, channels)


def packed(values, bits):
    values = values + (128 if bits == 8 else 0)
    return b"".join(int(v).to_bytes(bits // 8, "little", signed=bits > 8) for v in values.ravel())


def chunk(name, content):
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def extensible(bits, valid, tag, channels, rate, data):
    frame = channels * bits // 8
    form = struct.pack("<HHIIHHHHIH", 0xFFFE, channels, rate, rate * frame, frame, bits, 22, valid, 0, tag) + SUBTYPE
    body = b"WAVE" + chunk(b"fmt ", form) + chunk(b"LIST", b"odd") + chunk(b"data", data)
    return chunk(b"RIFF", body)


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "wav"
    folder.mkdir(exist_ok=True)
    expected = {}
    for bits, channels in ((8, 1), (8, 3), (16, 1), (16, 2), (24, 1), (24, 3), (32, 2)):
        name, values = f"pcm{bits}_{channels}", integers(bits, channels, 7 if bits == 8 else 8)
        with wave.open(str(folder / f"{name}.wav"), "wb") as file:
            file.setparams((channels, bits // 8, 8000 * channels, 0, "NONE", "none"))
            file.writeframes(packed(values, bits))
        expected[name] = (values / 2 ** (bits - 1)).astype("f4").T
    floats = np.random.default_rng(1).normal(size=(9, 2))
    for dtype in ("f4", "f8"):
        wavfile.write(folder / f"float_{dtype}.wav", 44100, floats.astype(dtype))
        expected[f"float_{dtype}"] = floats.astype(dtype).astype("f4").T
    values = integers(24, 2, 5)
    (folder / "extensible_24.wav").write_bytes(extensible(24, 24, 1, 2, 48000, packed(values, 24)))
    expected["extensible_24"] = (values / 2**23).astype("f4").T
    values = integers(24, 1, 6) * 256
    (folder / "extensible_24_of_32.wav").write_bytes(extensible(32, 24, 1, 1, 48000, packed(values, 32)))
    expected["extensible_24_of_32"] = (values / 2**31).astype("f4").T
    (folder / "extensible_float.wav").write_bytes(extensible(32, 32, 3, 2, 96000, floats.astype("f4").tobytes()))
    expected["extensible_float"] = floats.astype("f4").T
    for name, wanted in expected.items():
        rate, seen = wavfile.read(folder / f"{name}.wav")
        if seen.dtype.kind != "f":
            seen = (seen.astype("f8") - (128 if seen.dtype == "u1" else 0)) / (2.0 ** (8 * seen.itemsize - 1))
        assert np.array_equal(np.atleast_2d(seen.T).astype("f4"), wanted), name
    for law, tag in (("a_law", 6), ("mu_law", 7)):
        form, data = struct.pack("<HHIIHHH", tag, 2, 8000, 16000, 2, 8, 0), bytes(range(256))
        (folder / f"{law}.wav").write_bytes(chunk(b"RIFF", b"WAVE" + chunk(b"fmt ", form) + chunk(b"fact", struct.pack("<I", 128)) + chunk(b"data", data)))
        expected[law] = soundfile.read(folder / f"{law}.wav", dtype="float32")[0].T
    for subtype in ("PCM_16", "PCM_24", "FLOAT", "ULAW"):
        soundfile.write(folder / f"rf64_{subtype}.wav", 0.1 * floats, 22050, format="RF64", subtype=subtype)
        assert (folder / f"rf64_{subtype}.wav").read_bytes().startswith(b"RF64")
        expected[f"rf64_{subtype}"] = soundfile.read(folder / f"rf64_{subtype}.wav", dtype="float32")[0].T
    np.savez(folder / "expected.npz", **{n: np.ascontiguousarray(x) for n, x in expected.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
