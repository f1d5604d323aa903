#!/usr/bin/env python3
"""Writes tests/data/onnx_recurrent.safetensors: ONNX files of one GRU, LSTM or RNN each, with every attribute and input
that the published node tests leave out, and what ONNX Runtime gives for them.

    python3 tests/data/make_onnx_recurrent_fixtures.py

Case NAME holds NAME/model (bytes of the file), NAME/x/INPUT for each input of the graph and NAME/y/OUTPUT for each output.
Weights are initialisers. Needs onnx, onnxruntime, numpy and safetensors.
"""
import itertools
import pathlib

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

T, B, I, H = 5, 3, 4, 6
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
FUNCTIONS = {"GRU": 2, "LSTM": 3, "RNN": 1}
rng = np.random.default_rng(7)


def draw(*shape):
    return rng.uniform(-0.9, 0.9, shape).astype(np.float32)


def case(op, direction="forward", bias=True, lens=None, states=False, peepholes=False, functions=None, alpha=None,
         beta=None, clip=None, linear=None, forget=None):
    d, g = 2 if direction == "bidirectional" else 1, GATES[op]
    fixed = {"W": draw(d, g * H, I), "R": draw(d, g * H, H)}
    if bias:
        fixed["B"] = draw(d, 2 * g * H)
    if lens is not None:
        fixed["sequence_lens"] = np.array(lens, np.int32)
    if peepholes:
        fixed["P"] = draw(d, 3 * H)
    feed = {"X": draw(T, B, I) * 2}
    if states:
        feed["initial_h"] = draw(d, B, H)
        if op == "LSTM":
            feed["initial_c"] = draw(d, B, H)
    order = ["X", "W", "R", "B", "sequence_lens", "initial_h"] + (["initial_c", "P"] if op == "LSTM" else [])
    names = [n if n in fixed or n in feed else "" for n in order]
    while not names[-1]:
        names.pop()
    attributes = {"hidden_size": H, "direction": direction}
    if functions:
        attributes["activations"] = functions * d
    for name, value in (("activation_alpha", alpha), ("activation_beta", beta), ("clip", clip),
                        ("linear_before_reset", linear), ("input_forget", forget)):
        if value is not None:
            attributes[name] = value * d if isinstance(value, list) else value
    outputs = ["Y", "Y_h"] + (["Y_c"] if op == "LSTM" else [])
    node = helper.make_node(op, names, outputs, "recurrence", **attributes)
    info = lambda n, x: helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape)
    graph = helper.make_graph([node], "g", [info(n, x) for n, x in feed.items()],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
                              [numpy_helper.from_array(x, n) for n, x in fixed.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    data = model.SerializeToString()
    got = ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(outputs, feed)
    held = {"model": np.frombuffer(data, np.uint8)}
    held |= {f"x/{n}": x for n, x in feed.items()} | {f"y/{n}": y for n, y in zip(outputs, got)}
    return held


def main():
    cases = {}
    for op, direction in itertools.product(GATES, ("forward", "reverse", "bidirectional")):
        linear = {"linear": 1} if op == "GRU" else {}
        cases[f"{op}_{direction}"] = case(op, direction, **linear)
        cases[f"{op}_{direction}_states_lengths"] = case(op, direction, states=True, lens=[5, 2, 3], **linear)
        if op == "GRU":
            cases[f"{op}_{direction}_reset_before"] = case(op, direction, states=True, lens=[1, 5, 4], linear=0)
        if op == "LSTM":
            cases[f"{op}_{direction}_peepholes"] = case(op, direction, states=True, peepholes=True, lens=[4, 5, 1])
            cases[f"{op}_{direction}_input_forget"] = case(op, direction, states=True, forget=1)
    for op in GATES:
        n = FUNCTIONS[op]
        cases[f"{op}_no_bias"] = case(op, bias=False, states=True)
        cases[f"{op}_clip"] = case(op, "bidirectional", states=True, clip=0.4)
        cases[f"{op}_hard"] = case(op, functions=["HardSigmoid", "Softsign", "Tanh"][:n], alpha=[0.3], beta=[0.4])
        cases[f"{op}_affine"] = case(op, "bidirectional", functions=["Affine", "LeakyRelu", "Elu"][:n],
                                     alpha=[0.5, 0.2, 0.7][:n], beta=[0.1], states=True)
        cases[f"{op}_scaled"] = case(op, functions=["ScaledTanh", "ThresholdedRelu", "Relu"][:n],
                                     alpha=[0.8, 0.1][:min(n, 2)], beta=[0.6], lens=[2, 5, 5])
    cases["RNN_relu"] = case("RNN", "bidirectional", functions=["Relu"], lens=[5, 1, 2])
    tensors = {f"{name}/{k}": np.ascontiguousarray(v) for name, held in cases.items() for k, v in held.items()}
    save_file(tensors, pathlib.Path(__file__).parent / "onnx_recurrent.safetensors", {"cases": " ".join(cases)})
    print(len(cases), "cases, onnxruntime", ort.__version__)


if __name__ == "__main__":
    main()
