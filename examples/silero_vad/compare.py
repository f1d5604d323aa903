#!/usr/bin/env python3
"""Runs Silero VAD as its authors ship it, by torch.jit and by ONNX Runtime, over the samples that the example hears.

    python3 examples/silero_vad/compare.py [--program build/release/examples/silero_vad] [--data build/example-data/silero]

Every frame's probability must agree within 1e-5. Times are of one thread, with the three programs in turn, and the
median of the rounds. scripts/example-data fetches the data. Needs torch; ONNX Runtime is compared if it is installed.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import wave

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST = 1e-5


def samples_of(path, np):
    """Returns the samples in frames of 32 ms, the last one filled up with zeros, and their rate."""
    with wave.open(str(path)) as sound:
        rate = sound.getframerate()
        x = np.frombuffer(sound.readframes(sound.getnframes()), np.int16).astype(np.float32) / 32768
    frame = rate * 32 // 1000
    return np.pad(x, (0, -len(x) % frame)).reshape(-1, 1, frame), rate


def torch_runner(path, torch):
    model = torch.jit.load(str(path)).eval()

    def run(frames, rate):
        model.reset_states()
        with torch.no_grad():
            tensors = [torch.from_numpy(f) for f in frames]
            start = time.perf_counter()
            speech = [model(f, rate) for f in tensors]
            took = time.perf_counter() - start
        return [p.item() for p in speech], took

    return run


def onnx_runner(path, ort, np):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(frames, rate):
        state, context = np.zeros((2, 1, 128), np.float32), np.zeros((1, frames.shape[2] // 8), np.float32)
        number, speech = np.array(rate, np.int64), []
        start = time.perf_counter()
        for f in frames:
            x = np.concatenate([context, f], axis=1)
            p, state = session.run(None, {"input": x, "state": state, "sr": number})
            context = f[:, -context.shape[1]:]
            speech.append(p)
        took = time.perf_counter() - start
        return [float(p[0, 0]) for p in speech], took

    return run


def our_runner(program, weights, wav, folder):
    def run(frames, rate):
        path = pathlib.Path(folder) / "frames"
        done = subprocess.run([program, wav, "--weights", weights, "--frames", path], check=True, capture_output=True, text=True)
        took = float(re.search(r"([0-9.]+) us each", done.stdout)[1])
        return [float(line) for line in path.read_text().split()], took * 1e-6 * len(frames)

    return run


def compare(wav, arguments, modules):
    torch, ort, np = modules
    frames, rate = samples_of(wav, np)
    with tempfile.TemporaryDirectory() as folder:
        runners = {"Ferrite": our_runner(arguments.program, arguments.data / "silero_vad.jit", wav, folder),
                   "torch.jit": torch_runner(arguments.data / "silero_vad.jit", torch)}
        if ort:
            runners["ONNX Runtime"] = onnx_runner(arguments.data / "silero_vad.onnx", ort, np)
        speech, times = {}, {name: [] for name in runners}
        for _ in range(arguments.rounds):
            for name, run in runners.items():
                speech[name], took = run(frames, rate)
                times[name].append(1e6 * took / len(frames))
    sound = True
    for name in runners:
        if name == "Ferrite":
            continue
        apart = max(abs(a - b) for a, b in zip(speech["Ferrite"], speech[name], strict=True))
        sound = sound and apart <= MOST
        print(f"{wav.name}, {rate} Hz, {len(frames)} frames: {apart:.2g} from {name} at most")
    print("us a frame: " + ", ".join(f"{name} {statistics.median(t):.1f}" for name, t in times.items()))
    return sound


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/examples/silero_vad")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "build/example-data/silero")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    sounds = sorted(arguments.data.glob("*.wav"))
    if not sounds or not (arguments.data / "silero_vad.jit").exists():
        print("skipped: no weights and sounds; scripts/example-data fetches them")
        return 0
    try:
        import numpy as np
        import torch
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 0
    try:
        import onnxruntime as ort
        ort.set_default_logger_severity(3)
    except ImportError:
        ort = None
    torch.set_num_threads(1)
    results = [compare(wav, arguments, (torch, ort, np)) for wav in sounds]
    print("the same within 1e-5" if all(results) else "NOT the same within 1e-5")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
