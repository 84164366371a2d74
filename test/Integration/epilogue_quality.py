#!/usr/bin/env python3
"""Epilogues of tensor-core tiles execute hardly more instructions than Triton's.

y[M, 4096] = x[M, 4096] · w[4096, 4096]ᵀ + bias in f16: sums and bias of f32, and sums that are rounded to f16 before a
bias of f16 is added, which lie in 16 bits in shared memory. Each family is given, assembled by ptxas, and read in
machine code (sass.epilogue). benchmarks/tensor_cores/epilogues.py prints what this test counts.
"""

import sys
from dataclasses import dataclass

import harness
import kernel_families
import ptx
import sass

#: Columns and k of the product.
N = K = 4096
#: Type of the sum that the bias is added to, and Triton's instructions that FTuner's may be times at most.
MOST = {"f32": 1.15, "f16": 1.10}


@dataclass(frozen=True)
class Tile:
    """A family's tile along m, n and k, the warps that multiply, and what Triton 3.9.0 executes for it: instructions
    and stall counts; with pointers on sm_80, descriptors on sm_90, masked rows, by ptxas 13.0.88."""
    device: str
    schedule: str
    tile: tuple
    warps: int
    triton: tuple

    @property
    def label(self):
        return f"{self.device}_{'x'.join(map(str, self.tile))}"

    @property
    def product(self):
        """The instruction that multiplies."""
        return "HGMMA" if "wgmma" in self.schedule else "HMMA"

    @property
    def stores(self):
        """Of 16 bytes, by each lane."""
        return self.tile[0] * self.tile[1] * 2 // (self.warps * 32 * 16)


PRODUCERS = "producer_warpgroups = 1, tma = true"
TILES = (
    Tile("a100", "#ukernel.mma<warps = [2, 2], stages = 3, access = 16>", (128, 128, 32), 4, (446, 702)),
    Tile("a100", "#ukernel.mma<warps = [2, 2], stages = 3, access = 16>", (64, 64, 64), 4, (127, 252)),
    Tile("h100", f"#ukernel.wgmma<warpgroups = [2, 1], stages = 3, access = 16, {PRODUCERS}>", (128, 256, 64), 8, (448, 653)),
    Tile("h100", f"#ukernel.wgmma<warpgroups = [1, 1], stages = 4, access = 16, {PRODUCERS}>", (64, 128, 64), 4, (236, 349)),
)
UNALIGNED = {"HMMA": "<#ukernel.mma<warps = [1, 1], stages = 2, access = 1>, axis = 0, tiles = [[16, 16, 32]]>",
             "HGMMA": "<#ukernel.wgmma<warpgroups = [2, 1], stages = 2, access = 1>, axis = 0, tiles = [[128, 16, 64]]>"}


def module(bias):
    """The product with a bias that is added to sums of a type."""
    body = {"f32": """
      %s = arith.addf %a, %v : f32
      %h = arith.truncf %s : f32 to f16""", "f16": """
      %s = arith.truncf %a : f32 to f16
      %h = arith.addf %s, %v : f16"""}[bias]
    return f"""
module attributes {{ukernel.symbols = {{T = #ukernel.range<1 to 4096>}}}} {{
  func.func @layer(%x: tensor<?x{K}xf16> {{ukernel.shape = ["T", {K}]}}, %w: tensor<{N}x{K}xf16>,
                   %bias: tensor<{N}x{bias}>) -> tensor<?x{N}xf16> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x{K}xf16>
    %e = tensor.empty(%t) : tensor<?x{N}xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x{N}xf32>) -> tensor<?x{N}xf32>
    %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                        affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<?x{K}xf16>, tensor<{N}x{K}xf16>) outs(%init : tensor<?x{N}xf32>) -> tensor<?x{N}xf32>
    %o = tensor.empty(%t) : tensor<?x{N}xf16>
    %r = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
                                          affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}}
        ins(%p, %bias : tensor<?x{N}xf32>, tensor<{N}x{bias}>) outs(%o : tensor<?x{N}xf16>) {{
    ^bb0(%a: f32, %v: {bias}, %old: f16):{body}
      linalg.yield %h : f16
    }} -> tensor<?x{N}xf16>
    return %r : tensor<?x{N}xf16>
  }}
}}
"""


def measure(tests, tile, bias):
    """The epilogue of a tile, and the registers of its kernel."""
    name = f"{tile.label}_{bias}"
    families = [f"<{tile.schedule}, axis = 0, tiles = [{list(tile.tile)}]>", UNALIGNED[tile.product]]
    planned, problems = kernel_families.form(
        tests, name, module(bias),
        f"<families = [{', '.join(families)}], choices = [], general = 0, unaligned_general = 1>")
    if problems:
        raise RuntimeError(problems[0])
    text, manifest = tests.translate(planned, f"--device={tile.device}")
    entry = manifest["workloads"][0]["families"][0]["kernel"]
    (kernel,) = [kernel for kernel in manifest["kernels"] if kernel["entry"] == entry]
    (function,) = [function for function in sass.assembled(text, tests.path(name)) if function.name == entry]
    return sass.epilogue(function, tile.product, tile.stores), kernel["resources"]["registers_per_thread"]


def check(tests, tile, bias):
    epilogue, registers = measure(tests, tile, bias)
    tests.describe(f"{tile.label} bias of {bias}", f"{epilogue.instructions} instructions, Triton {tile.triton[0]}")
    if epilogue.instructions > MOST[bias] * tile.triton[0]:
        return [f"{epilogue.instructions} instructions, Triton's {tile.triton[0]}"]
    return []


def main():
    tests, _ = harness.start(__doc__)
    for tool in ("ptxas", "nvdisasm"):
        if not ptx.find_tool(tool):
            sys.exit(f"error: no {tool} found: run tools/setup.sh")
    for tile in TILES:
        for bias in MOST:
            tests.add(f"{tile.label} bias of {bias}", check, tests, tile, bias)
    tests.finish()


if __name__ == "__main__":
    main()
