#!/usr/bin/env python3
"""Runs DeepFilterNet 3 and Silero VAD over a minute of noisy speech in Ferrite and in ONNX Runtime, and asserts of every
output that the largest difference is at most max(1e-5, twice ONNX Runtime's own gap between f32 and f64).

    python3 examples/onnx/compare_onnx_runtime.py [--program build/release/examples/run_recorded]

States are carried from call to call, by each side from its own results. The numbers in f64 are those of the onnx
package's reference evaluator on the model with every f32 made f64, convolutions by PyTorch: ONNX Runtime has no kernels
of f64 for convolutions and recurrences. Needs what scripts/example-data fetches, a built example `run_recorded`, and
numpy, scipy, onnx, onnxruntime and torch; prints the table of docs/onnx.md. Five minutes, 5 GB of memory.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from scipy.io import wavfile
from scipy.signal import lfilter, resample_poly

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "build" / "example-data"
HOP, BANDS, FILTERED, KEPT = 480, 32, 96, 0.99  # constants of DeepFilterNet 3, as in examples/onnx/denoise.cpp
F32, F64 = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


def noisy_speech(rate):
    """Returns a minute of speech with noise added."""
    own, speech = wavfile.read(DATA / "silero" / "test.wav")
    speech = resample_poly(speech[:60 * own].astype(np.float64) / 32768, rate, own)
    return (speech + 0.02 * np.random.default_rng(0).standard_normal(len(speech))).astype(np.float32)


# ---- the model in f64

def widened(tensor):
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def widen_graph(graph):
    for tensor in graph.initializer:
        if tensor.data_type == F32:
            tensor.CopyFrom(widened(tensor))
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == F32:
            value.type.tensor_type.elem_type = F64
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                widen_graph(a.g)
            elif a.type == onnx.AttributeProto.TENSOR and a.t.data_type == F32:
                a.t.CopyFrom(widened(a.t))
            elif node.op_type == "Cast" and a.name == "to" and a.i == F32:
                a.i = F64
            elif node.op_type == "Constant" and a.name in ("value_float", "value_floats"):
                raise ValueError("a Constant of numbers, not of a tensor")
    return graph


def convolution(functions, x, w, b, strides, pads, dilations, group, **more):
    half = len(pads or []) // 2
    x, w, b = (None if v is None else torch.from_numpy(np.array(v)) for v in (x, w, b))
    if pads and pads[:half] != pads[half:] and not more:
        x, pads = torch.nn.functional.pad(x, [p for a in reversed(range(half)) for p in (pads[a], pads[half + a])]), None
    assert not pads or pads[:half] == pads[half:], "pads of a transposed convolution that differ"
    y = functions[x.ndim - 3](x, w, b, stride=strides or 1, padding=pads[:half] if pads else 0, dilation=dilations or 1,
                              groups=group or 1, **more)
    return (y.numpy(),)


class Conv(OpRun):
    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        assert auto_pad in (None, "NOTSET")
        f = torch.nn.functional
        return convolution([f.conv1d, f.conv2d], x, w, b, strides, pads, dilations, group)


class ConvTranspose(OpRun):
    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, output_padding=None,
             output_shape=None, pads=None, strides=None):
        assert auto_pad in (None, "NOTSET") and not output_shape
        f = torch.nn.functional
        return convolution([f.conv_transpose1d, f.conv_transpose2d], x, w, b, strides, pads, dilations, group,
                           output_padding=output_padding or 0)


def in_f64(path):
    model = onnx.load(path)
    widen_graph(model.graph)
    evaluator = ReferenceEvaluator(model, new_ops=[Conv, ConvTranspose])
    outputs = [o.name for o in model.graph.output]

    def run(inputs):
        results = evaluator.run(None, {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in inputs.items()})
        for name, value in zip(outputs, results, strict=True):
            assert value.dtype == np.float64, f"{path.name}: {name} is computed in {value.dtype}"
        return dict(zip(outputs, results))

    return run


def in_f32(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    return lambda inputs: dict(zip(outputs, session.run(None, inputs)))


# ---- runs over all calls; inputs have the calls as their first axis, states their first value, scalars are constants

def recorded(run, inputs, states):
    now = {name: inputs[name] for name in states}
    calls = len(next(v for k, v in inputs.items() if k not in states and v.ndim))
    results = []
    for call in range(calls):
        given = {k: now[k] if k in states else v[call] if v.ndim else v for k, v in inputs.items()}
        results.append(run(given))
        now = {name: results[-1][of] for name, of in states.items()}
    return {name: np.stack([r[name] for r in results]) for name in results[0]}


def by_ferrite(program, path, inputs, states):
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / name for name in ("in.npz", "out.npz")]
        np.savez(files[0], **inputs)
        subprocess.run([program, path, *files, *(f"{k}={v}" for k, v in states.items())], check=True)
        return dict(np.load(files[1]))


# ---- what DeepFilterNet 3 hears

def band_widths():
    top, bin_width = 9.265 * np.log1p(24000 / (24.7 * 9.265)), 24000 / HOP
    widths, begun, borrowed = [], 0, 0
    for b in range(1, BANDS + 1):
        last = round(24.7 * 9.265 * np.expm1(b * top / BANDS / 9.265) / bin_width)
        width = last - begun - borrowed
        borrowed = max(2 - width, 0)
        widths.append(max(width, 2))
        begun = last
    return [*widths[:-1], HOP + 1 - sum(widths[:-1])]


def running_mean(x, begin, end):
    first = np.linspace(begin, end, x.shape[1])
    return lfilter([1 - KEPT], [1, -KEPT], x, axis=0, zi=KEPT * first[None])[0]


def features(samples):
    """Returns feat_erb [1, 1, S, 32] and feat_spec [1, 2, S, 96] of a sound of 48 kHz."""
    frames = np.pad(samples[:len(samples) // HOP * HOP].astype(np.float64), (HOP, 0)).reshape(-1, HOP)
    inner = np.sin(0.5 * np.pi * (np.arange(2 * HOP) + 0.5) / HOP)
    window = np.sin(0.5 * np.pi * inner**2)
    spectrum = np.fft.rfft(np.concatenate([frames[:-1], frames[1:]], 1) * window) / (2 * HOP)
    widths = band_widths()
    power = np.add.reduceat(np.abs(spectrum)**2, np.cumsum([0, *widths[:-1]]), axis=1) / widths
    level = 10 * np.log10(power + 1e-10)
    low = spectrum[:, :FILTERED]
    low = low / np.sqrt(running_mean(np.abs(low), 1e-3, 1e-4))
    erb = (level - running_mean(level, -60, -90)) / 40
    return erb[None, None].astype(np.float32), np.stack([low.real, low.imag])[None].astype(np.float32)


# ---- what is compared

def denoiser(sides):
    """Compares the three graphs on ONNX Runtime's own inputs, then the whole chain, each side on its own results."""
    erb, spectrum = features(noisy_speech(48000))
    folder = DATA / "denoise"
    first = {"feat_erb": erb[None], "feat_spec": spectrum[None]}
    parts = [("enc.onnx", None), ("erb_dec.onnx", ("emb", "e3", "e2", "e1", "e0")), ("df_dec.onnx", ("emb", "c0"))]
    encoded = None
    for name, takes in parts:
        given = {k: encoded[0][k] for k in takes} if takes else first
        results = [side(folder / name, given, {}) for side in sides]
        yield f"DeepFilterNet 3, `{name}`", erb.shape[2], results
        encoded = encoded or results
    for name, takes in parts[1:]:
        yield (f"the same, `{name}` on each side's own encoder", erb.shape[2],
               [side(folder / name, {k: e[k].astype(np.float32) for k in takes}, {}) for side, e in zip(sides, encoded)])


def detectors(sides):
    for path in sorted((DATA / "silero").glob("*.onnx")):
        model = onnx.load(path)
        names = [i.name for i in model.graph.input]
        both = "16k" not in path.name and "sr" in names
        for rate in (16000, 8000) if both else (16000,):
            step = rate * 32 // 1000
            samples = noisy_speech(rate)
            samples = np.pad(samples[:len(samples) // step * step], (step // 8, 0))
            frames = np.stack([samples[at:at + step + step // 8] for at in range(0, len(samples) - step // 8, step)])
            if "h" in names:  # all frames in one call
                inputs, states = {"input": frames[None], **{k: np.zeros((1, 1, 1, 128), np.float32) for k in "hc"}}, {}
            else:
                inputs, states = {"input": frames[:, None], "state": np.zeros((2, 1, 128), np.float32)}, {"state": "stateN"}
                if "sr" in names:
                    inputs["sr"] = np.array(rate)
            yield f"Silero VAD, `{path.name}`, {rate // 1000} kHz", len(frames), [s(path, inputs, states) for s in sides]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "release" / "examples" / "run_recorded")
    program = parser.parse_args().program
    onnxruntime.set_default_logger_severity(3)
    sides = [lambda path, inputs, states: recorded(in_f32(path), inputs, states),
             lambda path, inputs, states: recorded(in_f64(path), inputs, states),
             lambda path, inputs, states: by_ferrite(program, path, inputs, states)]
    sound = True
    print(f"| net, over 60 s | steps | output | Ferrite - ONNX Runtime {onnxruntime.__version__} | ONNX Runtime, f32 - f64 "
          "| Ferrite - f64 |\n|---|---|---|---|---|---|")
    for compare in (denoiser, detectors):
        for what, steps, (theirs, exact, ours) in compare(sides):
            for name in theirs:
                apart, gap, own = (float(np.abs(a[name].astype(np.float64) - b[name]).max())
                                   for a, b in ((ours, theirs), (theirs, exact), (ours, exact)))
                within = apart <= max(1e-5, 2 * gap)  # NaN is not
                sound = sound and within
                print(f"| {what} | {steps} | {name} | {apart:.2g}{'' if within else ' TOO LARGE'} | {gap:.2g} | {own:.2g} |",
                      flush=True)
    print("within max(1e-5, twice the gap)" if sound else "NOT within max(1e-5, twice the gap)")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
