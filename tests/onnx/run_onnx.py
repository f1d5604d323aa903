#!/usr/bin/env python3
"""Checks ONNX models of ours with onnx.checker, shapes of all values included, and evaluates them by ONNX Runtime, or by
tract. Where ONNX Runtime has no kernels (f64 in some operations), the reference evaluator of onnx stands in.

    python3 tests/onnx/run_onnx.py FOLDER onnxruntime|tract
"""
import pathlib
import re
import sys

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "exchange"))
import exchange  # noqa: E402

# Cases in which the runtime's own numbers differ, by a pattern of the program's name, with the reason.
KNOWN = {
    "onnxruntime": {
        r"(amax|amin|argmax|argmin|max_pool_indices) NaN": "reductions and windows pass over NaN",
        r"(rfft|irfft|fft) .*": "the angles of DFT are rounded to f32",
        r"(erf|erfc|gelu|gelu_grad) (f64 .*|special values|tail)": "the reference evaluator's erf is that of f32",
        r"(gated|silu_grad|log_sigmoid_grad|softplus_grad|mish_grad) special values": "sigmoid is that of MLAS",
        r"gelu_tanh_grad (f32 same shapes|special values)": "tanh is that of MLAS: 1 long before it should be",
        r"seed 43": "the sign of a difference that is 0 but for a rounding",
        r"seed 1608": "a variance without much left of it: 9e-6 from f64 there, 2e-6 here",
        r"hardswish special values": "NaN at -infinity, by the definition of HardSwish",
        r"convolution_transposed sample 3 .*": "the reference evaluator's ConvTranspose has groups of its own",
    },
}


def onnxruntime():
    import onnxruntime as ort
    from onnx.reference import ReferenceEvaluator
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as Missing
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4

    def evaluate(path, arguments):
        try:
            session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Missing:
            session = ReferenceEvaluator(str(path))
            return session.run(None, dict(zip(session.input_names, arguments)))
        return session.run(None, dict(zip([i.name for i in session.get_inputs()], arguments)))

    return evaluate


def tract():
    import tract as runtime
    types = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "bool": "bool"}

    def evaluate(path, arguments):
        model = runtime.onnx().load(str(path))
        for i, x in enumerate(arguments):
            model.set_input_fact(i, ",".join([*map(str, x.shape), types[str(x.dtype)]]))
        return [y.to_numpy() for y in model.into_model().into_runnable().run(arguments)]

    return evaluate


def main(folder, runtime):
    run = {"onnxruntime": onnxruntime, "tract": tract}[runtime]()
    known = re.compile("|".join(KNOWN.get(runtime, {"$^": ""})))

    def evaluate(path, arguments, _):
        onnx.checker.check_model(str(path), full_check=True)
        return run(path, arguments)

    return exchange.run(folder, evaluate, read=lambda path: path.with_suffix(".onnx"),
                        skip=lambda name: bool(known.fullmatch(name)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
