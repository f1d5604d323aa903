#!/usr/bin/env python3
"""Packs what fuzzing found into tests/fuzz/corpus: of all inputs those that together reach what all of them reach.

    python3 tests/fuzz/corpus.py [--build build/fuzz] [TARGET ...]

The build (cmake --preset fuzz) unpacks <target>.zip to <build>/tests/fuzz/corpus/<target>, where a fuzzer adds what it
finds: `<build>/tests/fuzz/json_fuzz <build>/tests/fuzz/corpus/json`. This program chooses of that folder by libFuzzer's
-set_cover_merge and writes <target>.zip. Files in tests/fuzz/corpus/<target>/ are cases of faults that were mended: they
stay for ever, and are not packed.
"""
import argparse
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CORPUS = ROOT / "tests" / "fuzz" / "corpus"


def reached(program, *folders):
    """What libFuzzer counts over these inputs: edges, and edges by how often they are taken."""
    done = subprocess.run([program, "-runs=0", *folders], capture_output=True, text=True)
    match = re.search(r"INITED cov: (\d+) ft: (\d+)", done.stderr)
    if not match:
        raise SystemExit(f"{program} does not run:\n{done.stderr[-2000:]}")
    return int(match[1]), int(match[2])


def write_archive(path, files):
    """The same bytes for the same files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)


def pack(target, build):
    program, found, kept = build / f"{target}_fuzz", build / "corpus" / target, CORPUS / target
    fixed = [kept] if kept.is_dir() else []
    # An input has the name that it has in the archive, else the fuzzer's: the digest of its bytes.
    names = {hashlib.sha1(p.read_bytes()).hexdigest(): p.name for p in sorted(found.iterdir(), reverse=True)}
    for path in (p for folder in fixed for p in folder.iterdir()):
        names.pop(hashlib.sha1(path.read_bytes()).hexdigest(), None)
    with tempfile.TemporaryDirectory() as merged:
        subprocess.run([program, "-set_cover_merge=1", merged, *fixed, found], check=True, capture_output=True)
        files = {names[p.name]: p.read_bytes() for p in pathlib.Path(merged).iterdir() if p.name in names}
        before, after = reached(program, *fixed, found), reached(program, *fixed, merged)
    write_archive(CORPUS / f"{target}.zip", files)
    print(f"{target}: {len(files)} of {len(names)} inputs; edges {before[0]} -> {after[0]}, features {before[1]} -> {after[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "fuzz")
    options = parser.parse_args()
    for target in options.targets or sorted(p.stem.removesuffix("_fuzz") for p in CORPUS.parent.glob("*_fuzz.cpp")):
        pack(target, options.build / "tests" / "fuzz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
