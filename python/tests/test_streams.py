"""Streams, generation, profiles and guards."""
import copy
import json
import logging
import threading

import ferrite
import numpy as np
import pytest
from ferrite import nn


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def net(seed=0, features=3):
    return ferrite.sequence(features).gru(8).linear(2).build(seed)


def whole(model, x):
    return model(ferrite.tensor(x)).numpy()


@pytest.mark.parametrize("batch", [1, 3])
def test_steps_have_the_bits_of_the_whole_sequence(batch):
    model, x = net(), draw(batch, 7, 3)
    expected = whole(model, x)
    stream = model.stream(batch)
    for t in range(7):
        y = stream.step(x[:, t])
        assert isinstance(y, np.ndarray) and y.dtype == np.float32 and y.shape == (batch, 2)
        np.testing.assert_array_equal(y, expected[:, t])
    stream.reset()
    out = np.empty((batch, 2), np.float32)
    for t in range(7):
        assert stream.step(np.ascontiguousarray(x[:, t]), out=out) is out
        np.testing.assert_array_equal(out, expected[:, t])
    stream.reset()
    y = stream.steps(np.ascontiguousarray(x.transpose(1, 0, 2)))
    np.testing.assert_array_equal(y, expected.transpose(1, 0, 2))


def test_forms_of_the_input():
    model, x = net(), draw(1, 4, 3)
    expected = whole(model, x)[0]
    stream = ferrite.Stream(model)
    np.testing.assert_array_equal(stream.step(x[0, 0]), expected[0])
    np.testing.assert_array_equal(stream(x[0, 1].tolist()), expected[1])
    np.testing.assert_array_equal(stream.step(ferrite.tensor(x[:, 2])), expected[2:3])
    np.testing.assert_array_equal(stream.step(x[0, ::-1][0][None][:, :]), expected[3:4])
    stream.reset()
    np.testing.assert_array_equal(stream.steps(x[0]), expected)
    assert (stream.batch, stream.width, stream.dtype, stream.stride, stream.delay) == (1, 2, ferrite.f32, 1, 0)


def test_wrong_arrays():
    stream = net().stream(2)
    with pytest.raises(ferrite.ShapeError):
        stream.step(np.zeros((1, 3), np.float32))
    with pytest.raises(ferrite.ShapeError):
        stream.step(np.zeros((2, 4), np.float32))
    with pytest.raises(ferrite.ShapeError):
        stream.step(np.zeros(3, np.float32))
    with pytest.raises(ferrite.DtypeError):
        stream.step(np.zeros((2, 3)))
    with pytest.raises(ferrite.DtypeError):
        stream.step(np.zeros((2, 3), np.int64))
    x = np.zeros((2, 3), np.float32)
    for out in (np.empty((2, 2)), np.empty((2, 4), np.float32)[:, ::2], [0.0] * 4):
        with pytest.raises(ferrite.ValueError):
            stream.step(x, out=out)
    with pytest.raises(ferrite.ShapeError):
        stream.step(x, out=np.empty((2, 3), np.float32))
    readonly = np.zeros((2, 2), np.float32)
    readonly.flags.writeable = False
    with pytest.raises(ferrite.ValueError):
        stream.step(x, out=readonly)
    with pytest.raises(ferrite.ValueError):
        net().stream(0)


def test_states():
    model, x = net(), draw(1, 6, 3)
    expected = whole(model, x)[0]
    stream = model.stream()
    stream.steps(x[0, :3])
    saved, twin, third = stream.save(), stream.clone(), copy.deepcopy(stream)
    np.testing.assert_array_equal(stream.steps(x[0, 3:]), expected[3:])
    np.testing.assert_array_equal(twin.steps(x[0, 3:]), expected[3:])
    np.testing.assert_array_equal(third.steps(x[0, 3:]), expected[3:])
    stream.restore(saved)
    np.testing.assert_array_equal(stream.steps(x[0, 3:]), expected[3:])
    assert [s.shape for s in saved] == [(1, 1, 8)]


def test_one_row_is_reset():
    model, x = net(), draw(2, 4, 3)
    stream = model.stream(2)
    stream.step(x[:, 0])
    stream.reset(1)
    y = stream.step(x[:, 1])
    np.testing.assert_array_equal(y[0], whole(model, x)[0, 1])
    np.testing.assert_array_equal(y[1], whole(model, x[:, 1:2])[1, 0])
    with pytest.raises(ferrite.ValueError):
        stream.reset(2)


def test_refresh_takes_the_present_weights():
    model = net()
    stream = model.stream()
    x = draw(1, 3)
    before = stream.step(x)
    ferrite.load(model, ferrite.state_dict(net(1)))
    stream.reset()
    np.testing.assert_array_equal(stream.step(x), before)
    stream.reset()
    stream.refresh()
    np.testing.assert_array_equal(stream.step(x), whole(net(1), x[:, None])[:, 0])


def test_a_stream_outlives_its_model():
    model, x = net(), draw(1, 1, 3)
    expected = whole(model, x)[:, 0]
    stream = model.stream()
    del model
    np.testing.assert_array_equal(stream.step(x[:, 0]), expected)
    stream.refresh()
    np.testing.assert_array_equal(stream.report().layers[0].kind, "gru")
    assert "gru" in stream.report().text and stream.on_tensors == 0


def test_strides_give_some_outputs():
    model = ferrite.sequence(1).causal_conv1d(4, 5, stride=4).gru(3).build(0)
    x = draw(1, 16, 1)
    expected = whole(model, x)[0]
    stream = model.stream()
    assert stream.stride == 4
    with pytest.raises(ferrite.PaceError):
        stream.step(x[0, 0])
    ys = [stream.feed(x[0, t]) for t in range(16)]
    given = [y for y in ys if y is not None]
    assert len(given) == len(expected) == 4
    np.testing.assert_array_equal(np.stack(given), expected)
    stream.reset()
    out = np.full(3, 7, np.float32)
    for t in range(16):
        before = out.copy()
        assert (stream.feed(x[0, t], out=out) is out) == (ys[t] is not None) == stream.gave()
        np.testing.assert_array_equal(out, before if ys[t] is None else ys[t])


def test_finish_gives_the_outputs_that_look_ahead():
    class Same(nn.Module):
        def forward(self, x):
            padded = ferrite.pad(ferrite.transpose(x), (0, 0, 1), (0, 0, 1))
            weight = ferrite.full((x.shape[-1], 1, 3), 0.3)
            return ferrite.transpose(ferrite.conv1d(padded, weight, groups=x.shape[-1]))

    model = Same()
    x = draw(1, 5, 2)
    expected = whole(model, x)[0]
    stream = model.stream()
    ys = [stream.feed(x[0, t]) for t in range(5)]
    while (y := stream.finish()) is not None:
        ys.append(y)
    np.testing.assert_array_equal(np.stack([y.ravel() for y in ys if y is not None]), expected)


def test_tokens_and_generation():
    model = ferrite.tokens(5).embedding(4).gru(6).linear(5).build(0)
    tokens = np.array([[1, 4, 0, 2]])
    expected = whole(model, tokens)
    stream = model.stream()
    np.testing.assert_array_equal(stream.step(np.array([1])), expected[:, 0])
    np.testing.assert_array_equal(stream.step(4), expected[0, 1])
    np.testing.assert_array_equal(stream.steps(tokens[0, 2:]), expected[0, 2:])
    with pytest.raises(ferrite.DtypeError):
        stream.step(np.zeros(1, np.float32))
    stream.reset()
    drawn = ferrite.generate(stream, [1], 6, temperature=0)
    stream.reset()
    token, greedy = 1, []
    for _ in range(6):
        token = int(stream.step(token).argmax())
        greedy.append(token)
    assert drawn.tolist() == greedy


def test_a_layer_written_in_python():
    class Half(nn.Module):
        def forward(self, x):
            return x * 0.5

    stream = Half().stream()
    np.testing.assert_array_equal(stream.step(np.array([[2, 4]], np.float32)), [[1, 2]])
    np.testing.assert_array_equal(stream.step(np.array([6, 8], np.float32)), [3, 4])
    assert stream.width == 2


def test_f64():
    model = ferrite.sequence(3).lstm(4).build(0, dtype="float64")
    x = draw(1, 3, 3).astype(np.float64)
    stream = model.stream()
    y = stream.steps(x[0])
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, whole(model, x)[0])
    with pytest.raises(ferrite.DtypeError):
        stream.step(x[0, 0].astype(np.float32))
    np.testing.assert_array_equal(stream.step([0.0, 0.0, 0.0]).dtype, np.float64)


def test_a_model_that_looks_at_everything_cannot_be_streamed():
    with pytest.raises(ferrite.ValueError, match="gru.*not causal"):
        ferrite.sequence(3).gru(4, bidirectional=True).build(0).stream()


def test_profile(tmp_path):
    x = ferrite.tensor(draw(32, 32))
    with ferrite.Profile() as profile:
        for _ in range(5):
            x @ x
        with pytest.raises(ferrite.ProfileError):
            ferrite.Profile().__enter__()
    x @ x
    row = profile.rows("kernel")[0]
    assert (row.kernel, row.calls) == ("matmul", 5) and 0 < row.self_ms <= row.total_ms <= profile.duration_ms
    assert "matmul" in profile.table(most=1) and profile.threads == 1 and profile.dropped == 0
    profile.chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert sum(e.get("name") == "matmul" for e in events) == 5
    with pytest.raises(ferrite.ProfileError):
        ferrite.Profile().table()


def test_denormals_are_kept_unless_flushed():
    tiny = ferrite.tensor(np.array([1e-40], np.float32))
    assert (tiny * 1.0).item() != 0
    with ferrite.FlushDenormals():
        assert (tiny * 1.0).item() == 0
        with ferrite.FlushDenormals():
            pass
        assert (tiny * 1.0).item() == 0
    assert (tiny * 1.0).item() != 0


def test_anomalies_are_found():
    x = ferrite.tensor(np.array([-1.0], np.float32))
    assert np.isnan(ferrite.sqrt(x).item())
    with ferrite.detect_anomaly():
        with pytest.raises(ferrite.AnomalyError, match="sqrt gave nan|sqrt.*nan"):
            ferrite.sqrt(x)
        with pytest.raises(ferrite.AnomalyError, match="inf"):
            x / 0.0
    with ferrite.detect_anomaly(infinities=False):
        assert np.isinf((x / 0.0).item())


def test_no_grad_is_a_guard_and_a_decorator():
    @ferrite.no_grad()
    def frozen(x):
        return x * 3

    x = ferrite.tensor(np.array([2.0], np.float32))
    with ferrite.Tape() as tape:
        w = tape.watch(x)
        with ferrite.no_grad():
            y = w * 5
        z = ferrite.sum(w * y + frozen(w))
        assert tape.grad(z, w).item() == 10


def test_the_log_reaches_logging(caplog, tmp_path):
    caplog.set_level(logging.DEBUG, "ferrite")
    ferrite.log_to("ferrite", "debug")
    try:
        model = nn.Linear(2, 2)
        ferrite.save(model, tmp_path / "a.safetensors")
        ferrite.load(model, tmp_path / "a.safetensors")
        ferrite.compile(lambda x: x + 1)(np.zeros(3, np.float32))
    finally:
        ferrite.log_to(None)
    lines = [r.getMessage() for r in caplog.records]
    assert lines
    count = len(lines)
    ferrite.load(model, tmp_path / "a.safetensors")
    assert len(caplog.records) == count
    with pytest.raises(ferrite.ValueError, match="loud"):
        ferrite.log_to("ferrite", "loud")


def test_the_lock_is_free_while_a_stream_steps():
    stream = ferrite.sequence(64).lstm(256, num_layers=2).build(0).stream()
    x = draw(20000, 64)
    counted = []
    done = threading.Event()

    def count():
        while not done.is_set():
            counted.append(1)
            done.wait(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    stream.steps(x[:2000])
    done.set()
    thread.join()
    assert len(counted) > 10
