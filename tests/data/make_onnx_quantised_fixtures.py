#!/usr/bin/env python3
"""Writes tests/data/onnx_quantised.safetensors: ONNX files of one operation of com.microsoft each, as
onnxruntime.quantization and the optimiser of ONNX Runtime write them, and what ONNX Runtime gives for them.

    python3 tests/data/make_onnx_quantised_fixtures.py

Case NAME holds NAME/model (bytes of the file), NAME/x/INPUT and NAME/y/OUTPUT; bytes are widened to int32. Products of
uint8 and int8 stay below 2^15, beyond which ONNX Runtime saturates on processors without VNNI. One thread: with several
ONNX Runtime quantises the state of an LSTM for parts of the batch. Needs onnx, onnxruntime, numpy and safetensors.
"""
import pathlib

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

rng = np.random.default_rng(11)
f = np.float32


def u8(*shape):
    return rng.integers(0, 256, shape).astype(np.uint8)


def i8(*shape, most=64):
    return rng.integers(-most, most, shape).astype(np.int8)


def draw(*shape):
    return rng.uniform(-0.9, 0.9, shape).astype(f)


def case(op, inputs, feeds, outputs, **attributes):
    """`inputs` in order: the name of a feed, "" or an array, which becomes an initialiser."""
    fixed, names = {}, []
    for i, x in enumerate(inputs):
        names.append(x if isinstance(x, str) else f"i{i}")
        if not isinstance(x, str):
            fixed[names[-1]] = np.asarray(x)
    info = lambda n, x: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    node = helper.make_node(op, names, list(outputs), "q", domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", [info(n, x) for n, x in feeds.items()],
                              [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
                              [numpy_helper.from_array(x, n) for n, x in fixed.items()])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    got = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(list(outputs), feeds)
    wide = lambda x: x.astype(np.int32) if x.dtype.kind in "iu" else x
    return {"model": np.frombuffer(data, np.uint8)} | {f"x/{n}": wide(x) for n, x in feeds.items()} | {
        f"y/{n}": wide(y) for n, y in zip(outputs, got)}


def cases():
    byte, signed, real = TensorProto.UINT8, TensorProto.INT8, TensorProto.FLOAT
    a, b = u8(40, 50), u8(40, 50)
    yield "add", case("QLinearAdd", ["a", f(.013), np.uint8(120), "b", f(.021), np.uint8(7), f(.0312), np.uint8(99)],
                      {"a": a, "b": b}, {"y": byte})
    yield "add_signed", case("QLinearAdd", ["a", f(.013), np.int8(-3), "b", f(.021), np.int8(7), f(.03), np.int8(9)],
                             {"a": i8(9, 50, most=128), "b": i8(1, 50, most=128)}, {"y": signed})
    yield "mul", case("QLinearMul", ["a", f(.013), np.uint8(120), "b", f(.021), np.uint8(7), f(.04), np.uint8(99)],
                      {"a": a, "b": b}, {"y": byte})
    yield "concat", case("QLinearConcat", [f(.02), np.uint8(4), "a", f(.013), np.uint8(7), "b", f(.02), np.uint8(4)],
                         {"a": a, "b": b}, {"y": byte}, axis=1)
    every = np.arange(256).astype(np.uint8)
    yield "sigmoid", case("QLinearSigmoid", ["a", f(.05), np.uint8(128), f(1 / 256), np.uint8(0)], {"a": every},
                          {"y": byte})
    yield "leaky_relu", case("QLinearLeakyRelu", ["a", f(.05), np.uint8(128), f(.06), np.uint8(70)], {"a": every},
                             {"y": byte}, alpha=0.3)
    bias = rng.integers(-900, 900, 12).astype(np.int32)
    yield "gemm", case("QGemm", ["a", f(.02), np.uint8(120), i8(12, 50), f(.01), np.int8(3), bias, f(.2), np.uint8(90)],
                       {"a": a}, {"y": byte}, transB=1)
    columns = [rng.uniform(.01, .02, 12).astype(f), np.zeros(12, np.int8)]
    yield "gemm_columns", case("QGemm", ["a", f(.02), np.uint8(120), i8(50, 12), *columns, bias, f(.2), np.uint8(90)],
                               {"a": a}, {"y": byte})
    yield "gemm_real", case("QGemm", ["a", f(.02), np.uint8(120), u8(50, 12), f(.01), np.uint8(100)], {"a": a},
                            {"y": real}, alpha=0.5)
    yield "to_float", case("MatMulIntegerToFloat",
                           ["a", u8(50, 6), f(.02), np.array([.01] * 3 + [.02] * 3, f), np.uint8(3),
                            np.array([120] * 6, np.uint8), draw(6)], {"a": u8(2, 5, 50)}, {"y": real})
    yield "dynamic", case("DynamicQuantizeMatMul", ["a", u8(50, 6), f(.02), np.uint8(120), draw(6)],
                          {"a": draw(3, 50)}, {"y": real})
    yield "dynamic_columns", case("DynamicQuantizeMatMul", ["a", i8(50, 6), rng.uniform(.01, .02, 6).astype(f)],
                                  {"a": np.abs(draw(3, 50)) + 1}, {"y": real})
    for direction, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        h, n, feeds = 6, 4, {"a": draw(5, 3, 4)}
        states = ["", ""]
        if direction != "reverse":
            feeds |= {"h0": draw(d, 3, h), "c0": draw(d, 3, h)}
            states = ["h0", "c0"]
        scales = lambda: [rng.uniform(.005, .01, d).astype(f), np.zeros(d, np.int8)]
        w, r = scales(), scales()
        yield f"lstm_{direction}", case(
            "DynamicQuantizeLSTM", ["a", i8(d, n, 4 * h), i8(d, h, 4 * h), draw(d, 8 * h), "", *states, "", *w, *r],
            feeds, {"y": real, "h": real, "c": real}, hidden_size=h, direction=direction)


def main():
    tensors, names = {}, []
    for name, held in cases():
        names.append(name)
        tensors |= {f"{name}/{k}": np.ascontiguousarray(v) for k, v in held.items()}
    save_file(tensors, pathlib.Path(__file__).parent / "onnx_quantised.safetensors", {"cases": " ".join(names)})
    print(len(names), "cases, onnxruntime", ort.__version__)


if __name__ == "__main__":
    main()
