"""Files: weights, tensors, sound, tables, models of other programs, ONNX and StableHLO."""
import pathlib

import ferrite
import numpy as np
import pytest
from ferrite import nn

FORMATS = [".safetensors", ".pt", ".npz", ".gguf"]


def gru(seed=0):
    return ferrite.sequence(3).gru(8).linear(2).build(seed)


@pytest.mark.parametrize("ending", FORMATS)
def test_tensors_survive_every_format(tmp_path, ending):
    path = tmp_path / ("a" + ending)
    rng = np.random.default_rng(0)
    given = {"w": rng.standard_normal((2, 3)).astype(np.float32), "n": np.arange(4, dtype=np.int64)}
    ferrite.write_tensors(path, given)
    read = ferrite.read_tensors(str(path))
    assert sorted(read) == ["n", "w"]
    for name, value in given.items():
        assert read[name].numpy().dtype == value.dtype
        np.testing.assert_array_equal(read[name].numpy(), value)


def test_numpy_reads_what_is_written_and_the_other_way(tmp_path):
    a = np.arange(6, dtype=np.float64).reshape(2, 3)
    ferrite.write_npy(tmp_path / "a.npy", a)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), a)
    np.savez(tmp_path / "b.npz", x=a, y=a.astype(np.float32).T)
    read = ferrite.read_tensors(tmp_path / "b.npz")
    np.testing.assert_array_equal(read["y"].numpy(), a.astype(np.float32).T)
    np.testing.assert_array_equal(ferrite.read_npy(tmp_path / "a.npy").numpy(), a)
    ferrite.write_tensors(tmp_path / "c.npy", {"array": a})
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), a)


def test_metadata_and_lazy_files(tmp_path):
    path = tmp_path / "a.safetensors"
    ferrite.write_tensors(path, {"w": np.ones((2, 2), np.float16)}, {"made by": "me"})
    assert ferrite.read_metadata(path) == {"made by": "me"}
    file = ferrite.open_tensors(path, map=True)
    assert list(file) == ["w"] and len(file) == 1 and "w" in file and "v" not in file
    assert file.info("w") == ("F16", ferrite.f32, (2, 2), 8)
    assert file["w"].dtype == ferrite.f32
    assert file.tensor("w", as_stored=True).dtype == ferrite.f16
    assert list(file.renamed({"w": "v"})) == ["v"]
    assert list(file.renamed(lambda name: "")) == []


def test_a_missing_file_is_a_file_not_found_error(tmp_path):
    for f in (ferrite.read_tensors, ferrite.read_npy, ferrite.read_wav, ferrite.read_csv, ferrite.read_nam,
              ferrite.read_rtneural, ferrite.read_guitarml, ferrite.read_onnx, lambda p: ferrite.load(gru(), p)):
        with pytest.raises(FileNotFoundError, match="nowhere") as info:
            f(tmp_path / "nowhere.safetensors")
        assert isinstance(info.value, ferrite.IoError) and isinstance(info.value, ferrite.MissingFileError)


def test_a_damaged_file_is_an_io_error(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"nonsense that is no tensor file")
    with pytest.raises(ferrite.IoError, match="a.safetensors"):
        ferrite.read_tensors(path)
    with pytest.raises(OSError):
        ferrite.write_tensors(tmp_path / "a.unknown", {"w": np.zeros(1)})


@pytest.mark.parametrize("ending", FORMATS)
def test_a_module_is_saved_and_loaded(tmp_path, ending):
    net, other = gru(0), gru(1)
    x = ferrite.tensor(np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32))
    path = tmp_path / ("net" + ending)
    ferrite.save(net, path)
    assert not np.array_equal(net(x).numpy(), other(x).numpy())
    report = ferrite.load(other, path)
    assert report == ([], [])
    np.testing.assert_array_equal(net(x).numpy(), other(x).numpy())


def test_state_dicts_have_pytorch_layout():
    torch = pytest.importorskip("torch")
    ours, theirs = nn.GRU(3, 4), torch.nn.GRU(3, 4, batch_first=True)
    ferrite.load_state_dict(ours, {k: v.detach() for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    expected = theirs(torch.from_numpy(x))[0].detach().numpy()
    output = ours(ferrite.tensor(x))
    output = output[0] if isinstance(output, tuple) else output
    np.testing.assert_allclose(np.asarray(output), expected, atol=1e-6)
    back = ferrite.state_dict(ours)
    assert list(back) == list(theirs.state_dict())
    for name, value in theirs.state_dict().items():
        np.testing.assert_array_equal(back[name].numpy(), value.numpy())


def test_pytorch_loads_what_save_writes(tmp_path):
    torch = pytest.importorskip("torch")
    net = nn.Linear(3, 2)
    ferrite.save(net, tmp_path / "net.pt")
    other = torch.nn.Linear(3, 2)
    other.load_state_dict(torch.load(tmp_path / "net.pt", weights_only=True))
    x = np.ones((1, 3), np.float32)
    np.testing.assert_allclose(net(ferrite.tensor(x)).numpy(), other(torch.from_numpy(x)).detach().numpy(), rtol=1e-6)


def test_what_does_not_fit_is_listed():
    net = nn.Linear(3, 2)
    before = ferrite.state_dict(net)
    with pytest.raises(ferrite.IoError, match="weigth.*weight|weight"):
        ferrite.load_state_dict(net, {"weigth": np.zeros((2, 3), np.float32), "bias": np.zeros(2, np.float32)})
    with pytest.raises(ferrite.IoError, match="bias"):
        ferrite.load_state_dict(net, {"weight": np.zeros((2, 3), np.float32), "bias": np.zeros(3, np.float32)})
    np.testing.assert_array_equal(ferrite.state_dict(net)["weight"].numpy(), before["weight"].numpy())
    some = {"net.bias": np.ones(2, np.float32), "net.other": np.ones(1)}
    report = ferrite.load(net, some, strict=False, prefix="net.")
    assert report.missing == ["net.weight"] and report.unexpected == ["net.other"]
    np.testing.assert_array_equal(ferrite.state_dict(net)["bias"].numpy(), [1, 1])
    ferrite.load(net, {"w": np.full((2, 3), 2.0, np.float32), "b": np.zeros(2, np.float32)},
                 rename={"w": "weight", "b": "bias"})
    assert (ferrite.state_dict(net)["weight"].numpy() == 2).all()


def test_keras_layout():
    net = nn.Linear(3, 2)
    kernel = np.arange(6, dtype=np.float32).reshape(3, 2)
    ferrite.load(net, {"kernel": kernel, "bias": np.array([1, 2], np.float32)}, keras=True)
    np.testing.assert_array_equal(net(ferrite.tensor(np.eye(3, dtype=np.float32))).numpy(), kernel + [1, 2])


def test_layers_are_recognised():
    found = ferrite.recognise_layers(ferrite.state_dict(gru()))
    assert [f.description.split("(")[0] for f in found] == ["GRU", "Linear"]


def test_wav(tmp_path):
    path = tmp_path / "a.wav"
    samples = np.array([[0, 0.5, -0.5, 1.0], [0.25, 0, 0, -1.0]], np.float32)
    ferrite.write_wav(path, samples, 48000, "float32")
    read, rate = ferrite.read_wav(path)
    assert rate == 48000
    np.testing.assert_array_equal(read.numpy(), samples)
    ferrite.write_wav(path, samples[0], 8000)
    np.testing.assert_array_equal(ferrite.read_wav(path).samples.numpy(), [[0, 0.5, -0.5, 32767 / 32768]])
    with pytest.raises(ferrite.ValueError, match="pcm12.*pcm16"):
        ferrite.write_wav(path, samples, 48000, "pcm12")


def test_csv(tmp_path):
    path = tmp_path / "a.csv"
    ferrite.write_csv(path, {"x": np.array([1.5, 2.5], np.float32), "kind": ["a", "b"], "n": np.array([1, 2])})
    assert path.read_text() == "x,kind,n\n1.5,a,1\n2.5,b,2\n"
    table = ferrite.read_csv(path)
    assert (table.rows, table.columns, table.names) == (2, 3, ["x", "kind", "n"])
    np.testing.assert_array_equal(table.numbers(["n", "x"]).numpy(), [[1, 1.5], [2, 2.5]])
    np.testing.assert_array_equal(table.numbers("n", ferrite.i64).numpy(), [1, 2])
    np.testing.assert_array_equal(table["x"].numpy(), [1.5, 2.5])
    assert table.text("kind") == ["a", "b"]
    codes, vocabulary = table.categories("kind")
    assert codes.tolist() == [0, 1] and vocabulary == ["a", "b"]
    with pytest.raises(ferrite.IoError, match="kind|line 2"):
        table.column("kind")


def test_time_series(tmp_path):
    path = tmp_path / "a.ts"
    path.write_text("@problemName p\n@univariate true\n@classLabel true a b\n@data\n1,2:b\n3,4,5:a\n")
    s = ferrite.read_time_series(path)
    assert (s.name, s.classes, s.targets) == ("p", ["a", "b"], None)
    assert s.lengths.tolist() == [2, 3] and s.labels.tolist() == [1, 0]
    np.testing.assert_array_equal(s.values.numpy().ravel(), [1, 2, 3, 4, 5])


def test_rtneural(tmp_path):
    path = tmp_path / "net.json"
    net = ferrite.sequence(1).gru(4).linear(1).build(0)
    ferrite.save_rtneural(net, path)
    other = ferrite.read_rtneural(path)
    x = ferrite.tensor(np.linspace(-1, 1, 9, dtype=np.float32).reshape(1, 9, 1))
    np.testing.assert_allclose(other(x).numpy(), net(x).numpy(), atol=1e-6)


def test_nam(tmp_path):
    root = pathlib.Path(__file__).parents[2]
    files = sorted(root.glob("tests/**/*lstm*.nam"))
    if not files:
        pytest.skip("no .nam file")
    layer, rate, version, _ = ferrite.read_nam(files[0])
    x = ferrite.tensor(np.linspace(-1, 1, 50, dtype=np.float32).reshape(1, 50, 1))
    y = layer(x).numpy()
    assert y.shape == (1, 50, 1)
    ferrite.save_nam(layer, tmp_path / "a.nam", sample_rate=rate)
    np.testing.assert_array_equal(ferrite.read_nam(tmp_path / "a.nam").layer(x).numpy(), y)
    assert ferrite.read_nam(tmp_path / "a.nam").sample_rate == rate
    stream = layer.stream()
    np.testing.assert_array_equal(stream.steps(x[0]), y[0])


def test_onnx_round_trip(tmp_path):
    net = gru().eval()
    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    path = tmp_path / "net.onnx"
    ferrite.write_onnx(path, net, [x], input_names=["x"], output_names=["y"], dynamic=[(0, 1, "time")])
    model = ferrite.read_onnx(path)
    assert [p.name for p in model.inputs] == ["x"] and model.inputs[0].shape == ("2", "time", "3")
    longer = np.concatenate([x, x], 1)
    np.testing.assert_allclose(model.run([longer])[0].numpy(), net(longer).numpy(), atol=1e-6)
    np.testing.assert_allclose(model(x).numpy(), net(x).numpy(), atol=1e-6)
    assert "GRU" in model.report()
    assert ferrite.to_onnx(lambda a, b: (a + b, a * b), [(2, 2), (2, 2)])[:1] == b"\x08"
    with pytest.raises(ferrite.OnnxError):
        (tmp_path / "bad.onnx").write_bytes(b"\xff\xff")
        ferrite.read_onnx(tmp_path / "bad.onnx")


def test_onnx_streams(tmp_path):
    net = gru().eval()
    x = np.random.default_rng(0).standard_normal((1, 6, 3)).astype(np.float32)
    ferrite.write_onnx(tmp_path / "net.onnx", net, [x[:, :2]], input_names=["x"], output_names=["y"],
                       dynamic=[(0, 1, "time")])
    model = ferrite.read_onnx(tmp_path / "net.onnx")
    stream = ferrite.OnnxStream(model, time="time")
    expected = model(x).numpy()
    first = [stream.step(x=x[:, t:t + 1])["y"].numpy() for t in range(3)]
    saved, twin = stream.save(), stream.clone()
    np.testing.assert_array_equal(np.concatenate(first, 1), expected[:, :3])
    for s in (stream, twin):
        np.testing.assert_array_equal(s.step(x=x[:, 3:4])["y"].numpy(), expected[:, 3:4])
    stream.restore(saved)
    np.testing.assert_array_equal(stream.step(x=x[:, 3:4])["y"].numpy(), expected[:, 3:4])
    stream.reset()
    np.testing.assert_array_equal(stream.step(x=x[:, :1])["y"].numpy(), expected[:, :1])
    assert stream.report()
    with pytest.raises(ferrite.ShapeError):
        stream.step(x=x)
    with pytest.raises(ferrite.ValueError):
        stream.step(other=x[:, :1])


def test_quantised_gguf(tmp_path):
    w = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    path = tmp_path / "a.gguf"
    ferrite.write_gguf(path, {"w": w, "b": w}, {"general.name": "n", "tokens": ["a", "b"], "n": 3, "x": 0.5},
                       type={"w": "q8_0"})
    assert ferrite.read_gguf_metadata(path) == {"general.name": "n", "tokens": ["a", "b"], "n": 3, "x": 0.5}
    read = ferrite.read_tensors(path)
    np.testing.assert_array_equal(read["b"].numpy(), w)
    np.testing.assert_allclose(read["w"].numpy(), w, atol=np.abs(w).max() / 127)
    assert not np.array_equal(read["w"].numpy(), w)
    with pytest.raises(ferrite.ValueError, match="q2.*q8_0"):
        ferrite.write_gguf(path, {"w": w}, type="q2")


def test_class_folders(tmp_path):
    for name in ("b/2.png", "a/1.png", "a/0.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    files, labels, classes = ferrite.list_class_folders(tmp_path, [".png"])
    assert [f.name for f in files] == ["1.png", "2.png"] and labels.tolist() == [0, 1] and classes == ["a", "b"]


def test_stablehlo():
    text = ferrite.to_stablehlo(lambda a: ferrite.tanh(a) + 1, [(2, 3)])
    assert "stablehlo.tanh" in text and "tensor<2x3xf32>" in text
    assert "?x3xf32" in ferrite.to_stablehlo(lambda a: ferrite.tanh(a), [(2, 3)], dynamic=[(0, 0, "batch")])
    with pytest.raises(ferrite.ValueError):
        ferrite.to_stablehlo(lambda a: a, [(2,)], name="not a name")


def test_errors_of_functions_pass_through():
    class Own(Exception):
        pass

    def f(x):
        raise Own("mine")

    with pytest.raises(Own, match="mine"):
        ferrite.to_onnx(f, [(1,)])


def test_optimiser_states(tmp_path):
    torch = pytest.importorskip("torch")
    net = nn.Linear(2, 1)
    adam = ferrite.optim.Adam(net.parameters())
    adam.step([ferrite.tensor(np.ones(p.shape, np.float32)) for p in net.parameters()])
    ferrite.save_torch_optimizer(adam, tmp_path / "adam.pt")
    theirs = torch.optim.Adam(torch.nn.Linear(2, 1).parameters())
    theirs.load_state_dict(torch.load(tmp_path / "adam.pt", weights_only=True))
    assert float(theirs.state_dict()["state"][0]["step"]) == 1
    torch.save(theirs.state_dict(), tmp_path / "theirs.pt")
    ferrite.load_torch_optimizer(adam, tmp_path / "theirs.pt")
    ferrite.save(net, tmp_path / "net.safetensors", optimizer=adam)
    assert any(n.startswith("optimizer.") for n in ferrite.read_tensors(tmp_path / "net.safetensors"))
    ferrite.load(net, tmp_path / "net.safetensors", optimizer=adam)
