#!/usr/bin/env python3
"""Checks an Arduino library that `ferrite freeze --arduino DIR` wrote: check_library.py DIR

DIR holds library.properties, library.json, src/ and examples/. The rules are those of Arduino's library specification
and of PlatformIO's library.json. The example is compiled as Arduino's tools do, with the flags of a Cortex-M4F board
and a stand-in for Arduino's core, and run in QEMU: it must print 8 lines of numbers. The exit code is 77 if a program
that this needs is absent.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FIRMWARE = os.path.join(HERE, "..", "firmware")
sys.path.insert(0, FIRMWARE)
import run as firmware  # tests/freeze/firmware/run.py

CATEGORIES = ["Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing", "Data Storage",
              "Data Processing", "Other"]
REQUIRED = ["name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"]
SEMANTIC_VERSION = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
# What Arduino's cores give to the compilers, without their search paths.
FLAGS = ["-Os", "-ffunction-sections", "-fdata-sections", "-DCLOCK_HZ=25000000"]
CXX_FLAGS = ["-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def properties_faults(path):
    """Returns what is wrong with a library.properties."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    faults = [f"the line '{line}' has no '='" for line in lines if "=" not in line]
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    faults += [f"{name} is missing" for name in REQUIRED if not fields.get(name, "").strip()]
    name = fields.get("name", "")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}", name) or not re.search(r"[A-Za-z]", name):
        faults.append(f"the name '{name}' must be of letters, digits, spaces, '_', '.' and '-'")
    if not re.fullmatch(SEMANTIC_VERSION, fields.get("version", "")):
        faults.append(f"the version '{fields.get('version')}' is not of the form 1.2.3")
    if fields.get("category") not in CATEGORIES:
        faults.append(f"the category '{fields.get('category')}' is none of {', '.join(CATEGORIES)}")
    folder = os.path.dirname(path)
    for header in filter(None, fields.get("includes", "").split(",")):
        if not os.path.isfile(os.path.join(folder, "src", header.strip())):
            faults.append(f"src/{header.strip()} is absent")
    return faults


def manifest_faults(path):
    """Returns what is wrong with a library.json."""
    with open(path, encoding="utf-8") as file:
        fields = json.load(file)
    faults = [f"{name} is missing" for name in ("name", "version", "description", "keywords") if not fields.get(name)]
    if not re.fullmatch(r"(?=.{1,50}$)[A-Za-z0-9]+(-[A-Za-z0-9]+)*", fields.get("name", "")):
        faults.append(f"the name '{fields.get('name')}' must be of letters, digits and single dashes")
    if not re.fullmatch(SEMANTIC_VERSION, fields.get("version", "")):
        faults.append(f"the version '{fields.get('version')}' is not of the form 1.2.3")
    if len(fields.get("description", "")) > 255:
        faults.append("the description has more than 255 characters")
    for keyword in fields.get("keywords", []):
        if not re.fullmatch(r"[a-z0-9]([a-z0-9._+-]*[a-z0-9])?", keyword):
            faults.append(f"the keyword '{keyword}' must be of small letters, digits, '.', '_', '+' and '-'")
    for example in fields.get("examples", []):
        for file in example["files"]:
            if not os.path.isfile(os.path.join(os.path.dirname(path), example["base"], file)):
                faults.append(f"{example['base']}/{file} is absent")
    return faults


def compile_example(library, sketch, folder):
    """Compiles the library and a sketch of it. Returns the program."""
    target = firmware.TARGETS["m4f"]
    source = os.path.join(folder, os.path.basename(sketch) + ".cpp")
    with open(sketch, encoding="utf-8") as file, open(source, "w", encoding="utf-8") as out:
        out.write(f'#include <Arduino.h>\n#line 1 "{sketch}"\n{file.read()}')
    objects = []
    sources = glob.glob(os.path.join(library, "src", "**", "*.c"), recursive=True)
    for path in [*sources, source, os.path.join(HERE, "arduino.cpp"), os.path.join(FIRMWARE, "cortex_m.c")]:
        compiler = ["gcc", "-std=gnu11"] if path.endswith(".c") else ["g++", *CXX_FLAGS]
        objects.append(os.path.join(folder, os.path.basename(path) + ".o"))
        firmware.run([target.tool(compiler[0]), *compiler[1:], *target.processor, *FLAGS, *WARNINGS, "-I",
                      os.path.join(library, "src"), "-I", HERE, "-I", FIRMWARE, "-c", path, "-o", objects[-1]])
    program = os.path.join(folder, "program")
    firmware.link(target, objects, program)
    return firmware.emulator(target, program)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    library = sys.argv[1]
    for program in ("arm-none-eabi-g++", "qemu-system-arm"):
        if not shutil.which(program):
            print(f"skipped: {program} is absent")
            return firmware.SKIPPED
    faults = []
    for name, check in (("library.properties", properties_faults), ("library.json", manifest_faults)):
        faults += [f"{name}: {fault}" for fault in check(os.path.join(library, name))]
    sketches = glob.glob(os.path.join(library, "examples", "*", "*.ino"))
    if not sketches:
        faults.append("there is no examples/NAME/NAME.ino")
    for sketch in sketches:
        if os.path.basename(os.path.dirname(sketch)) + ".ino" != os.path.basename(sketch):
            faults.append(f"{sketch} is not named as its folder")
        with tempfile.TemporaryDirectory() as folder:
            command = compile_example(library, sketch, folder)
            result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        printed = (result.stdout + result.stderr).strip()
        print(printed)
        if result.returncode or not re.fullmatch(r"(-?\d+\.\d+( -?\d+\.\d+)*\n?){8}", printed):
            faults.append(f"{sketch} does not print 8 lines of numbers")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
