"""Fails if the archive of the sources has files that nobody needs: unused.py SOURCE BUILD.

A file is needed if the build of the library and the command reads it, which Ninja knows, if it is installed, or if it
is in the list below.
"""
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

# What people read, what packages are made with, and what other systems and MPI compile.
OTHERS = ("LICENSE", "*.md", "CMakePresets.json", "packaging/debian/copyright", "cmake/*", "*/system/*",
          "distributed/*")


def ninja(build, *arguments):
    return subprocess.run(["ninja", "-C", build, *arguments], check=True, capture_output=True, text=True).stdout


def main():
    source, build = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    lines = ninja(build, "-t", "deps").splitlines() + ninja(build, "-t", "query", "build.ninja").splitlines()
    lines = [line.strip().removeprefix("| ") for line in lines if line.startswith("    ")]
    used = {os.path.realpath(os.path.join(build, line)) for line in lines}
    for file in pathlib.Path(build).rglob("cmake_install.cmake"):
        used.update(os.path.realpath(path) for path in re.findall(r'"(/[^"]+)"', file.read_text()))
    used.update(os.path.realpath(path) for path in re.findall(r'#include "(/[^"]+)"', "".join(
        file.read_text() for file in pathlib.Path(build).rglob("unity_*.cxx"))))
    unused = []
    for file in sorted(pathlib.Path(source).rglob("*")):
        name = str(file.relative_to(source))
        needed = os.path.realpath(file) in used or any(fnmatch.fnmatch(name, pattern) for pattern in OTHERS)
        if file.is_file() and not name.startswith("build/") and not needed:
            unused.append(name)
    if len(used) < 500:
        sys.exit(f"only {len(used)} files are used: is {build} built?")
    if unused:
        sys.exit("nobody needs these files of the archive: " + " ".join(unused))


if __name__ == "__main__":
    main()
