"""Compares the size of programs, stripped, with their budgets: sizes.py --budgets FILE --levels LIST PROGRAM...

A line of the budgets names a program, its MB with kernels of all instruction sets, with those of one, and with those of
AVX-512 alone. A program that is 3 % over its budget fails, and the objects that take most of it are printed from the
linker's map beside it.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile


def stripped(strip: str, program: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "stripped")
        subprocess.run([strip, "-o", copy, program], check=True)
        return os.path.getsize(copy)


def largest_objects(map_file: str, count: int) -> list[tuple[int, str]]:
    """The bytes that each object adds to what is loaded, the largest first."""
    sizes: collections.Counter[str] = collections.Counter()
    begun = False
    pattern = re.compile(r"^ ?\.(?:text|rodata|data|bss|eh_frame|gcc_except_table)\S*\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(\S.*)$")
    held = ""
    with open(map_file, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            begun = begun or line.startswith("Linker script and memory map")
            if not begun:
                continue
            line = line.rstrip("\n")
            if re.match(r"^ \.\S+$", line):  # a long name stands on a line of its own
                held = line
                continue
            found = pattern.match(held + line if held else line)
            held = ""
            if found:
                sizes[os.path.basename(found[2])] += int(found[1], 16)
    return [(size, name) for name, size in sizes.most_common(count)]


def budgets(path: str) -> dict[str, tuple[float, ...]]:
    result = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if words:
                result[words[0]] = tuple(float(word) for word in words[1:4])
    return result


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--strip", default="strip")
    options.add_argument("--levels", default="")
    options.add_argument("--budgets", required=True)
    options.add_argument("programs", nargs="+")
    given = options.parse_args()
    levels = [level for level in given.levels.split(";") if level]
    limits = budgets(given.budgets)
    failed = 0
    for program in given.programs:
        name = os.path.basename(program).removeprefix("size_")
        if name not in limits:
            print(f"{name}: {given.budgets} has no line for it")
            failed += 1
            continue
        size = stripped(given.strip, program) / 1e6
        limit = limits[name][0 if len(levels) > 1 else 2 if "avx512" in levels else 1]
        over = size > 1.03 * limit
        print(f"{name}: {size:.2f} MB with kernels of {', '.join(levels)}, budget {limit:.2f}{', too large' if over else ''}")
        if over:
            failed += 1
            for size_of_object, object_name in largest_objects(program + ".map", 15):
                print(f"  {size_of_object / 1e3:8.0f} kB  {object_name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
