#!/usr/bin/env python3
"""Verifies and evaluates StableHLO programs of ours with the reference interpreter that jaxlib holds.

    python3 tests/exchange/check_stablehlo.py FOLDER
"""
import sys

import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

import exchange


def evaluate(text, arguments, _):
    module = ir.Module.parse(text)
    module.operation.verify()
    attributes = [ir.DenseElementsAttr.get(np.array(a, order="C")) for a in arguments]
    return [np.array(r) for r in stablehlo.eval_module(module, attributes)]


if __name__ == "__main__":
    with make_ir_context():
        sys.exit(exchange.run(sys.argv[1], evaluate))
