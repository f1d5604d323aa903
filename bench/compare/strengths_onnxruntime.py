#!/usr/bin/env python3
"""ONNX Runtime's answers to strengths.py: the operator GRU; inference only."""
import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

from onnxruntime_peer import Net, bound, session
from peer import Absent
from strengths import LAYERS, lengths, serve


def weights(random, H, name):
    draw = lambda n, *s: numpy_helper.from_array((random.uniform(-1, 1, s) / np.sqrt(H)).astype(np.float32), n + name)
    return [draw("w", 1, 3 * H, H), draw("r", 1, 3 * H, H), draw("b", 1, 6 * H)]


def node(H, name, output, more=()):
    inputs = ["x", "w" + name, "r" + name, "b" + name, *more]
    return helper.make_node("GRU", inputs, [output], hidden_size=H, linear_before_reset=1)


def answer(job, H, T, B, seconds):
    random = np.random.default_rng(1)
    if job in ("lengths", "padded"):
        given = weights(random, H, "")
        if job == "lengths":
            given.append(numpy_helper.from_array(np.asarray(lengths(T, B), np.int32), "n"))
        run = session([node(H, "", "y", ["n"] if job == "lengths" else [])], [T, B, H], given, [T, 1, B, H])
        return timed(bound(run, [T, B, H], [T, 1, B, H]), seconds)
    if job == "many":
        nodes = [node(H, str(k), f"y{k}") for k in range(LAYERS)]
        nodes.append(helper.make_node("Concat", [f"y{k}" for k in range(LAYERS)], ["y"], axis=1))
        run = session(nodes, [T, B, H], [w for k in range(LAYERS) for w in weights(random, H, str(k))], [T, LAYERS, B, H])
        return timed(bound(run, [T, B, H], [T, LAYERS, B, H]), seconds)
    if job == "bits":
        run = session([node(H, "", "y")], [T, None, H], weights(random, H, ""), [T, 1, None, H])
        x = random.uniform(-1, 1, (T, B, H)).astype(np.float32)
        whole = run.run(None, {"x": x})[0]
        return float(max(np.abs(run.run(None, {"x": x[:, b : b + 1].copy()})[0] - whole[:, :, b : b + 1]).max()
                         for b in range(B)))
    raise Absent("inference only, no resets")


if __name__ == "__main__":
    timed = Net()
    serve(f"onnxruntime {onnxruntime.__version__}", answer)
