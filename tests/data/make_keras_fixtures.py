#!/usr/bin/env python3
"""Writes keras/*.safetensors: weights of a Keras model by scripts/keras_weights.py, and what Keras makes of an input.

    python3 -m pip install keras==3.15.1 h5py safetensors torch
    KERAS_BACKEND=torch python3 tests/data/make_keras_fixtures.py [FOLDER]
"""
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras  # noqa: E402
import numpy as np  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

SCRIPT = pathlib.Path(__file__).parent.parent.parent / "scripts" / "keras_weights.py"


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "keras"
    folder.mkdir(exist_ok=True)
    keras.utils.set_random_seed(1)
    L, random = keras.layers, keras.initializers.RandomNormal(stddev=0.5)
    bias = {"bias_initializer": random}
    net = keras.Sequential([
        L.Input((None, 3)), L.GRU(4, return_sequences=True, name="g", **bias),
        L.Bidirectional(L.LSTM(2, return_sequences=True, **bias), name="both"),
        L.Conv1D(6, 3, padding="causal", dilation_rate=2, groups=2, name="conv", **bias),
        L.BatchNormalization(name="norm", gamma_initializer=random, beta_initializer=random, moving_mean_initializer=random),
        L.Dense(2, activation="tanh", name="out", **bias)])
    x = np.random.default_rng(2).uniform(-1, 1, (2, 12, 3)).astype(np.float32)
    save_file({"x": x, "y": np.ascontiguousarray(net.predict(x, verbose=0))}, folder / "expected.safetensors")
    plain = keras.Sequential([L.Input((None, 3)), L.SimpleRNN(4, name="r", **bias), L.Dense(2, name="out", **bias)])
    save_file({"y": np.ascontiguousarray(plain.predict(x, verbose=0))}, folder / "expected_plain.safetensors")
    options = with_options(L, random)
    z = np.random.default_rng(3).normal(0, 0.3, (2, 12, 3)).astype(np.float32)
    tokens = np.random.default_rng(4).integers(0, 7, (2, 12))
    save_file({"x": z, "tokens": tokens, "y": np.ascontiguousarray(options.predict([z, tokens], verbose=0))},
              folder / "expected_options.safetensors")
    with tempfile.TemporaryDirectory() as temporary:
        net.save(f"{temporary}/net.keras")
        options.save(f"{temporary}/options.keras")
        plain.save_weights(f"{temporary}/plain.weights.h5")
        for source, target in (("net.keras", "net"), ("plain.weights.h5", "plain"), ("options.keras", "options")):
            done = run(f"{temporary}/{source}", folder / f"{target}.safetensors")
            assert done.returncode == 0, done
        assert "out: Dense, activation=tanh" in run(f"{temporary}/net.keras", f"{temporary}/none").stdout
        refusals(L, temporary)


def run(source, target, *options):
    return subprocess.run([sys.executable, SCRIPT, *options, source, target], capture_output=True, text=True)


def with_options(L, random):
    """Every option that is carried, away from its default, over x [B, T, 3] and tokens [B, T]."""
    bias = {"bias_initializer": random}
    norm = {"gamma_initializer": random, "beta_initializer": random}
    x, tokens = keras.Input((None, 3)), keras.Input((None,), dtype="int64")
    inner = keras.Sequential([L.Input((None, 4)), L.Dense(4, name="same_name", use_bias=False),
                              L.LayerNormalization(epsilon=0.3, name="norm", **norm)], name="inner")
    both = L.Bidirectional(L.GRU(2, return_sequences=True, reset_after=False, dropout=0.5, **bias), name="both")
    y = L.concatenate([x, L.Embedding(7, 2, name="table", embeddings_initializer=random)(tokens)])
    y = L.Conv1D(4, 4, padding="same", dilation_rate=3, use_bias=False, name="same")(y)
    y = inner(y)
    y = L.GRU(4, return_sequences=True, use_bias=False, name="g")(y)
    y = L.BatchNormalization(epsilon=0.02, center=False, name="scaled", gamma_initializer=random,
                             moving_mean_initializer=random)(y)
    y = both(y)
    y = L.BatchNormalization(epsilon=0.05, scale=False, name="moved", beta_initializer=random)(y)
    y = L.LSTM(4, return_sequences=True, use_bias=False, name="l")(y)
    y = L.PReLU(shared_axes=[1], name="prelu", alpha_initializer=random)(y)
    y = L.Conv1D(4, 3, padding="causal", strides=2, name="strided", **bias)(y)
    y = L.LayerNormalization(epsilon=0.1, center=False, name="plain", gamma_initializer=random)(y)
    y = L.Conv1D(4, 2, padding="valid", strides=2, name="valid", **bias)(y)
    y = L.Dropout(0.5, name="drop")(y)
    return keras.Model([x, tokens], L.TimeDistributed(L.Dense(2, name="same_name", **bias), name="each")(y))


def refusals(L, temporary):
    """What a file of weights cannot carry is refused by name, and let pass only when asked."""
    def sequences(*layers):
        return keras.Sequential([L.Input((None, 3)), *layers])

    def tokens(*layers):
        return keras.Sequential([L.Input((None,)), *layers])

    def backward(**options):
        return L.Bidirectional(L.GRU(2, return_sequences=True),
                               backward_layer=L.GRU(2, return_sequences=True, go_backwards=True, **options))

    step = {"return_sequences": True}
    cases = {
        "GRU with activation = 'relu'": sequences(L.GRU(2, activation="relu")),
        "GRU with recurrent_activation = 'hard_sigmoid'": sequences(L.GRU(2, recurrent_activation="hard_sigmoid")),
        "LSTM with go_backwards = True": sequences(L.LSTM(2, go_backwards=True)),
        "SimpleRNN with activation = 'linear'": sequences(L.SimpleRNN(2, activation="linear")),
        "LSTM with stateful = True": keras.Sequential([L.Input((4, 3), batch_size=1), L.LSTM(2, stateful=True)]),
        "Bidirectional with merge_mode = 'sum'": sequences(L.Bidirectional(L.GRU(2, **step), merge_mode="sum")),
        "Bidirectional with merge_mode = 'mul'": sequences(L.Bidirectional(L.LSTM(2, **step), merge_mode="mul")),
        "Bidirectional with merge_mode = 'ave'": sequences(L.Bidirectional(L.GRU(2, **step), merge_mode="ave")),
        "Bidirectional with return_sequences = False": sequences(L.Bidirectional(L.GRU(2))),
        "whose layers differ in reset_after": sequences(backward(reset_after=False)),
        "GRU with activation = 'elu'": sequences(backward(activation="elu")),
        "Masking with mask_value = -1.0": sequences(L.Masking(-1.0), L.GRU(2)),
        "Embedding with mask_zero = True": tokens(L.Embedding(5, 2, mask_zero=True), L.GRU(2)),
        "BatchNormalization with axis = 1": keras.Sequential([L.Input((4, 3)), L.BatchNormalization(axis=1)]),
        "LayerNormalization with axis = [1, 2]": keras.Sequential([L.Input((4, 3)), L.LayerNormalization(axis=[1, 2])]),
        "LayerNormalization with axis = 2": keras.Sequential([L.Input((4, 3, 3)), L.LayerNormalization(axis=2)]),
        "LayerNormalization with rms_scaling = True": sequences(L.LayerNormalization(rms_scaling=True)),
        "Conv1D with data_format = 'channels_first'": keras.Sequential([L.Input((3, 4)), L.Conv1D(2, 3, data_format="channels_first")]),
        "Conv1D with padding = 'same' and strides": sequences(L.Conv1D(2, 3, padding="same", strides=2)),
        "PReLU with shared_axes = [2]": keras.Sequential([L.Input((4, 3)), L.PReLU(shared_axes=[2])]),
        "a layer of kind SeparableConv1D": sequences(L.SeparableConv1D(2, 3)),
        "a layer of kind RNN": sequences(L.RNN(L.GRUCell(2))),
        "GRU that is called with a mask": None,
    }
    x, mask = keras.Input((None, 3)), keras.Input((None,), dtype="bool")
    cases["GRU that is called with a mask"] = keras.Model([x, mask], L.GRU(2)(x, mask=mask))
    for what, model in cases.items():
        model.save(f"{temporary}/refused.keras")
        done = run(f"{temporary}/refused.keras", f"{temporary}/none")
        assert done.returncode != 0 and what in done.stderr and "is not supported" in done.stderr, (what, done)
    for what, model, allowed in (("mask", cases["Embedding with mask_zero = True"], "Embedding.mask_zero"),
                                 ("merge", cases["Bidirectional with merge_mode = 'sum'"], "Bidirectional.merge_mode")):
        model.save(f"{temporary}/{what}.keras")
        done = run(f"{temporary}/{what}.keras", f"{temporary}/none", "--allow", allowed)
        assert done.returncode == 0, done
    done = run(f"{temporary}/net.keras", f"{temporary}/none", "--allow", "GRU.stateful")
    assert done.returncode != 0 and "no layer has it" in done.stderr, done
    for what, model in {"'embedding'": tokens(L.Embedding(4, 4)), "'layer_normalization'": sequences(L.LayerNormalization())}.items():
        model.save_weights(f"{temporary}/only.weights.h5")
        done = run(f"{temporary}/only.weights.h5", f"{temporary}/none")
        assert done.returncode != 0 and what in done.stderr and "give the .keras file" in done.stderr, (what, done)


if __name__ == "__main__":
    main()
