#!/usr/bin/env python3
"""The GRU, LSTM and RNN operators of ONNX Runtime, forward, one thread, bound inputs and outputs. The time of a
call of an empty graph from Python is subtracted."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from peer import GATES, Absent, microseconds, serve


def session(nodes, shape, weights, out_shape):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, out_shape)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def bound(run, shape, out_shape):
    x = onnxruntime.OrtValue.ortvalue_from_numpy(np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32))
    y = onnxruntime.OrtValue.ortvalue_from_shape_and_type(out_shape, np.float32)
    binding = run.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    return lambda: run.run_with_iobinding(binding)


class Net:
    """Times a call, less the call of an empty graph, in microseconds."""

    def __init__(self):
        empty = session([helper.make_node("Identity", ["x"], ["y"])], [1], [], [1])
        self.empty = bound(empty, [1], [1])

    def __call__(self, call, seconds):
        return max(0.01, microseconds(call, seconds) - microseconds(self.empty, seconds / 5))


def make(job, kind, H, T, B):
    if job != "forward":
        raise Absent("inference only")
    random = np.random.default_rng(1)
    columns = GATES[kind] * H

    def weight(name, *shape):
        return numpy_helper.from_array((random.uniform(-1, 1, shape) / np.sqrt(H)).astype(np.float32), name)

    weights = [weight("w", 1, columns, H), weight("r", 1, columns, H), weight("b", 1, 2 * columns)]
    more = {"linear_before_reset": 1} if kind == "gru" else {}
    node = helper.make_node(kind.upper(), ["x", "w", "r", "b"], ["y"], hidden_size=H, **more)
    return bound(session([node], [T, B, H], weights, [T, 1, B, H]), [T, B, H], [T, 1, B, H])


if __name__ == "__main__":
    import peer

    peer.microseconds = Net()
    serve(f"onnxruntime {onnxruntime.__version__}", make)
