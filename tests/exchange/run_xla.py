#!/usr/bin/env python3
"""Compiles StableHLO programs of ours with XLA for the CPU and runs them. The way in is internal to jax: the versions of
requirements.txt have it.

    python3 tests/exchange/run_xla.py FOLDER
"""
import sys

import jax
import numpy as np
from jax._src import compiler, xla_bridge
from jaxlib import _jax

import exchange
import specialise

def evaluate(text, arguments, _):
    program_bytes = specialise.at_extents_of(text, arguments) if "?" in text else text.encode()
    backend = xla_bridge.get_backend("cpu")
    devices = _jax.DeviceList(tuple(backend.local_devices()[:1]))
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    program = backend.compile_and_load(program_bytes, devices, options)
    results = program.execute_sharded([jax.device_put(np.array(a)) for a in arguments])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    sys.exit(exchange.run(sys.argv[1], evaluate))
