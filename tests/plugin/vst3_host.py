"""Plays the VST3 plug-in of examples/plugin in pedalboard: vst3_host.py PLUGIN FOLDER.

FOLDER has an input and what the plug-in makes of it, which clap_host.cpp has written.
"""

import pathlib
import sys

import numpy as np
import pedalboard

plugin, folder = sys.argv[1], pathlib.Path(sys.argv[2])
x = np.fromfile(folder / "in.f32", np.float32)
expected = np.fromfile(folder / "out.f32", np.float32)
assert np.abs(expected).max() > 0.01

amp = pedalboard.load_plugin(plugin)
assert set(amp.parameters) >= {"input_db", "output_db"}, list(amp.parameters)
y = amp.process(x[None], 48000, buffer_size=256)[0]
assert y.shape == x.shape and np.array_equal(y, expected), np.abs(y - expected).max()
amp.output_db = -20
amp.process(np.zeros((1, 48000), np.float32), 48000)
quiet = amp.process(x[None], 48000, reset=False)[0]
assert np.abs(quiet - 0.1 * expected).max() < 2e-4, np.abs(quiet - 0.1 * expected).max()
loaded = pedalboard.load_plugin(plugin)
loaded.raw_state = amp.raw_state
assert loaded.output_db == amp.output_db
print("VST3 in pedalboard", pedalboard.__version__ + ": the bits of the library")
