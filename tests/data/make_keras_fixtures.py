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
    with tempfile.TemporaryDirectory() as temporary:
        net.save(f"{temporary}/net.keras")
        plain.save_weights(f"{temporary}/plain.weights.h5")
        for source, target in (("net.keras", "net"), ("plain.weights.h5", "plain")):
            subprocess.run([sys.executable, SCRIPT, f"{temporary}/{source}", folder / f"{target}.safetensors"], check=True)
        for name, layer in {"activation": L.GRU(2, activation="relu"), "backwards": L.LSTM(2, go_backwards=True),
                            "kind": L.SeparableConv1D(2, 3)}.items():
            keras.Sequential([L.Input((None, 3)), layer]).save(f"{temporary}/{name}.keras")
            done = subprocess.run([sys.executable, SCRIPT, f"{temporary}/{name}.keras", f"{temporary}/none"], capture_output=True, text=True)
            assert done.returncode != 0 and "is not supported" in done.stderr, (name, done)


if __name__ == "__main__":
    main()
