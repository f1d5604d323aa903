#!/usr/bin/env python3
"""Compiles StableHLO programs of ours with IREE for the CPU and runs them. Code is linked by the system's linker: what
IREE links by itself has no tanh of doubles. Open extents stay open, but for loops that carry more than a state and a
stack: IREE 3.13 loses track of where such values lie where their extents are open (github.com/iree-org/iree/issues/19474
is about these loops), so these programs get the extents of their arguments first.

    python3 tests/exchange/run_iree.py FOLDER
"""
import functools
import re
import sys

import iree.compiler
import iree.runtime
import numpy as np

import exchange


def carries_much(text):
    loops = re.findall(r"stablehlo\.while\(.*?\) : (.*)", text)
    return any("?" in types and types.count("tensor<") > 3 for types in loops)


@functools.cache  # a program with open extents is compiled once for all
def compiled(text):
    flags = ["--iree-llvmcpu-target-cpu=host", "--iree-input-demote-f64-to-f32=false",
             "--iree-llvmcpu-link-embedded=false"]
    return iree.compiler.compile_str(text, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=flags)


def evaluate(text, arguments, _):
    if carries_much(text):
        import specialise
        text = specialise.text_at_extents_of(text, arguments)
    config = iree.runtime.Config("local-task")
    module = iree.runtime.load_vm_module(iree.runtime.VmModule.copy_buffer(config.vm_instance, compiled(text)), config)
    results = module.main(*arguments)
    return [np.asarray(r) for r in (results if isinstance(results, (tuple, list)) else [results])]


if __name__ == "__main__":
    # A broadcast of indices needs more stack than IREE 3.13 gives it.
    sys.exit(exchange.run(sys.argv[1], evaluate, skip=lambda name: name == "MLstm"))
