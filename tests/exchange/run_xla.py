#!/usr/bin/env python3
"""Compiles StableHLO programs of ours with XLA for the CPU and runs them. The way in is internal to jax: the versions of
requirements.txt have it.

    python3 tests/exchange/run_xla.py FOLDER
"""
import sys

import jax
import numpy as np
from jax._src import compiler, xla_bridge
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir

import exchange

MLIR_NAMES = {"bool": "i1", "int8": "i8", "int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64"}


def at_extents_of(text, arguments):
    """A program with open extents at those of its arguments: called by a main with static types, as jax.export does."""
    def typed(array):
        return "tensor<" + "".join(f"{n}x" for n in array.shape) + MLIR_NAMES[str(array.dtype)] + ">"

    def listed(pattern, items):
        return ", ".join(pattern.format(i=i, item=item) for i, item in enumerate(items))

    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        program, = module.body.operations
        takes, gives = ([str(t) for t in types] for types in (program.type.inputs, program.type.results))
        program.attributes["sym_name"] = ir.StringAttr.get("program")
        program.attributes["sym_visibility"] = ir.StringAttr.get("private")
        lines = [f"func.func public @main({listed('%a{i}: {item}', map(typed, arguments))}) -> ({', '.join(gives)}) {{"]
        lines += [f"%b{i} = stablehlo.convert %a{i} : ({typed(a)}) -> {takes[i]}" for i, a in enumerate(arguments)]
        lines += [f"%r:{len(gives)} = call @program({listed('%b{i}', takes)}) : ({', '.join(takes)}) -> "
                  f"({', '.join(gives)})",
                  f"return {listed('%r#{i}', gives)} : {', '.join(gives)}", "}"]
        text = str(module).rstrip()
        module = ir.Module.parse(text[:text.rindex("}")] + "\n".join(lines) + "\n}\n")
        return _jax.mlir.refine_polymorphic_shapes(
            mlir.module_to_bytecode(module), enable_shape_assertions=True, validate_static_shapes=True)


def evaluate(text, arguments, _):
    program_text = at_extents_of(text, arguments) if "?" in text else text.encode()
    backend = xla_bridge.get_backend("cpu")
    devices = _jax.DeviceList(tuple(backend.local_devices()[:1]))
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    program = backend.compile_and_load(program_text, devices, options)
    results = program.execute_sharded([jax.device_put(np.array(a)) for a in arguments])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    sys.exit(exchange.run(sys.argv[1], evaluate))
