#!/usr/bin/env python3
"""Compiles StableHLO programs of ours with IREE for the CPU and runs them. Code is linked by the system's linker: what
IREE links by itself has no tanh of doubles.

    python3 tests/exchange/run_iree.py FOLDER
"""
import sys

import iree.compiler
import iree.runtime
import numpy as np

import exchange


def evaluate(text, arguments, _):
    flags = ["--iree-llvmcpu-target-cpu=host", "--iree-input-demote-f64-to-f32=false",
             "--iree-llvmcpu-link-embedded=false"]
    binary = iree.compiler.compile_str(text, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=flags)
    config = iree.runtime.Config("local-task")
    module = iree.runtime.load_vm_module(iree.runtime.VmModule.copy_buffer(config.vm_instance, binary), config)
    results = module.main(*arguments)
    return [np.asarray(r) for r in (results if isinstance(results, (tuple, list)) else [results])]


if __name__ == "__main__":
    sys.exit(exchange.run(sys.argv[1], evaluate))
