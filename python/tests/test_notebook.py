"""The notebook examples/python/overdrive.ipynb, and the C++ program that plays what it trained."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

import ferrite

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "python"
if not EXAMPLES.exists():
    pytest.skip("no examples next to the tests", allow_module_level=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs the notebook in a folder of its own; returns the notebook with its outputs, and the folder."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(EXAMPLES / "overdrive.ipynb", as_version=4)
    package = str(pathlib.Path(ferrite.__file__).parents[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", package, prepend=os.pathsep)
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook, folder


def test_the_notebook_is_stored_without_outputs():
    for cell in nbformat.read(EXAMPLES / "overdrive.ipynb", as_version=4).cells:
        assert cell.cell_type != "code" or (not cell.outputs and cell.execution_count is None)


def test_the_network_sounds_like_the_amplifier(run):
    notebook, folder = run
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    text = "".join(output.get("text", "") for output in outputs)
    assert float(text.split("error to signal")[1].split()[0]) < 0.02
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    net = ferrite.sequence(1).gru(16).linear(1).build(seed=1)
    ferrite.load(net, folder / "overdrive.safetensors")
    dry, played = np.load(folder / "dry.npy"), np.load(folder / "played.npy")
    np.testing.assert_array_equal(net(dry[None, :, None]).numpy()[0, :, 0], played)
    stream = net.stream()
    np.testing.assert_array_equal(np.concatenate([stream.step(s) for s in dry[:500, None]]), played[:500])


def test_the_program_in_cpp_plays_the_same_bits(run):
    tree = os.environ.get("FERRITE_TREE")
    if not tree:
        pytest.skip("FERRITE_TREE does not name a build tree of the library")
    folder = run[1]
    program = folder / "overdrive_stream"
    compiler = os.environ.get("CXX", "g++")
    subprocess.run(
        [
            compiler,
            "-std=c++20",
            "-O2",
            f"-I{tree}/include",
            EXAMPLES / "overdrive_stream.cpp",
            f"{tree}/libferrite.a",
            "-lpthread",
            "-o",
            program,
        ],
        check=True,
    )
    subprocess.run([program, folder / "overdrive.safetensors", folder / "dry.npy", folder / "cpp.npy"], check=True)
    cpp, played = np.load(folder / "cpp.npy"), np.load(folder / "played.npy")
    assert cpp.dtype == played.dtype == np.float32 and len(cpp) == 64000
    np.testing.assert_array_equal(cpp.view(np.int32), played.view(np.int32))
