#!/usr/bin/env python3
"""Other runtimes' answers to onnx_nets.py: onnx_peer.py RUNTIME MODEL NAME=SHAPE:TYPE... prints the version of
onnxruntime, openvino or tract, then for every line that it reads the least time of a call, in microseconds, on one
thread. Inputs are random numbers in -1..1; integers are 16000 (a sample rate). Inputs are bound once, and so are
outputs where the runtime allows it.
"""
import sys
import time

import numpy as np


def inputs_of(words):
    rng, inputs = np.random.default_rng(0), {}
    for word in words:
        name, spec = word.rsplit("=", 1)
        shape, kind = spec.split(":")
        size = tuple(int(n) for n in shape.split(",") if n)
        inputs[name] = (rng.uniform(-1, 1, size).astype(np.float32) if kind == "f32" else np.full(size, 16000, np.int64))
    return inputs


def onnxruntime(model, inputs):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
    outputs = session.run(None, inputs)
    for output, value in zip(session.get_outputs(), outputs, strict=True):
        binding.bind_ortvalue_output(output.name, ort.OrtValue.ortvalue_from_numpy(value))
    return f"onnxruntime {ort.__version__}", lambda: session.run_with_iobinding(binding)


def openvino(model, inputs):
    import openvino as ov
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY",
                                                      "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for name, value in inputs.items():
        request.set_tensor(name, ov.Tensor(value, shared_memory=True))
    return f"openvino {ov.__version__.split('-')[0]}", lambda: request.infer()


def tract(model, inputs):
    import importlib.metadata

    import tract
    loaded = tract.onnx().load(model)
    for i in range(loaded.input_count()):
        x = inputs[loaded.input_name(i)]
        loaded.set_input_fact(i, ",".join([*map(str, x.shape), {"float32": "f32", "int64": "i64"}[str(x.dtype)]]))
    order = [inputs[loaded.input_name(i)] for i in range(loaded.input_count())]
    runnable = loaded.into_model().into_runnable()
    return f"tract {importlib.metadata.version('tract')}", lambda: runnable.run(order)


def main(runtime, model, *words):
    try:
        version, call = {"onnxruntime": onnxruntime, "openvino": openvino, "tract": tract}[runtime](model, inputs_of(words))
        for _ in range(5):
            call()
    except Exception as e:  # a runtime that is not installed, or does not accept the model, says so
        print(f"none {type(e).__name__}: {e}".replace("\n", " ")[:200], flush=True)
        return
    print(version, flush=True)
    for _ in sys.stdin:
        least, end = float("inf"), time.perf_counter() + 0.1
        while time.perf_counter() < end:
            begun = time.perf_counter()
            call()
            least = min(least, time.perf_counter() - begun)
        print(1e6 * least, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
