#!/usr/bin/env python3
"""Makes data/japanese_vowels.safetensors from the files in the `aeon` package of PyPI.

    python3 -m pip install numpy safetensors
    python3 scripts/make_vowels.py [OUTPUT]

Tensors, for PART in train, test: PART.x f32 [sum of lengths, 12] (the concatenated frames of all recordings),
PART.lengths i64 [N], PART.labels i64 [N] (speakers 0 to 8).
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
from safetensors.numpy import save

PACKAGE = "aeon==1.3.0"
SHA256 = "90e69e7dce01035395468f9afd83f15e34d66513e709456e4dd7763c9aa3cda8"
FOLDER = "aeon/datasets/data/JapaneseVowels/JapaneseVowels_"


def fetch(folder):
    """Downloads the package, checks its content, and returns the wheel's path."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder, PACKAGE]
    subprocess.run(command, check=True)
    wheel = next(pathlib.Path(folder).glob("*.whl"))
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{wheel.name}: unexpected content")
    return wheel


def parse(text):
    """Parses one recording a line: dimensions separated by ':', values by ',', the label last."""
    frames, lengths, labels = [], [], []
    lines = iter(text.splitlines())
    for line in lines:
        if line.strip().lower() == "@data":
            break
    for line in lines:
        if not line.strip():
            continue
        *dimensions, label = line.split(":")
        values = np.array([[float(v) for v in d.split(",")] for d in dimensions], dtype=np.float32).T
        frames.append(values)
        lengths.append(len(values))
        labels.append(int(label) - 1)
    return (np.ascontiguousarray(np.concatenate(frames)), np.array(lengths, dtype=np.int64),
            np.array(labels, dtype=np.int64))


def write(tensors, path, metadata):
    """Writes the reference writer's file with the metadata in the given order, which the reference does not keep."""
    data = save(tensors, metadata)
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header = {"__metadata__": metadata} | {name: entry for name, entry in header.items() if name != "__metadata__"}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + data[end:])


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    output = sys.argv[1] if len(sys.argv) > 1 else root / "data" / "japanese_vowels.safetensors"
    tensors = {}
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(fetch(folder)) as wheel:
        for part in ("train", "test"):
            text = wheel.read(f"{FOLDER}{part.upper()}.ts").decode()
            tensors[f"{part}.x"], tensors[f"{part}.lengths"], tensors[f"{part}.labels"] = parse(text)
    assert len(tensors["train.lengths"]) == 270 and len(tensors["test.lengths"]) == 370
    metadata = {"source": "Japanese Vowels, M. Kudo, J. Toyama, M. Shimbo, UCI Machine Learning Repository",
                "licence": "CC BY 4.0"}
    write(tensors, output, metadata)
    print(output, {name: t.shape for name, t in tensors.items()})


if __name__ == "__main__":
    main()
