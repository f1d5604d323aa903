"""Data sets, loaders, training, callbacks, metrics and checkpoints."""
import io
import json
import os
import signal
import threading
import time

import ferrite
import numpy as np
import pytest
from ferrite import nn, optim, train


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def line(n=64):
    """Returns x and y = x w + 1 with a known w."""
    x = draw(n, 3)
    return x, x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 1


def values(net):
    return {name: value.numpy() for name, value in ferrite.state_dict(net).items()}


def same(a, b):
    return all(np.array_equal(a[name], b[name]) for name in a)


# ---- data --------------------------------------------------------------------------------------------


def test_rows_and_sequences():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    data = train.Dataset(x, np.array([7, 8, 9]))
    assert len(data) == 3
    a, b = data[1]
    assert a.tolist() == [2, 3] and b.item() == 8
    assert data[-1][1].item() == 9 and [e[1].item() for e in data] == [7, 8, 9]
    with pytest.raises(IndexError):
        data[3]
    assert [e[1].item() for e in data[::-2]] == [9, 7]
    waves = train.Dataset([np.ones((2, 1), np.float32), np.ones((4, 1), np.float32)], [0, 1])
    batch = waves.all()
    assert batch.x.shape == (2, 4, 1) and batch.lengths[0].tolist() == [2, 4] and batch.lengths[1] is None
    assert batch.x.numpy()[0].ravel().tolist() == [1, 1, 0, 0]
    padded = train.Dataset(train.sequences([[1, 2], [3]], padding=-1)).all()
    assert padded.x.tolist() == [[1, 2], [3, -1]]
    joined = train.Dataset(train.sequences(np.arange(3), np.array([1, 2]))).all()
    assert joined.x.tolist() == [[0, 0], [1, 2]]
    with pytest.raises(ferrite.ShapeError):
        train.Dataset(x, np.zeros(2))
    with pytest.raises(ferrite.ValueError):
        train.DataLoader(3)


def test_functions_make_and_change_examples():
    data = train.Dataset.from_function(4, lambda i: (np.float32(i), np.arange(i + 1)), fields=[None, -1])
    batch = data.batch([0, 2])
    assert batch[0].tolist() == [0, 2] and batch[1].tolist() == [[0, -1, -1], [0, 1, 2]]
    doubled = data.map(lambda x, y: (x * 2, y))
    assert doubled[3][0].item() == 6
    kept = train.Dataset.collect((np.float32(i), np.int64(i)) for i in range(3))
    assert len(kept) == 3 and kept[2][1].item() == 2
    assert len(kept + kept) == 6
    noisy = train.Dataset(np.zeros((8, 2), np.float32)).augment(
        lambda x, key: x + ferrite.normal(x.shape, deviation=0.1, **key("noise")))
    loaders = [train.DataLoader(noisy, 4, seed=3, threads=t) for t in (0, 2)]
    a, b = ([batch[0].numpy() for batch in loader.epoch(1)] for loader in loaders)
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, [batch[0].numpy() for batch in loaders[0].epoch(2)])
    with pytest.raises(ZeroDivisionError):
        list(train.DataLoader(data.map(lambda *e: 1 / 0), threads=2))


def test_loader():
    data = train.Dataset(np.arange(10))
    loader = train.DataLoader(data, batch_size=4, seed=1)
    assert len(loader) == 3
    first, second = [[b.x.tolist() for b in loader] for _ in range(2)]
    assert first != second and sorted(sum(first, [])) == sorted(sum(second, [])) == list(range(10))
    assert first == [b.x.tolist() for b in loader.epoch(0)]
    assert first[1:] == [b.x.tolist() for b in loader.epoch(0, 1)]
    assert loader.batch(0, 2).x.tolist() == first[2] == loader.examples(0, 2)
    plain = train.DataLoader((np.arange(10), np.arange(10) * 2), 4, shuffle=False, drop_last=True)
    assert [(x.tolist(), y.tolist()) for x, y in plain] == [
        ([0, 1, 2, 3], [0, 2, 4, 6]), ([4, 5, 6, 7], [8, 10, 12, 14])]
    threaded = train.DataLoader(data, batch_size=4, seed=1, threads=2)
    iterator = iter(threaded)
    next(iterator)
    del iterator, threaded  # while its threads work
    buckets = train.DataLoader(train.Dataset([np.zeros(n) for n in (1, 2, 5, 6)]), 2, bucket_lengths=[2, 6])
    assert sorted(b.x.shape for b in buckets) == [(2, 2), (2, 6)]
    weights = train.balanced_weights(np.array([0, 0, 0, 1]))
    np.testing.assert_allclose(weights.numpy(), [1 / 3, 1 / 3, 1 / 3, 1])
    drawn = train.DataLoader(train.Dataset(np.arange(4)), 100, weights=np.array([0, 0, 0, 1.0]), samples=20)
    assert next(iter(drawn)).x.tolist() == [3] * 20


def test_splits_and_windows():
    data = train.Dataset(np.arange(10))
    a, b = train.split(data, [0.7, 0.3], seed=1)
    assert len(a) == 7 and sorted(e[0].item() for e in a + b) == list(range(10))
    first, last = train.split(data, [0.5, 0.5], shuffle=False)
    assert [e[0].item() for e in last] == [5, 6, 7, 8, 9]
    folds = train.k_folds(data, 5)
    assert [len(f.validation) for f in folds] == [2] * 5 and len(folds[0].training) == 8
    assert [len(f.training) for f in train.time_folds(data, 4)] == [2, 4, 6, 8]
    series = np.arange(10, dtype=np.float32)
    windows = train.windows(series, length=3, horizon=2, step=2)
    assert [(x.tolist(), y.tolist()) for x, y in windows][1] == ([2, 3, 4], [5, 6])
    pieces = train.side_by_side(np.arange(9), 2, 2)
    assert pieces.batch([0, 1]).x.tolist() == [[0, 1], [4, 5]]
    assert [p.shape for p in train.split_series(series, [0.6, 0.4])] == [(6,), (4,)]
    letters = train.Characters(".abc")
    assert letters.tokens("cab").tolist() == [3, 1, 2] and letters.text(np.array([3, 1])) == "ca" and len(letters) == 4
    x, y = train.next_tokens([letters.tokens("ab")], 0)[0]
    assert (x.tolist(), y.tolist()) == ([0, 1, 2], [1, 2, 0])


# ---- training ----------------------------------------------------------------------------------------


def test_fit_has_the_bits_of_a_loop_by_hand():
    x, y = line()
    loader = train.DataLoader((x, y), 16, seed=2)
    net, other = ferrite.features(3).linear(1).build(0), ferrite.features(3).linear(1).build(0)
    history = ferrite.fit(net, loader, loss="mse", optimizer=optim.Adam(net.parameters(), lr=0.05), epochs=20)
    adam = optim.Adam(other.parameters(), lr=0.05)
    losses = []
    for epoch in range(20):
        total = 0.0
        for bx, by in loader.epoch(epoch):
            both = ferrite.value_and_grad(lambda: nn.mse_loss(other(bx), by), other.parameters())
            loss, grads = both()
            adam.step(grads)
            total += loss.item() * 16
        losses.append(total / 64)
    assert same(values(net), values(other))
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-6)
    assert history["loss"][-1] < 0.1 * history["loss"][0]


def test_losses_by_function_and_name_agree():
    x, y = line()
    nets = [ferrite.features(3).linear(1).build(0) for _ in range(4)]
    losses = ["mse", nn.mse_loss, lambda p, t: ferrite.mean(ferrite.square(p - t)),
              lambda p, batch: nn.mse_loss(p, batch.y)]
    results = []
    for net, loss in zip(nets, losses):
        h = ferrite.fit(net, (x, y), loss, optim.SGD(net.parameters(), lr=0.1), epochs=3, batch_size=16)
        results.append(h["loss"])
    np.testing.assert_allclose(results, [results[0]] * 4, rtol=1e-5)
    assert same(values(nets[0]), values(nets[1]))
    with pytest.raises(ferrite.ValueError, match="msee.*mse"):
        ferrite.fit(nets[0], (x, y), "msee", optim.SGD(nets[0].parameters(), lr=0.1))
    with pytest.raises(ferrite.ValueError, match="not a tensor"):
        ferrite.fit(nets[0], (x, y), lambda p, t: 3, optim.SGD(nets[0].parameters(), lr=0.1))


def test_losses_as_sums_with_counts():
    x, y = line(60)
    mask = (np.arange(60) % 3 == 0).astype(np.float32)[:, None]

    def masked(prediction, batch):
        return ferrite.sum(ferrite.square(prediction - batch.y) * batch[2]), ferrite.sum(batch[2])

    net = ferrite.features(3).linear(1).build(0)
    loader = train.DataLoader((x, y, mask), 25, shuffle=False)
    got = ferrite.evaluate(net, loader, train.LossOfSums(masked))["loss"]
    p = ferrite.predict(net, x).numpy()
    np.testing.assert_allclose(got, (((p - y) ** 2) * mask).sum() / mask.sum(), rtol=1e-5)
    sgd = optim.SGD(net.parameters(), lr=0.1)
    h = ferrite.fit(net, loader, train.LossOfSums(masked), sgd, accumulate=3)
    other = ferrite.features(3).linear(1).build(0)
    whole = train.DataLoader((x, y, mask), 60, shuffle=False)
    g = ferrite.fit(other, whole, optimizer=optim.SGD(other.parameters(), lr=0.1),
                    forward=lambda b: (masked(other(b.x), b)[0], None, masked(other(b.x), b)[1]))
    np.testing.assert_allclose(h["loss"], g["loss"], rtol=1e-5)
    for name, value in values(net).items():
        np.testing.assert_allclose(value, values(other)[name], rtol=1e-4)


def test_history_is_a_mapping():
    x, y = line()
    net = ferrite.features(3).linear(1).build(0)
    sgd = optim.SGD(net.parameters(), lr=0.1)
    h = ferrite.fit(net, (x, y), "mse", sgd, epochs=2, validation=(x, y), metrics=["mae"])
    assert list(h) == h.keys() == ["loss", "mae", "val_loss", "val_mae"] and len(h) == 4 and "loss" in h
    assert isinstance(h["loss"], np.ndarray) and h["loss"].shape == (2,) and h.epochs == 2 and h.stopped == ""
    assert dict(h.items()).keys() == h.to_dict().keys()
    assert h.at(1)["loss"] == h["loss"][1]
    with pytest.raises(KeyError):
        h["other"]
    at_end = ferrite.evaluate(net, (x, y), "mse", metrics=["mae", "r2"])
    assert at_end["loss"] == h["val_loss"][1] and at_end["mae"] == h["val_mae"][1]
    p = ferrite.predict(net, x).numpy()
    np.testing.assert_allclose(at_end["mae"], np.abs(p - y).mean(), rtol=1e-5)
    np.testing.assert_allclose(at_end["r2"], 1 - ((p - y) ** 2).sum() / ((y - y.mean()) ** 2).sum(), rtol=1e-5)


def test_sequences_of_different_lengths():
    rng = np.random.default_rng(0)
    waves = [rng.standard_normal((n, 2)).astype(np.float32) for n in (3, 5, 4, 7)]
    labels = np.array([0, 1, 0, 1])
    net = ferrite.sequence(2).gru(4).last_step().linear(2).build(0)
    adam = optim.Adam(net.parameters(), lr=0.05)
    h = ferrite.fit(net, (waves, labels), "cross_entropy", adam, epochs=60, metrics=["accuracy"])
    assert h["accuracy"][-1] == 1
    alone = [net(w[None]).numpy() for w in waves]
    together = ferrite.predict(net, train.Dataset(waves, labels)).numpy()
    np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-6)


def test_a_net_written_in_python():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(3, 8)
            self.out = nn.Linear(8, 1)

        def forward(self, x):
            return self.out(ferrite.tanh(self.hidden(x)))

    x, y = line()
    net = Net()
    h = ferrite.fit(net, (x, y), "mse", optim.Adam(net.parameters(), lr=0.02), epochs=60)
    assert h["loss"][-1] < 0.1 * h["loss"][0]


def test_a_forward_pass_and_a_step_of_ones_own():
    x, y = line()
    nets = [ferrite.features(3).linear(1).build(0) for _ in range(3)]

    def forward_of(net):
        def forward(batch):
            p = net(batch.x)
            return nn.mse_loss(p, batch.y), p
        return forward

    sgd = [optim.SGD(net.parameters(), lr=0.1) for net in nets]
    a = ferrite.fit(nets[0], (x, y), "mse", sgd[0], epochs=2, metrics=["mae"])
    b = ferrite.fit(nets[1], (x, y), optimizer=sgd[1], epochs=2, forward=forward_of(nets[1]), metrics=["mae"])

    def step(batch):
        loss, grads = ferrite.value_and_grad(lambda: nn.mse_loss(nets[2](batch.x), batch.y), nets[2].parameters())()
        sgd[2].step(grads)
        return loss

    c = ferrite.fit(nets[2], (x, y), epochs=2, step=step, optimizer=[sgd[2]], forward=forward_of(nets[2]),
                    validation=(x, y))
    np.testing.assert_array_equal(a["loss"], b["loss"])
    np.testing.assert_array_equal(a["mae"], b["mae"])
    np.testing.assert_allclose(a["loss"], c["loss"], rtol=1e-6)
    assert same(values(nets[0]), values(nets[1])) and same(values(nets[0]), values(nets[2]))
    assert ferrite.evaluate(nets[0], (x, y), forward=forward_of(nets[0]))["loss"] == c["val_loss"][-1]


def test_metrics():
    target, scores = np.array([0, 1, 1, 0]), np.array([[2, 1], [0, 1], [1, 0], [3, 0]], np.float32)

    def value(metric):
        metric.add(scores, target)
        return metric.value()

    assert value(train.accuracy()) == value(train.metric("accuracy")) == 0.75
    assert value(train.top_k_accuracy(2)) == 1
    np.testing.assert_allclose(value(train.recall("binary")), 0.5)
    np.testing.assert_allclose(value(train.precision("binary")), 1)
    np.testing.assert_allclose(value(train.f1("macro")), (0.8 + 2 / 3) / 2)
    assert train.levenshtein([1, 2, 3], [2, 3, 4]) == 2
    confusion = train.Confusion(2)
    confusion.add(scores.argmax(1), target)
    assert confusion.counts().tolist() == [[2, 0], [1, 1]] and confusion.accuracy == 0.75
    with pytest.raises(ferrite.ValueError, match="acuracy.*accuracy"):
        train.metric("acuracy")


def test_metrics_written_in_python():
    class Largest(train.Metric):
        def reset(self):
            self.at = 0.0

        def add(self, prediction, batch):
            self.at = max(self.at, float(np.abs(prediction.numpy() - batch.y.numpy()).max()))

        def value(self):
            return self.at

        def state(self):
            return [self.at]

        def restore(self, state):
            self.at = state[0]

    def first(prediction, target):
        return prediction.numpy()[0, 0] * 0 + 2

    x, y = line()
    net = ferrite.features(3).linear(1).build(0)
    got = ferrite.evaluate(net, (x, y), "mse", metrics=[Largest(), first, train.mae()])
    np.testing.assert_allclose(got["Largest"], np.abs(ferrite.predict(net, x).numpy() - y).max(), rtol=1e-6)
    assert got["first"] == 2
    sgd = optim.SGD(net.parameters(), lr=0.1)
    assert ferrite.fit(net, (x, y), "mse", sgd, metrics=[Largest()])["Largest"][0] > 0


# ---- callbacks ---------------------------------------------------------------------------------------


def test_callbacks_written_in_python():
    events = []

    class Log(ferrite.Callback):
        def on_train_begin(self, t):
            assert t.model is net and t.optimizer is sgd
            self.training = t
            events.append("begin")

        def on_epoch_begin(self, t):
            events.append(f"epoch {t.epoch} of {t.epochs}")

        def on_batch_end(self, t):
            events.append((t.batch, t.step))

        def on_epoch_end(self, t):
            assert t is self.training
            t.log("double", 2 * t.logs["loss"])
            if t.epoch == 1:
                t.stop("enough")

        def on_train_end(self, t):
            events.append("end")

    x, y = line(32)
    net = ferrite.features(3).linear(1).build(0)
    sgd = optim.SGD(net.parameters(), lr=0.1)
    log, epochs = Log(), []
    h = ferrite.fit(net, (x, y), "mse", sgd, epochs=5, batch_size=16,
                    callbacks=[log, lambda t: epochs.append(t.history["double"][-1])])
    assert events == ["begin", "epoch 0 of 5", (1, 1), (2, 2), "epoch 1 of 5", (1, 3), (2, 4), "end"]
    assert h.stopped == "enough" and h.epochs == 2
    np.testing.assert_array_equal(h["double"], 2 * h["loss"])
    assert epochs == list(h["double"])
    with pytest.raises(ferrite.ValueError, match="ended"):
        log.training.epoch


def test_an_exception_in_a_callback_ends_training():
    class Own(Exception):
        pass

    def fail(training):
        raise Own("mine")

    x, y = line()
    net = ferrite.features(3).linear(1).build(0)
    net.eval()
    with pytest.raises(Own, match="mine"):
        ferrite.fit(net, (x, y), "mse", optim.SGD(net.parameters(), lr=0.1), epochs=3, callbacks=[fail])
    assert not net.training
    with pytest.raises(ferrite.ValueError):
        ferrite.fit(net, (x, y), "mse", optim.SGD(net.parameters(), lr=0.1), callbacks=[3])


def test_early_stopping_and_lambda():
    x, y = line()
    net = ferrite.features(3).linear(1).build(0)
    stopping = train.EarlyStopping("loss", patience=1)
    ended = []
    loader = train.DataLoader((x, y), shuffle=False)
    h = ferrite.fit(net, loader, "mse", optim.SGD(net.parameters(), lr=0.0), epochs=10,
                    callbacks=[stopping, train.LambdaCallback(on_train_end=lambda t: ended.append(t.epoch))])
    assert h.epochs == 3 and h.stopped and len(ended) == 1
    assert stopping.best_epoch == 1 and stopping.best == h["loss"][0]


def test_progress_goes_to_stdout(capsys):
    x, y = line()
    net = ferrite.features(3).linear(1).build(0)
    sgd = optim.SGD(net.parameters(), lr=0.1)
    ferrite.fit(net, (x, y), "mse", sgd, epochs=1)
    assert capsys.readouterr().out == ""
    ferrite.fit(net, (x, y), "mse", sgd, epochs=2, progress=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and "loss" in lines[0]
    text = io.StringIO()
    ferrite.fit(net, (x, y), "mse", sgd, epochs=1, callbacks=[train.ProgressBar(text, terminal=True, columns=60)])
    assert "\r" in text.getvalue() and "loss" in text.getvalue()


def test_files_of_callbacks(tmp_path):
    x, y = line()
    net = ferrite.features(3).linear(1).build(0)
    checkpoint = train.ModelCheckpoint(tmp_path / "best", "loss", last=1)
    ferrite.fit(net, (x, y), "mse", optim.Adam(net.parameters(), lr=0.1), epochs=3, callbacks=[
        train.CSVLogger(tmp_path / "log.csv"), train.Curves(tmp_path / "curves.svg"),
        train.TensorBoard(tmp_path / "board", histograms=1), checkpoint])
    assert ferrite.read_csv(tmp_path / "log.csv").rows == 3
    assert (tmp_path / "curves.svg").read_text().startswith("<svg")
    assert list((tmp_path / "board").rglob("events.out.tfevents*"))
    other = ferrite.features(3).linear(1).build(1)
    ferrite.load(other, checkpoint.best_path)
    assert same(values(net), values(other))


def test_averages_and_rates():
    x, y = line()
    net = ferrite.features(3).linear(1).build(0)
    start = values(net)
    sgd = optim.SGD(net.parameters(), lr=0.1)
    ferrite.fit(net, (x, y), "mse", sgd, epochs=1, batch_size=64, callbacks=[train.Ema(net.parameters(), 0.5)])
    other = ferrite.features(3).linear(1).build(0)
    ferrite.fit(other, (x, y), "mse", optim.SGD(other.parameters(), lr=0.1), epochs=1, batch_size=64)
    for name, value in values(net).items():  # the average begins with the first update
        assert not np.array_equal(value, start[name])
        np.testing.assert_allclose(value, values(other)[name], rtol=1e-6)
    net2 = ferrite.features(3).linear(1).build(0)
    sgd2 = optim.SGD(net2.parameters(), lr=0.0)
    loader = train.DataLoader((x, y), shuffle=False)
    ferrite.fit(net2, loader, "mse", sgd2, epochs=1, callbacks=[train.TerminateOnNaN()])
    sgd3 = optim.SGD(net2.parameters(), lr=1e-3)
    ferrite.fit(net2, loader, "mse", sgd3, epochs=4, callbacks=[
        train.ReduceLROnPlateau("loss", 0.5, 1, least_change=10)])
    np.testing.assert_allclose(sgd3.lr, 0.5e-3, rtol=1e-6)


def test_what_is_not_finite():
    x, y = line()
    y[3] = np.nan
    net = ferrite.features(3).linear(1).build(0)
    before = values(net)
    with pytest.raises(ferrite.AnomalyError):
        ferrite.fit(net, (x, y), "mse", optim.SGD(net.parameters(), lr=0.1), batch_size=64)
    assert same(before, values(net))
    sgd = optim.SGD(net.parameters(), lr=0.1)
    h = ferrite.fit(net, (x, y), "mse", sgd, batch_size=64, callbacks=[train.TerminateOnNaN()])
    assert h.stopped

    class Ends(ferrite.Callback):
        def on_not_finite(self, training, what):
            self.what = what
            return True

    ends = Ends()
    ferrite.fit(net, (x, y), "mse", optim.SGD(net.parameters(), lr=0.1), batch_size=64, callbacks=[ends])
    assert "field 1 of the batch holds nan" in ends.what


def test_keyboard_interrupt_ends_training():
    x, y = line(512)
    net = ferrite.features(3).linear(1).build(0)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.time()
    with pytest.raises(KeyboardInterrupt):
        ferrite.fit(net, (x, y), "mse", optim.SGD(net.parameters(), lr=0.01), epochs=10**7, batch_size=1)
    assert time.time() - begin < 10
    timer.join()


def test_other_threads_run_meanwhile():
    counted, done = [], threading.Event()

    def count():
        while not done.is_set():
            counted.append(1)
            time.sleep(0.001)

    x, y = line(2048)
    net = ferrite.features(3).linear(64).linear(1).build(0)
    thread = threading.Thread(target=count)
    thread.start()
    begin = time.time()
    ferrite.fit(net, (x, y), "mse", optim.SGD(net.parameters(), lr=0.001), epochs=60)
    done.set()
    thread.join()
    assert len(counted) > 20 * (time.time() - begin)


# ---- checkpoints -------------------------------------------------------------------------------------


def test_training_resumes_bit_for_bit(tmp_path):
    x, y = line()

    class Count(ferrite.Callback):
        def __init__(self):
            super().__init__()
            self.n = 0

        def on_batch_end(self, training):
            self.n += 1

        def state(self):
            return [self.n]

        def restore(self, state):
            self.n = int(state[0])

    def run(epochs, path):
        net = ferrite.features(3).linear(8).dropout(0.5).linear(1).build(0)
        adam = optim.Adam(net.parameters(), lr=0.01)
        schedule = optim.StepLR(adam, 3, gamma=0.5)
        count = Count()
        h = ferrite.fit(net, (x, y), "mse", adam, epochs, batch_size=16, schedule=schedule, schedule_by_epoch=True,
                        checkpoint=path, callbacks=[count])
        return net, h, count

    whole, h, count = run(6, None)
    run(2, tmp_path / "run.safetensors")
    resumed, g, count2 = run(6, str(tmp_path / "run.safetensors"))
    assert g.resumed == 2 and g.epochs == 6 and count2.n == count.n == 24
    np.testing.assert_array_equal(h["loss"], g["loss"])
    assert same(values(whole), values(resumed))
    net = ferrite.features(3).linear(8).dropout(0.5).linear(1).build(0)
    with pytest.raises(ferrite.OtherTrainingError, match="learning_rate"):
        adam = optim.Adam(net.parameters(), lr=0.1)
        ferrite.fit(net, (x, y), "mse", adam, 6, batch_size=16, schedule=optim.StepLR(adam, 3, gamma=0.5),
                    schedule_by_epoch=True, checkpoint=tmp_path / "run.safetensors", callbacks=[Count()])


def test_checkpoints_by_hand(tmp_path):
    net = nn.Linear(2, 1)
    adam = optim.Adam(net.parameters(), lr=0.1)
    schedule = optim.StepLR(adam, 2, gamma=0.5)
    adam.step([ferrite.tensor(np.ones(p.shape, np.float32)) for p in net.parameters()])
    path = tmp_path / "c.safetensors"
    train.save_checkpoint(path, net, adam, schedule, epoch=3, batch=1, step=7, numbers={"best": [0.1]},
                          metadata={"who": "me"}, also={"data": "v1"})
    before = values(net)
    adam.step([ferrite.tensor(np.ones(p.shape, np.float32)) for p in net.parameters()])
    got = train.load_checkpoint(path, net, [adam], [schedule], also={"data": "v1"})
    assert (got.epoch, got.batch, got.step, got.seed) == (3, 1, 7, 0)
    assert got.numbers == {"best": [0.1]} and got.metadata["who"] == "me" and got.changes == []
    assert same(before, values(net))
    with pytest.raises(ferrite.OtherTrainingError, match="v1"):
        train.load_checkpoint(path, net, adam, schedule, also={"data": "v2"})
    got = train.load_checkpoint(path, net, adam, schedule, also={"data": "v2"}, changed=["data"])
    assert [tuple(c) for c in got.changes] == [("data", "v1", "v2")]
    with pytest.raises(FileNotFoundError):
        train.load_checkpoint(tmp_path / "none", net, adam)
    with pytest.raises(ferrite.IoError):
        train.load_checkpoint(path, nn.Linear(3, 1), adam, schedule)


def test_charts_and_events(tmp_path):
    curves = {"loss": [3.0, 2.0, 1.0], "dots": (np.arange(2.0), np.arange(2.0))}
    svg = train.line_chart(curves, title="t", path=tmp_path / "a.svg")
    assert svg.startswith("<svg") and (tmp_path / "a.svg").read_text() == svg
    assert train.heat_map(np.eye(3, dtype=np.float32), title="m").startswith("<svg")
    assert train.image_grid(np.zeros((3, 2, 2), np.float32), columns=2, padding=0).shape == (4, 4)
    writer = train.EventWriter(tmp_path / "events")
    writer.scalar("loss", 1.5, 0)
    writer.histogram("weights", draw(10), 0)
    writer.image("eye", np.eye(3, dtype=np.float32), 0)
    writer.text("note", "*hello*", 0)
    assert os.path.getsize(writer.file) > 100
    assert train.advantages(np.ones((2, 1), np.float32), np.zeros((3, 1), np.float32), np.ones((2, 1), np.float32),
                            discount=0.5, trace=1.0).tolist() == [[1.5], [1.0]]
