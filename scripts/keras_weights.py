#!/usr/bin/env python3
"""Writes the weights of a Keras model as safetensors, for io::from_keras. Needs h5py and numpy, not Keras.

    python3 scripts/keras_weights.py [--allow KIND.OPTION]... MODEL.keras|MODEL.weights.h5 WEIGHTS.safetensors

Names are "<layer>.<variable>", with the layer's name in the model; names of nested layers are joined by dots. Variables
of dense and recurrent layers and embeddings keep Keras's layout: kernel, recurrent_kernel, bias, embeddings. Others are
written in PyTorch's: weight [out, in / groups, k] and bias of Conv1D; weight, bias, running_mean and running_var of
BatchNormalization; weight and bias of LayerNormalization; weight of PReLU. Numbers that decide what a layer computes
are written as well, as f64: epsilon of normalisations, reset_after of a GRU, and stride, dilation, padding_left and
padding_right of Conv1D; io::load compares them with those of the net.

A .keras file says how its layers compute. Options that the weights cannot express are refused, by layer and option:
other activations of recurrent layers, go_backwards, stateful, a Bidirectional that merges otherwise than by concat or
returns its last step alone, masks (Masking, Embedding with mask_zero), a normalisation of another axis, options that
this script does not know, and other kinds of layers with weights. `--allow Embedding.mask_zero` accepts an option; the
net then has to implement it. The printed list of layers says what else the net needs: activations, layers without
weights. Options that only affect training are not carried over: dropout, momentum, initialisers, regularizers.

A .weights.h5 file says nothing about options, so it is taken on trust, and only dense and recurrent layers are read.
"""
import io
import json
import pathlib
import re
import struct
import sys
import zipfile

import h5py
import numpy as np

RECURRENT = {"GRU", "LSTM", "SimpleRNN"}
DTYPES = {"float32": "F32", "float64": "F64", "float16": "F16"}

# Options that only affect training or speed, options that shapes determine, and options that the printed list shows.
OF_TRAINING = {"dropout", "recurrent_dropout", "seed", "unroll", "momentum", "synchronized", "renorm_momentum",
               "renorm_clipping", "unit_forget_bias", "zero_output_for_mask", "return_state", "implementation",
               "time_major", "autocast"}
OF_SHAPES = {"name", "trainable", "dtype", "units", "filters", "kernel_size", "groups", "input_dim", "output_dim",
             "use_bias", "center", "scale", "input_length", "batch_input_shape", "batch_shape"}
SHOWN = ("activation", "return_sequences", "padding", "strides", "dilation_rate", "groups", "epsilon", "reset_after")
# By kind: the options that are checked, each with the only value allowed, or None where any value can be carried over.
OPTIONS = {
    "GRU": {"activation": "tanh", "recurrent_activation": "sigmoid", "go_backwards": False, "stateful": False,
            "return_sequences": None, "reset_after": None},
    "LSTM": {"activation": "tanh", "recurrent_activation": "sigmoid", "go_backwards": False, "stateful": False,
             "return_sequences": None},
    "SimpleRNN": {"activation": "tanh", "go_backwards": False, "stateful": False, "return_sequences": None},
    "Dense": {"activation": None},
    "Embedding": {"mask_zero": False},
    "Conv1D": {"data_format": "channels_last", "strides": None, "padding": None, "dilation_rate": None,
               "activation": None},
    "BatchNormalization": {"axis": -1, "epsilon": None, "renorm": False},
    "LayerNormalization": {"axis": -1, "epsilon": None, "rms_scaling": False},
    "PReLU": {"shared_axes": None},
    "Bidirectional": {"merge_mode": "concat", "layer": None, "backward_layer": None},
    "TimeDistributed": {"layer": None},
}
REFUSED_KINDS = {"Masking": "mask_value"}


def refuse(what):
    raise SystemExit(f"keras_weights: {what}")


class Node:
    """A layer in the configuration: its kind and options, which are unknown without a configuration."""

    def __init__(self, config=None):
        config = config or {}
        self.kind = config.get("class_name")
        self.options = config.get("config") if isinstance(config.get("config"), dict) else {}
        shape = config.get("build_config", {}).get("input_shape") if isinstance(config.get("build_config"), dict) else None
        self.rank = len(shape) if isinstance(shape, list) and not any(isinstance(s, list) for s in shape) else None
        nodes = config.get("inbound_nodes")
        self.masked = isinstance(nodes, list) and any(
            isinstance(n, dict) and n.get("kwargs", {}).get("mask") is not None for n in nodes)

    def inner(self, key):
        value = self.options.get(key)
        return Node(value) if isinstance(value, dict) else None

    def layers(self):
        found = self.options.get("layers", [])
        return [Node(c) for c in found if isinstance(c, dict)] if isinstance(found, list) else []

    def name(self):
        return self.options.get("name")


def single(value):
    return value[0] if isinstance(value, list) and len(value) == 1 else value


class Reader:
    def __init__(self, allowed):
        self.allowed, self.used, self.tensors, self.lines = allowed, set(), {}, []

    def unless_allowed(self, kind, option, what):
        self.used.add(f"{kind}.{option}")
        if f"{kind}.{option}" not in self.allowed:
            refuse(f"{what} is not supported (--allow {kind}.{option} if the net does it)")

    def check(self, path, node):
        """Refuses options that would change numbers."""
        kind, options = node.kind, node.options
        if kind in REFUSED_KINDS:
            key = REFUSED_KINDS[kind]
            self.unless_allowed(kind, key, f"{path}: {kind} with {key} = {options.get(key)!r}")
        if kind not in OPTIONS:
            return
        if node.masked and kind in RECURRENT | {"Bidirectional"}:
            self.unless_allowed(kind, "mask", f"{path}: {kind} that is called with a mask")
        for key, value in options.items():
            if key in OF_TRAINING | OF_SHAPES or key.endswith(("_initializer", "_regularizer", "_constraint")):
                continue
            if key not in OPTIONS[kind]:
                if value not in (None, False):
                    self.unless_allowed(kind, key, f"{path}: {kind} with {key} = {value!r}")
                continue
            wanted, has = OPTIONS[kind][key], single(value)
            last = key == "axis" and node.rank is not None and has == node.rank - 1
            if wanted is not None and has != wanted and not last:
                self.unless_allowed(kind, key, f"{path}: {kind} with {key} = {has!r}")
        if kind == "Conv1D" and options.get("padding") == "same" and single(options.get("strides", 1)) != 1:
            self.unless_allowed(kind, "padding", f"{path}: Conv1D with padding = 'same' and strides")
        if kind == "Bidirectional":
            self.check_bidirectional(path, node)

    def check_bidirectional(self, path, node):
        forward, backward = node.inner("layer"), node.inner("backward_layer")
        if forward is None or forward.kind not in RECURRENT:
            refuse(f"{path}: a Bidirectional of {forward.kind if forward else None} is not supported")
        if not forward.options.get("return_sequences"):
            self.unless_allowed("Bidirectional", "return_sequences", f"{path}: Bidirectional with return_sequences = False")
        if backward is None:
            return
        if not backward.options.get("go_backwards"):
            refuse(f"{path}: Bidirectional whose backward layer has go_backwards = False is not supported")
        if backward.kind != forward.kind:
            refuse(f"{path}: Bidirectional of {forward.kind} and {backward.kind} is not supported")
        for key in ("reset_after", "use_bias", "units"):
            if backward.options.get(key) != forward.options.get(key):
                refuse(f"{path}: Bidirectional whose layers differ in {key} is not supported")

    def put(self, path, variables):
        for variable, array in variables.items():
            full = f"{path}.{variable}"
            if full in self.tensors:
                refuse(f"two variables have one name: {full}")
            self.tensors[full] = np.asarray(array, order="C")

    def walk(self, group, node, names, key, known):
        """Reads a layer's group in the HDF5 file, and the groups in it."""
        own = group.get("vars")
        own = own if isinstance(own, h5py.Group) else {}
        path = ".".join(names)
        arrays = [own[str(i)][()] for i in range(len(own))]
        if node.kind in RECURRENT or (not known and isinstance(group.get("cell"), h5py.Group)):
            cell = group["cell"]["vars"] if "cell" in group and "vars" in group["cell"] else {}
            arrays = [cell[str(i)][()] for i in range(len(cell))]
        if arrays:
            if not known:
                node.kind = kind_of(path, key, arrays)
            self.put(path, variables(path, node, arrays))
        for child in group:
            if child in ("vars", "cell", "seed_generator", "_seed_generators") or not isinstance(group[child], h5py.Group):
                if child == "cell" and node.kind not in RECURRENT:
                    refuse(f"{path}: a layer of kind {node.kind} is not supported")
                continue
            if child == "layers":
                self.walk_layers(group[child], node, names, known)
            elif child in ("forward_layer", "backward_layer", "layer"):
                inner = node.inner("layer" if child == "forward_layer" else child) if known else Node()
                if inner is None and child == "backward_layer":
                    inner = node.inner("layer")
                if inner is None:
                    refuse(f"{path}: the configuration does not have its {child}")
                if known and child == "backward_layer":
                    inner.options = inner.options | {"go_backwards": False}  # checked with the Bidirectional
                name = names + [child] if child != "layer" else names + [str(inner.name() or child)]
                if known:
                    self.check(".".join(name), inner)
                self.walk(group[child], inner, name, child, known)
            elif holds_arrays(group[child]):
                refuse(f"{path}: a layer of kind {node.kind or key} is not supported")

    def walk_layers(self, group, node, names, known):
        by_name = {n.name(): n for n in node.layers()}
        for key in group:
            child = group[key]
            if not isinstance(child, h5py.Group) or key == "vars":
                continue
            name = child["vars"].attrs.get("name", key) if isinstance(child.get("vars"), h5py.Group) else key
            path = names + [str(name)]
            if known and str(name) not in by_name:
                if holds_arrays(child):
                    refuse(f"{'.'.join(path)}: the configuration does not have this layer")
                continue
            self.walk(child, by_name[str(name)] if known else Node(), path, key, known)

    def check_all(self, node, names):
        """Checks every layer of the configuration, including those without weights."""
        for layer in node.layers():
            path = names + [str(layer.name())]
            if layer.layers():
                self.check_all(layer, path)
                continue
            self.check(".".join(path), layer)
            shown = layer.inner("layer") or layer
            what = [f"{k}={single(shown.options[k])}" for k in SHOWN if k in shown.options]
            kinds = layer.kind if shown is layer else f"{layer.kind}({shown.kind})"
            self.lines.append(f"  {'.'.join(path)}: {kinds}" + (f", {', '.join(what)}" if what else ""))


def holds_arrays(group):
    found = []
    group.visititems(lambda name, value: found.append(name) if isinstance(value, h5py.Dataset) and "seed_generator" not in name else None)
    return bool(found)


def variables(path, node, values):
    """Returns the tensors of a layer by their names."""
    kind, options = node.kind, node.options

    def take(*names):
        if len(values) != len(names):
            refuse(f"{path}: {kind} has {len(values)} variables, not {len(names)}")
        return dict(zip(names, values))

    def with_ones(norm, *more):
        """Returns the variables of a normalisation, with ones for a missing scale and zeros for a missing center."""
        given = take(*[n for n, key in (("weight", "scale"), ("bias", "center")) if options.get(key, True)], *more)
        like = values[0] if values else None
        if like is None:
            return {}
        return {"weight": np.ones_like(like), "bias": np.zeros_like(like)} | given | norm

    if kind in RECURRENT:
        found = take("kernel", "recurrent_kernel", *(["bias"] if options.get("use_bias", True) and len(values) != 2 else []))
        if kind == "GRU" and "reset_after" in options:
            found["reset_after"] = np.float64(options["reset_after"])
        return found
    if kind == "Dense":
        return take(*("kernel", "bias")[:2 if options.get("use_bias", len(values) == 2) else 1])
    if kind == "Embedding":
        return take("embeddings")
    if kind == "Conv1D":
        v = take(*("weight", "bias")[:2 if options.get("use_bias", True) else 1])
        dilation, stride = single(options.get("dilation_rate", 1)), single(options.get("strides", 1))
        reach = dilation * (v["weight"].shape[0] - 1)
        left = {"causal": reach, "same": reach // 2, "valid": 0}.get(options.get("padding", "valid"))
        if left is None:
            refuse(f"{path}: Conv1D with padding = {options['padding']!r} is not supported")
        right = reach - left if options.get("padding") == "same" else 0
        numbers = {"stride": stride, "dilation": dilation, "padding_left": left, "padding_right": right}
        return v | {"weight": v["weight"].transpose(2, 1, 0)} | {k: np.float64(n) for k, n in numbers.items()}
    if kind == "BatchNormalization":
        return with_ones({"epsilon": np.float64(options.get("epsilon", 1e-3))}, "running_mean", "running_var")
    if kind == "LayerNormalization":
        return with_ones({"epsilon": np.float64(options.get("epsilon", 1e-3))})
    if kind == "PReLU":
        v = take("weight")["weight"]
        if v.size not in (1, v.shape[-1]):
            refuse(f"{path}: PReLU with shared_axes = {options.get('shared_axes')!r} is not supported: its weights "
                   f"have the shape {v.shape}, one for each channel is read")
        return {"weight": v.reshape(-1)}
    refuse(f"{path}: a layer of kind {kind} is not supported")


def kind_of(path, key, values):
    """Returns the kind of a layer in a file of weights, by its group and by its shapes."""
    word = re.sub(r"_\d+$", "", key)
    shapes = [v.shape for v in values]
    found = None
    if 2 <= len(shapes) <= 3 and len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][1] == shapes[1][1]:
        found = {1: "SimpleRNN", 3: "GRU", 4: "LSTM"}.get(shapes[1][1] / shapes[1][0])
    elif len(shapes[0]) == 2 and (len(shapes) == 1 or (len(shapes) == 2 and shapes[1] == shapes[0][1:])):
        found = "Dense"
    said = {"simple_rnn": "SimpleRNN", "gru": "GRU", "lstm": "LSTM", "dense": "Dense"}.get(word)
    if word in ("forward_layer", "backward_layer", "layer"):
        said = found
    if found is None or said != found:
        refuse(f"{path}: variables of shapes {shapes} of {word!r} do not tell how the layer computes; give the .keras file")
    return found


def read(path):
    """Returns the HDF5 file and the model's configuration, None for a file of weights."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read("config.json"))
            return h5py.File(io.BytesIO(archive.read("model.weights.h5")), "r"), config
    return h5py.File(path, "r"), None


def write(path, tensors):
    header, at, data = {}, 0, []
    for name, array in sorted(tensors.items()):
        if array.dtype.name not in DTYPES:
            refuse(f"{name}: elements of {array.dtype} are not supported")
        raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def main():
    given, allowed = sys.argv[1:], set()
    while len(given) > 2 and given[0] == "--allow":
        allowed.add(given[1])
        given = given[2:]
    if len(given) != 2:
        raise SystemExit(__doc__)
    file, config = read(given[0])
    reader = Reader(allowed)
    with file:
        if config is not None:
            model = Node(config)
            if not model.layers():
                refuse(f"a model of kind {model.kind} is not supported: its configuration lists no layers")
            reader.check_all(model, [])
            reader.walk(file, model, [], "", True)
        else:
            root = file if "layers" in file else refuse("there are no layers: this is no .weights.h5 of Keras 3")
            reader.walk(root, Node(), [], "", False)
        if not reader.tensors:
            refuse("there are no weights")
        if unknown := allowed - reader.used:
            refuse(f"--allow {min(unknown)}: no layer has it")
        write(given[1], reader.tensors)
    if reader.lines:
        print("The net needs these layers:", *reader.lines, sep="\n")


if __name__ == "__main__":
    main()
