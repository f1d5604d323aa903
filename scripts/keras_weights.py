#!/usr/bin/env python3
"""Writes the weights of a Keras model as safetensors, for io::from_keras. Needs h5py and numpy, not Keras.

    python3 scripts/keras_weights.py MODEL.keras|MODEL.weights.h5 WEIGHTS.safetensors

Names are "<layer>.<variable>", with the layer's name in the model, those of layers in layers joined by dots. Variables
of dense and recurrent layers and embeddings stay in Keras's layout: kernel, recurrent_kernel, bias, embeddings. Others
are written as PyTorch's: of Conv1D weight [out, in / groups, k] and bias, of BatchNormalization weight, bias,
running_mean and running_var, of LayerNormalization weight and bias, of PReLU weight. A .keras file says how its layers
compute; what the library computes otherwise is refused: other activations of recurrent layers, go_backwards, a
normalisation of another axis, a layer of another kind that has weights. A .weights.h5 says nothing, so that it is taken
on trust, and only layers whose kind its shapes tell are read: dense and recurrent ones.
"""
import io
import json
import pathlib
import struct
import sys
import zipfile

import h5py
import numpy as np

RECURRENT = {"GRU", "LSTM", "SimpleRNN"}
DTYPES = {"float32": "F32", "float64": "F64", "float16": "F16"}


def refuse(what):
    raise SystemExit(f"keras_weights: {what}")


def layers_of(config, found):
    """The configurations of all layers, by name; backward layers of a Bidirectional take that of its layer."""
    inner = config.get("config", {})
    if isinstance(inner, dict):
        if "name" in inner:
            found.setdefault(inner["name"], (config["class_name"], inner))
        for value in inner.values():
            for entry in value if isinstance(value, list) else [value]:
                if isinstance(entry, dict) and "class_name" in entry:
                    layers_of(entry, found)
    return found


def check(path, kind, config):
    """Refuses what would change numbers."""
    expected = {}
    if kind in RECURRENT:
        expected = {"activation": "tanh", "go_backwards": False, "use_bias": True}
        if kind != "SimpleRNN":
            expected["recurrent_activation"] = "sigmoid"
    elif kind in ("BatchNormalization", "LayerNormalization"):
        expected = {"axis": -1, "center": True, "scale": True}
    elif kind == "Conv1D":
        expected = {"data_format": "channels_last", "use_bias": True}
    for key, value in expected.items():
        has = config.get(key, value)
        has = has[0] if isinstance(has, list) and len(has) == 1 else has
        axis_is_last = key == "axis" and isinstance(has, int) and has >= 0 and config.get("_rank") == has + 1
        if has != value and not axis_is_last:
            refuse(f"{path}: {kind} with {key} = {has!r} is not supported")


def variables(path, kind, values):
    """The tensors of a layer by their names."""
    def take(*names):
        if len(values) != len(names):
            refuse(f"{path}: {kind} has {len(values)} variables, not {len(names)}")
        return dict(zip(names, values))

    if kind in RECURRENT:
        return take("kernel", "recurrent_kernel", "bias")
    if kind == "Dense":
        return take(*("kernel", "bias")[:len(values)])
    if kind == "Embedding":
        return take("embeddings")
    if kind == "Conv1D":
        v = take("weight", "bias")
        return v | {"weight": v["weight"].transpose(2, 1, 0)}
    if kind == "BatchNormalization":
        return take("weight", "bias", "running_mean", "running_var")
    if kind == "LayerNormalization":
        return take("weight", "bias")
    if kind == "PReLU":
        v = take("weight")
        return {"weight": v["weight"].reshape(-1)}
    refuse(f"{path}: a layer of kind {kind} is not supported")


def kind_by_shapes(path, values):
    shapes = [v.shape for v in values]
    if len(shapes) == 3 and len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][1] == shapes[1][1]:
        gates = shapes[1][1] / shapes[1][0]
        kinds = {1: "SimpleRNN", 3: "GRU", 4: "LSTM"}
        if gates in kinds:
            return kinds[gates]
    if 1 <= len(shapes) <= 2 and len(shapes[0]) == 2:
        return "Dense"
    refuse(f"{path}: variables of shapes {shapes} do not tell the kind of the layer; give the .keras file")


def read(path):
    """The HDF5 file and the configurations of layers, none of a file of weights."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read("config.json"))
            return h5py.File(io.BytesIO(archive.read("model.weights.h5")), "r"), layers_of(config, {})
    return h5py.File(path, "r"), None


def collect(file, configs):
    tensors = {}

    def visit(group, names):
        values = group["vars"] if isinstance(group.get("vars"), h5py.Group) else {}
        own = values.attrs["name"] if len(getattr(values, "attrs", {})) and "name" in values.attrs else None
        arrays = [values[str(i)][()] for i in range(len(values))]
        key = group.name.rsplit("/", 1)[-1]
        if own is not None and key not in ("cell", "forward_layer", "backward_layer"):
            names = names + [str(own)]
        elif key in ("forward_layer", "backward_layer"):
            names = names + [key]
        if arrays:
            path = ".".join(names)
            name = names[-2] if names[-1] in ("forward_layer", "backward_layer") else names[-1]
            if configs is None:
                kind, config = kind_by_shapes(path, arrays), {}
            else:
                if name not in configs:
                    refuse(f"{path}: the configuration does not have this layer")
                kind, config = configs[name]
                if kind == "Bidirectional":
                    kind, config = config["layer"]["class_name"], config["layer"]["config"]
            check(path, kind, config | {"_rank": 3})
            for variable, array in variables(path, kind, arrays).items():
                full = f"{path}.{variable}"
                if full in tensors:
                    refuse(f"two variables have one name: {full}")
                tensors[full] = np.ascontiguousarray(array)
        for child in group:
            if child != "vars" and isinstance(group[child], h5py.Group):
                visit(group[child], names)

    layers = file["layers"] if "layers" in file else file
    for child in layers:
        if isinstance(layers[child], h5py.Group) and child != "vars":
            visit(layers[child], [])
    if not tensors:
        refuse("there are no weights")
    return tensors


def write(path, tensors):
    header, at, data = {}, 0, b""
    for name, array in sorted(tensors.items()):
        if array.dtype.name not in DTYPES:
            refuse(f"{name}: elements of {array.dtype} are not supported")
        raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
        at, data = at + len(raw), data + raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    file, configs = read(sys.argv[1])
    with file:
        write(sys.argv[2], collect(file, configs))


if __name__ == "__main__":
    main()
