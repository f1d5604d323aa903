#!/usr/bin/env python3
"""Checks that TensorBoard reads an event file of ours, written by tests/train/tensorboard_test.cpp.

    python3 tests/data/check_events_written.py FOLDER

FOLDER holds the event file and expected.npz, what was written.
"""
import io
import pathlib
import sys

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util


def same(seen, wanted, what):
    assert np.array_equal(np.asarray(seen), np.asarray(wanted)), f"{what}: {seen} {wanted}"


def check_histogram(events, weights):
    (event,) = events.Histograms("weights")
    h = event.histogram_value
    same([event.step, h.num, h.min, h.max], [7, weights.size, weights.min(), weights.max()], "weights")
    assert abs(h.sum - weights.sum()) < 1e-9 and abs(h.sum_squares - (weights**2).sum()) < 1e-9, "sums"
    below = [(weights < limit).sum() for limit in h.bucket_limit]
    same(np.cumsum(h.bucket), below, "buckets")


def check_image(events, channels, wanted):
    (event,) = events.Images(f"image{channels}")
    same([event.step, event.height, event.width], [channels, *wanted.shape[1:]], "image")
    seen = np.array(Image.open(io.BytesIO(event.encoded_image_string)))
    rounded = np.floor(255 * np.clip(wanted, 0, 1) + np.float32(0.5)).astype("u1")
    same(seen.reshape(*wanted.shape[1:], -1).transpose(2, 0, 1), rounded, f"image{channels}")


def main():
    folder = pathlib.Path(sys.argv[1])
    expected = np.load(folder / "expected.npz")
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0, "images": 0, "tensors": 0})
    events.Reload()
    losses = events.Scalars("loss")
    same([e.step for e in losses], range(0, 200, 10), "steps")
    same([e.value for e in losses], expected["losses"], "losses")
    same([e.wall_time for e in losses], 1.7e9 + 2 + np.arange(20), "times")
    assert np.isnan(events.Scalars("nan")[0].value)
    check_histogram(events, expected["weights"].astype("f8"))
    (note,) = events.Tensors("note")
    assert tensor_util.make_ndarray(note.tensor_proto).item().decode() == "**bold** ü", note
    assert events.SummaryMetadata("note").plugin_data.plugin_name == "text"
    for channels in (1, 2, 3, 4):
        check_image(events, channels, expected[f"image{channels}"])
    print("TensorBoard reads every value")
    return 0


if __name__ == "__main__":
    sys.exit(main())
