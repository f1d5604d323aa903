#!/usr/bin/env python3
"""Compiles a frozen net for a microcontroller, runs it in QEMU and prints what it costs, as JSON.

    run.py --net DIR --target m4f|m0|rv32|rv32f|host [--name net] [--steps 1000] [--flags "-O2"]
           [--count-executed] [--brief] [--main train.c]

DIR holds NAME.c and NAME.h. With --main train.c, they are a step of training of a net called `net`, and the outputs are
losses. The outputs must have the bits of the same file compiled for this machine, and NAME_check
must return 0; otherwise the exit code is 1. It is 77 if a program that this needs is absent.

    check                   what NAME_check returned
    outputs                 the bits of the first outputs, as hexadecimal numbers
    equal_to_host           whether they are those of this machine
    code_bytes              the code of NAME.c alone
    weight_bytes            its constants
    library_bytes           code and constants that it takes from libgcc, libc and libm, such as software floats
    library_functions       the functions among them that NAME.c calls itself
    instance_bytes          sizeof(NAME), the RAM of one instance
    stack_bytes             the deepest stack of NAME_step and NAME_steps, with all that they call
    ram_bytes               the sum of the two
    instructions_per_step   the mean over --steps steps, without those of a call of an empty function
    counted_loop            2,000,000 instructions as the board counts them
    executed                with --count-executed: the same for 4 steps, by the board's clock and by QEMU's log of
                            every executed instruction, which checks the former (slow)

Instructions are counted under `-icount shift=0`, where each takes 1 ns of the board's time. The count of a whole run is
exact within two ticks of the board's clock, 80 instructions (m4f) or 125 (m0), and within some 20 on rv32 and rv32f,
whose counter QEMU updates block by block: over 1000 steps 0.1 of an instruction per step. It is not a number of cycles:
a real processor needs more than one cycle for a load, a branch or a division. --brief prints one line instead of JSON.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PRINTED = 32  # steps whose outputs are compared
SKIPPED = 77
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
FLAGS = "-O2"


class Target:
    """A processor: its compiler, its memory and the machine of QEMU that has it."""

    def __init__(self, prefix, board, machine, processor, memory, loop="", libraries=("-lm", "-lc", "-lgcc")):
        self.prefix = prefix
        self.board = board
        self.machine = machine
        self.processor = processor
        self.memory = memory
        self.loop = loop
        self.libraries = list(libraries)

    def tool(self, name):
        return self.prefix + name


ARM_LOOP = r"subs %0, %0, #1\n bne 0b\n"
RISCV_LOOP = r"addi %0, %0, -1\n bnez %0, 0b\n"
CORTEX = ["-mthumb", "-masm-syntax-unified"]
M4F = [*CORTEX, "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-DCLOCK_HZ=25000000"]
M0 = [*CORTEX, "-mcpu=cortex-m0", "-mfloat-abi=soft", "-DCLOCK_HZ=16000000"]
MPS2_MEMORY = "FLASH (rx) : ORIGIN = 0x00000000, LENGTH = 4M\n  RAM (rw) : ORIGIN = 0x20000000, LENGTH = 4M"
MICROBIT_MEMORY = "FLASH (rx) : ORIGIN = 0x00000000, LENGTH = 256K\n  RAM (rw) : ORIGIN = 0x20000000, LENGTH = 16K"
VIRT = ["qemu-system-riscv32", "-machine", "virt", "-bios", "none"]
VIRT_MEMORY = "RAM (rwx) : ORIGIN = 0x80000000, LENGTH = 4M"
PICOLIBC = "--specs=picolibc.specs"
TARGETS = {
    "m4f": Target("arm-none-eabi-", "cortex_m", ["qemu-system-arm", "-machine", "mps2-an386", "-cpu", "cortex-m4"], M4F,
                  MPS2_MEMORY, ARM_LOOP),
    "m0": Target("arm-none-eabi-", "cortex_m", ["qemu-system-arm", "-machine", "microbit", "-cpu", "cortex-m0"], M0,
                 MICROBIT_MEMORY, ARM_LOOP),
    "rv32": Target("riscv64-unknown-elf-", "riscv", VIRT, [PICOLIBC, "-march=rv32imac", "-mabi=ilp32"], VIRT_MEMORY,
                   RISCV_LOOP),
    "rv32f": Target("riscv64-unknown-elf-", "riscv", VIRT, [PICOLIBC, "-march=rv32imafc", "-mabi=ilp32f"], VIRT_MEMORY,
                    RISCV_LOOP),
    "host": Target("", "host", [], [], "", libraries=["-lm"]),
}


def run(arguments, **options):
    result = subprocess.run(arguments, capture_output=True, text=True, **options)
    if result.returncode:
        sys.exit(f"{shlex.join(arguments)}\n{result.stdout}{result.stderr}exit code {result.returncode}")
    return result.stdout


def write_header(given, folder):
    """Writes net.h, which main.c includes, for a net of any name."""
    name, upper = given.name, given.name.upper()
    if name == "net":
        return
    functions = ["init", "step", "steps", "reset", "check"]
    lines = [f'#include "{name}.h"', f"#define net {name}"]
    lines += [f"#define NET_{size} {upper}_{size}" for size in ("INPUTS", "OUTPUTS")]
    lines += [f"#define net_{function} {name}_{function}" for function in functions]
    with open(os.path.join(folder, "net.h"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def build(given, target, flags, steps, folder):
    """Compiles the net alone and the program with it. Returns the paths of the object and the program."""
    definitions = [f"-DSTEPS={steps}", f"-DPRINTED={PRINTED}"]
    if target.loop:
        definitions += ["-DSTACK", f'-DLOOP="{target.loop}"']
    write_header(given, folder)
    flags = [*WARNINGS, *target.processor, *shlex.split(flags), "-ffunction-sections", "-fdata-sections"]
    folders = ["-I", given.net, "-I", folder, "-I", HERE]
    sources = [os.path.join(given.net, given.name + ".c")]
    sources += [os.path.join(HERE, name) for name in (target.board + ".c", given.main)]
    objects = []
    for source in sources:
        objects.append(os.path.join(folder, os.path.basename(source) + ".o"))
        run([target.tool("gcc"), *flags, *definitions, *folders, "-c", source, "-o", objects[-1]])
    program = os.path.join(folder, "program")
    link(target, objects, program)
    return objects[0], program


def link(target, objects, program):
    script = []
    if target.memory:
        path = program + ".ld"
        with open(os.path.join(HERE, target.board + ".ld"), encoding="utf-8") as file:
            sections = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"MEMORY {{\n  {target.memory}\n}}\n{sections}")
        script = ["-nostdlib", "-T", path]
    run([target.tool("gcc"), *target.processor, *objects, *script, "-Wl,--gc-sections", "-Wl,--start-group",
         *target.libraries, "-Wl,--end-group", "-o", program])


def sections_of(target, path):
    """Returns the bytes of code and of constants in an object or a program."""
    code = constants = 0
    for line in run([target.tool("size"), "-A", path]).splitlines():
        words = line.split()
        if len(words) == 3 and words[1].isdigit():
            if words[0].startswith(".text"):
                code += int(words[1])
            elif words[0].startswith((".rodata", ".srodata", ".sdata", ".data")):
                constants += int(words[1])
    return code, constants


def sizes(given, target, net_object, folder):
    code, constants = sections_of(target, net_object)
    missing = [line.split()[-1] for line in run([target.tool("nm"), "-u", net_object]).splitlines()]
    result = {"code_bytes": code, "weight_bytes": constants}
    if target.memory:
        # The net with all that it takes from libraries; what this has beyond the net is theirs.
        together = os.path.join(folder, "together.o")
        script = os.path.join(folder, "together.ld")
        with open(script, "w", encoding="utf-8") as file:
            file.write("SECTIONS { }\n")  # instead of the one of picolibc, which is for programs
        options = ["-nostdlib", "-r", "-Wl,--no-gc-sections", "-T", script]
        libraries = ["-Wl,--start-group", *target.libraries, "-Wl,--end-group"]
        run([target.tool("gcc"), *target.processor, *options, net_object, *libraries, "-o", together])
        result["library_bytes"] = sum(sections_of(target, together)) - code - constants
        result["library_functions"] = sorted(missing)
    return result


def emulator(target, program, options=()):
    return [*target.machine, "-nographic", "-monitor", "none", "-serial", "null", "-icount", "shift=0,sleep=off",
            "-semihosting-config", "enable=on,target=native", *options, "-kernel", program]


def execute(target, program):
    command = emulator(target, program) if target.machine else [program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    text = result.stdout + result.stderr  # QEMU writes semihosting's text to standard error
    if result.returncode:
        sys.exit(f"{shlex.join(command)}\n{text}exit code {result.returncode}")
    figures = {"output": []}
    for name, value in re.findall(r"^(\w+) (\w+)$", text, re.MULTILINE):
        if name == "output":
            figures["output"].append(value)
        else:
            figures[name] = int(value)
    return figures


def executed_instructions(given, target, folder):
    """Returns the instructions per step of a few steps by the board's clock and by QEMU's log of executed instructions,
    both without those of an empty function."""
    steps = 4
    _, program = build(given, target, given.flags, steps, folder)
    address = {}
    for line in run([target.tool("nm"), "-S", program]).splitlines():
        words = line.split()
        if len(words) == 4:
            address[words[3]] = int(words[0], 16), int(words[1], 16)
    caller = range(address["count"][0], sum(address["count"]))
    counts = {address[given.name + "_step"][0]: [], address["idle"][0]: []}
    log = os.path.join(folder, "log")
    os.mkfifo(log)
    command = emulator(target, program, ["-singlestep", "-d", "exec,nochain", "-D", log])
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process, \
            open(log, encoding="utf-8") as lines:
        current = None
        for line in lines:
            if not line.startswith("Trace "):
                continue
            at = int(line.split("/")[1], 16)
            if at in counts:
                current = counts[at]
                current.append(0)
            elif at in caller:
                current = None
            if current:
                current[-1] += 1
        by_clock = int(re.search(r"^instructions (\d+)$", process.stderr.read(), re.MULTILINE)[1])
    step, idle = (sum(values[-steps:]) for values in counts.values())
    return {"by_clock": by_clock / steps, "by_log": (step - idle) / steps}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--net", required=True)
    options.add_argument("--name", default="net")
    options.add_argument("--target", required=True, choices=TARGETS)
    options.add_argument("--steps", type=int, default=1000)
    options.add_argument("--flags", default=FLAGS)
    options.add_argument("--main", default="main.c")
    options.add_argument("--count-executed", action="store_true")
    options.add_argument("--brief", action="store_true")
    given = options.parse_args()
    target = TARGETS[given.target]
    for program in [target.tool("gcc"), *target.machine[:1]]:
        if not shutil.which(program):
            print(f"skipped: {program} is absent")
            return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        net_object, program = build(given, target, given.flags, given.steps, folder)
        result = {"target": given.target, "flags": given.flags}
        figures = execute(target, program)
        with tempfile.TemporaryDirectory() as other:
            host = TARGETS["host"]
            expected = figures if target is host else execute(host, build(given, host, FLAGS, 0, other)[1])
        result["check"] = figures["check"]
        result["outputs"] = figures["output"]
        result["equal_to_host"] = figures["output"] == expected["output"]
        result |= sizes(given, target, net_object, folder)
        result["instance_bytes"] = figures["instance_bytes"]
        if target.machine:
            if figures["stack_idle"] != 0:
                sys.exit(f"an empty function uses {figures['stack_idle']} bytes of stack")
            stack = max(figures["stack_step"], figures["stack_steps"])
            result["stack_bytes"] = stack
            result["ram_bytes"] = figures["instance_bytes"] + stack
            result["instructions_per_step"] = round(figures["instructions"] / given.steps, 1)
            result["counted_loop"] = figures["loop"]
            if given.count_executed:
                result["executed"] = executed_instructions(given, target, folder)
    good = result["check"] == 0 and result["equal_to_host"]
    if given.brief and target.machine:
        named = ["code", "library", "weight", "instance", "stack"]
        print(f"{given.target} {given.flags}: {'equal bits' if good else 'OTHER BITS'},",
              ", ".join(f"{size} {result[size + '_bytes']} B" for size in named) + ",",
              f"{result['instructions_per_step']} instructions per step")
    else:
        print(json.dumps(result, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
