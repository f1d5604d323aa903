"""Adds up the CPU seconds listed by scripts/timed, by part: cpu_seconds.py LOG --levels LEVELS [--write]."""

import argparse
import collections
import os
import re
import subprocess
import sys

PAGE = "docs/benchmarks.md"
BEGIN, END = "<!-- begin cpu-seconds -->", "<!-- end cpu-seconds -->"


def part_of(command: str) -> str:
    """Returns the part of the project for which a command of the build makes something."""
    made = re.search(r" -o (\S+)", command)
    if not made:
        return "other"
    path = made[1]
    kernels = re.search(r"ferrite_kernels_(\w+)\.dir", path)
    if kernels:
        return f"kernels for {kernels[1]}"
    if "cmake_pch" in path and "ferrite.dir" in path:
        return "the library's precompiled headers"
    unity = re.search(r"ferrite(?:_\w+)?\.dir/Unity/unity_([a-z]+)", path)
    plain = re.search(r"CMakeFiles/ferrite(?:_\w+)?\.dir/([a-z]+)/", path)
    if unity or plain:
        return f"`{(unity or plain)[1]}`"
    return {"tests": "tests", "examples": "the demo and examples", "tools": "the command"}.get(path.split("/")[0], "other")


def processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else "an unknown processor"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("log")
    options.add_argument("--levels", required=True)
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    seconds: collections.Counter[str] = collections.Counter()
    sources: collections.Counter[str] = collections.Counter()
    total = demo = 0.0
    with open(given.log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("the demo"):
                demo = total
                continue
            found = re.match(r"([\d.]+) ([\d.]+) (.*)", line)
            if not found:
                continue
            spent = float(found[1]) + float(found[2])
            part = part_of(found[3])
            seconds[part] += spent
            sources[part] += 1
            total += spent
    compiler = subprocess.run(["c++", "-dumpfullversion"], check=True, capture_output=True, text=True).stdout.strip()
    rows = [f"| {part} | {sources[part]} | {spent:.0f} |" for part, spent in seconds.most_common()]
    table = "\n".join([
        f"Release, `FERRITE_UNITY`, kernels for {given.levels}, g++ {compiler}, {processor()}; user and system, no cache:", "",
        "| part | commands | CPU seconds |", "|---|---|---|", *rows,
        f"| **all that `scripts/demo` builds** | | **{demo:.0f}** |",
        f"| **all that `scripts/test` builds** | | **{total:.0f}** |"])
    print(table)
    if given.write:
        with open(PAGE, encoding="utf-8") as file:
            text = file.read()
        before, rest = text.split(BEGIN)
        after = rest.split(END, 1)[1]
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(f"{before}{BEGIN}\n{table}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
