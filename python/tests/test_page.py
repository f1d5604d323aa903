"""The blocks of docs/python.md run in their order, in one namespace."""

import importlib.util
import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
if not PAGE.exists():
    pytest.skip("no page next to the tests", allow_module_level=True)
BLOCK = re.compile(r"^```python\n(.*?)^```$|^(#+) (.*?)$", re.M | re.S)


def blocks():
    """Returns every block with the heading above it and the line where it begins."""
    text, heading, all_blocks = PAGE.read_text(), "", []
    for match in BLOCK.finditer(text):
        if match[2]:
            heading = match[3]
        else:
            all_blocks.append((heading, text[: match.start(1)].count("\n"), match[1]))
    return all_blocks


def needs(code):
    """Returns the packages that a block imports and that may be absent."""
    return {name for name in ("torch", "sklearn") if re.search(rf"^(import|from) {name}\b", code, re.M)}


@pytest.fixture(scope="module")
def namespace(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        yield {"__name__": "page"}


@pytest.mark.parametrize("heading, line, code", [pytest.param(*b, id=f"line-{b[1] + 1}") for b in blocks()])
def test_blocks_run(heading, line, code, namespace, monkeypatch):
    section = "\n".join(c for h, _, c in blocks() if h == heading)
    for name in needs(section):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{heading}: {name} is not installed")
    path = str(pathlib.Path(__import__("ferrite").__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", path, prepend=":")
    exec(compile("\n" * line + code, str(PAGE), "exec"), namespace)


def test_all_blocks_are_found():
    assert len(blocks()) == PAGE.read_text().count("```python\n") > 10
