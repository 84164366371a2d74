#!/usr/bin/env python3
"""Calls `batch` of a library in the emulator: tensor_maps.py LIBFTRT LIBRARY.

Products of random shapes, aligned and not, against NumPy: by the function, and
by a kernel with tensor maps that is launched as its manifest describes it.
"""

import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "benchmarks" / "gpu"))
from ftuner_bench import runtime

ALIGNMENT = 16


def tensor(random, shape, dtype=np.float16, shift=0):
    """Random floats, `shift` bytes behind a multiple of the alignment."""
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    memory = np.zeros(size + 2 * ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT + shift
    result = memory[start : start + size].view(dtype).reshape(shape)
    result[...] = random.uniform(-1, 1, shape)
    return result


class Products:
    def __init__(self, api, path):
        self.api, self.library = api, runtime.Library(api, path)
        self.stream = api.emulator_stream()
        self.function = self.library.function("batch", 3, 6)
        self.manifest = json.loads(self.library.module.manifest)
        seed = np.random.SeedSequence().entropy
        print("seed", seed)
        self.random = np.random.default_rng(seed)

    def check(self, batches, m, n, k, compute, shift=0):
        a = tensor(self.random, (batches, m, k), shift=shift)
        b = tensor(self.random, (batches, k, n))
        got = tensor(self.random, (batches, m, n), np.float32)
        got[...] = np.nan
        compute(a, b, got)
        expected = np.matmul(a.astype(np.float64), b)
        error = np.linalg.norm(got - expected) / max(np.linalg.norm(expected), 1e-30)
        assert error < 1e-5, (shift, batches, m, n, k, error)

    def call(self, a, b, result):
        self.function(
            *(array.ctypes.data for array in (a, b, result)), *a.shape, *b.shape, 0, self.stream
        )

    def mapped(self):
        """A family without slices whose kernel takes maps."""
        kernels = {kernel["entry"]: kernel for kernel in self.manifest["kernels"]}
        workload = next(one for one in self.manifest["workloads"] if one["name"] == "batch_0")
        return next(
            (family, kernels[family["kernel"]])
            for family in workload["families"]
            if family["reduce_split"] == 1
            and any(one["kind"] == "tensor_map" for one in kernels[family["kernel"]]["parameters"])
        )

    def launch(self, a, b, result):
        """What a host does that knows nothing but the manifest."""
        family, kernel = self.mapped()
        pointers = {"lhs": a, "rhs": b, "output": result}
        pointers = {name: array.ctypes.data for name, array in pointers.items()}
        (batches, m, k), n = a.shape, b.shape[2]
        # All blocks are of the last uKernel.
        numbers = {"b0": batches, "m": m, "n": n, "k": k, "first_part_blocks": 0}
        for name, array in (("lhs", a), ("rhs", b), ("output", result)):
            for dim, stride in enumerate(array.strides):
                numbers[f"{name}_stride{dim}"] = stride // array.itemsize
        parameters = []
        for one in kernel["parameters"]:
            value = pointers.get(one["name"], numbers.get(one["name"]))
            if one["kind"] == "tensor_map":
                sizes, strides = (
                    [numbers.get(extent, extent) for extent in one[key]]
                    for key in ("sizes", "strides")
                )
                value = self.api.tensor_map(
                    kernel["entry"], one, pointers[one["pointer"]], sizes, strides, self.stream
                )
            parameters.append((one["kind"], one["type"], value))
        rows, columns = family["ukernels"][-1]["block_tile"][:2]
        grid = runtime.blocks_of(family, batches * -(-m // rows) * -(-n // columns))
        address = self.library.kernels()[kernel["entry"]]
        runtime.Launch(
            self.api,
            address,
            grid,
            kernel["block"][0],
            kernel["dynamic_shared_memory_bytes"],
            parameters,
        )(self.stream)


def main():
    products = Products(runtime.Runtime(pathlib.Path(sys.argv[1])), sys.argv[2])
    for _ in range(4):
        batches, m = (int(size) for size in products.random.integers(1, 6, 2))
        n, k = (8 * int(size) for size in products.random.integers(1, 21, 2))
        for shift in (0, 2, 4, 8):
            products.check(batches, m, n, k, products.call, shift)
            products.check(batches, m, n, k, products.call, shift)
        # Rows that are not aligned, and no rows.
        products.check(batches, m, n + 1, k, products.call)
        products.check(batches, m, n, k + 4, products.call)
        products.check(batches, m, n, 0, products.call)
        products.check(batches, m, n, k, products.launch)
    # Whoever launches such a kernel on what is not aligned is told.
    try:
        products.check(2, 3, 8, 8, products.launch, shift=8)
    except runtime.RuntimeFailure as error:
        print(error)


if __name__ == "__main__":
    main()
