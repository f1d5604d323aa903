#!/usr/bin/env python3
"""Checks that SciPy and Python's wave read WAV files of ours as what the .npy beside each holds.

    python3 tests/data/check_wav_written.py FOLDER

The .npy has integers as doubles, or floats as f32, [C, N].
"""
import pathlib
import sys
import wave

import numpy as np
from scipy.io import wavfile


def check(path):
    wanted = np.load(path.with_suffix(".npy"))
    rate, seen = wavfile.read(path)
    seen = np.atleast_2d(seen.T)
    if seen.dtype == np.int32:  # 24 bits at the top of 32
        seen = seen >> 8
    assert rate == 22050 and seen.shape == wanted.shape, f"{path}: {rate} {seen.shape}"
    assert np.array_equal(seen.astype(wanted.dtype), wanted), f"{path}: {seen} {wanted}"
    if seen.dtype.kind == "i":
        with wave.open(str(path)) as file:
            assert (file.getnchannels(), file.getnframes(), file.getframerate()) == (*wanted.shape, 22050), path


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.wav"))
    for path in paths:
        check(path)
    print(f"{len(paths)} files read")
    return 0 if paths else 1


if __name__ == "__main__":
    sys.exit(main())
