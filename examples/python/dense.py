#!/usr/bin/env python3
"""Compiles examples/dense.mlir and compares a dense layer of 53 tokens with NumPy in float64.

Needs no GPU: NumPy arrays run in the emulator.
"""

from math import erf
from pathlib import Path

import numpy as np

import ftuner

source = Path(__file__).resolve().parents[1] / "dense.mlir"
module = ftuner.compile(source, device="h200", emulate=True)
print(module.dense.signature)

rng = np.random.default_rng()
x = rng.standard_normal((53, 768), np.float32)
w = rng.standard_normal((768, 2304), np.float32)
bias = rng.standard_normal(2304, np.float32)
y = module.dense(x, w, bias)

z = x.astype(np.float64) @ w + bias
wanted = z * 0.5 * (1 + np.vectorize(erf)(z / np.sqrt(2)))  # GELU
error = np.linalg.norm(y - wanted) / np.linalg.norm(wanted)
print(f"{y.shape} {y.dtype}, relative error {error:.1e}")
assert error < 1e-6
