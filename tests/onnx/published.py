#!/usr/bin/env python3
"""Writes the node tests that the installed `onnx` package generates as folders, as that package's own test runner reads
them: FOLDER/NAME/model.onnx, input_K.pb and output_K.pb (TensorProto), and tolerances.txt (rtol atol).

    python3 tests/onnx/published.py FOLDER [TESTDATA]

TESTDATA is the folder `data` of Debian's libonnx-testdata (/usr/share/libonnx-testdata/data): its cases of older
releases, those converted from PyTorch at opset 6 among them, are written beside, as FAMILY_NAME.

Cases with strings, sequences, optionals, maps and sparse tensors as inputs or outputs are left out and counted.
"""
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def written(value, name):
    if isinstance(value, onnx.TensorProto):
        return value
    if not isinstance(value, (np.ndarray, np.generic)) or np.asarray(value).dtype.kind in "OUS":
        return None
    return numpy_helper.from_array(np.asarray(value), name)


def older(folder, data):
    for family in ("node", "pytorch-converted", "pytorch-operator", "simple"):
        for case in sorted((data / family).iterdir()):
            parts = sorted((case / "test_data_set_0").glob("*.pb"))
            if parts and not any(sequence(case / "model.onnx")):
                to = folder / f"{family}_{case.name}"
                to.mkdir(parents=True, exist_ok=True)
                shutil.copy(case / "model.onnx", to)
                for part in parts:
                    shutil.copy(part, to)


def sequence(path):
    """Whether each input and output of a model is something else than a tensor."""
    graph = onnx.load(path).graph
    return [p.type.WhichOneof("value") != "tensor_type" for p in [*graph.input, *graph.output]]


def main(folder):
    left_out = 0
    for case in collect_testcases(None):
        model = case.model
        graph = model.graph
        sets = [([written(v, p.name) for v, p in zip(inputs, graph.input)],
                 [written(v, p.name) for v, p in zip(outputs, graph.output)]) for inputs, outputs in case.data_sets]
        if not sets or any(v is None for inputs, outputs in sets for v in inputs + outputs):
            left_out += 1
            continue
        inputs, outputs = sets[0]
        to = folder / case.name
        to.mkdir(parents=True, exist_ok=True)
        (to / "model.onnx").write_bytes(model.SerializeToString())
        for kind, values in (("input", inputs), ("output", outputs)):
            for i, value in enumerate(values):
                (to / f"{kind}_{i}.pb").write_bytes(value.SerializeToString())
        (to / "tolerances.txt").write_text(f"{case.rtol} {case.atol}\n")
    print(f"onnx {onnx.__version__}: {len(list(folder.iterdir()))} cases, {left_out} left out: strings, sequences, optionals")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
    if len(sys.argv) > 2 and not pathlib.Path(sys.argv[2]).is_dir():
        print(f"skipped: cases of older releases, {sys.argv[2]} is not there")
    elif len(sys.argv) > 2:
        older(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
