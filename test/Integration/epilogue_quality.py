#!/usr/bin/env python3
"""Epilogues of tensor-core tiles execute hardly more instructions than Triton's.

y[M, 4096] = x[M, 4096] · w[4096, 4096]ᵀ + bias in f16: sums and bias of f32, and sums that are rounded to f16 before a
bias of f16 is added, which lie in 16 bits in shared memory. Each family is given, assembled by ptxas, and read in
machine code (sass.epilogue). Epilogues that compute much, GELU, SiLU with a gate, and a bias with a residual, stay
small and hardly spill. benchmarks/tensor_cores/epilogues.py prints what this test counts.
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
    Tile(
        "a100",
        "#ukernel.mma<warps = [2, 2], stages = 3, access = 16>",
        (128, 128, 32),
        4,
        (446, 702),
    ),
    Tile(
        "a100", "#ukernel.mma<warps = [2, 2], stages = 3, access = 16>", (64, 64, 64), 4, (127, 252)
    ),
    Tile(
        "h100",
        f"#ukernel.wgmma<warpgroups = [2, 1], stages = 3, access = 16, {PRODUCERS}>",
        (128, 256, 64),
        8,
        (448, 653),
    ),
    Tile(
        "h100",
        f"#ukernel.wgmma<warpgroups = [1, 1], stages = 4, access = 16, {PRODUCERS}>",
        (64, 128, 64),
        4,
        (236, 349),
    ),
)
UNALIGNED = {
    "HMMA": "<#ukernel.mma<warps = [1, 1], stages = 2, access = 1>, axis = 0, tiles = [[16, 16, 32]]>",
    "HGMMA": "<#ukernel.wgmma<warpgroups = [2, 1], stages = 2, access = 1>, axis = 0, tiles = [[128, 16, 64]]>",
}


def module(operands, body, n=N, k=K):
    """The product of these columns and k with an epilogue of its sum `%a` and of elements `%v0`, `%v1` of operands, which ends in `%h`."""
    types = [f"tensor<{'?x' * operand.is_tensor}{n}x{operand.type}>" for operand in operands]
    shapes = [f' {{ukernel.shape = ["T", {n}]}}' * operand.is_tensor for operand in operands]
    arguments = "".join(
        f", %e{i}: {type}{shape}" for i, (type, shape) in enumerate(zip(types, shapes))
    )
    names = "".join(f", %e{i}" for i in range(len(operands)))
    maps = "".join(
        f"affine_map<(m, n) -> {'(m, n)' if operand.is_tensor else '(n)'}>, "
        for operand in operands
    )
    values = "".join(f", %v{i}: {operand.type}" for i, operand in enumerate(operands))
    return f"""
module attributes {{ukernel.symbols = {{T = #ukernel.range<1 to 4096>}}}} {{
  func.func @layer(%x: tensor<?x{k}xf16> {{ukernel.shape = ["T", {k}]}}, %w: tensor<{n}x{k}xf16>{arguments})
      -> tensor<?x{n}xf16> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x{k}xf16>
    %empty = tensor.empty(%t) : tensor<?x{n}xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
    %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                        affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<?x{k}xf16>, tensor<{n}x{k}xf16>) outs(%init : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
    %o = tensor.empty(%t) : tensor<?x{n}xf16>
    %y = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, {maps}affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}}
        ins(%p{names} : tensor<?x{n}xf32>{"".join(f", {type}" for type in types)}) outs(%o : tensor<?x{n}xf16>) {{
    ^bb0(%a: f32{values}, %old: f16):{body}
      linalg.yield %h : f16
    }} -> tensor<?x{n}xf16>
    return %y : tensor<?x{n}xf16>
  }}
}}
"""


@dataclass(frozen=True)
class Operand:
    """An operand of an epilogue: a tensor of the result's shape, or an element for each column."""

    type: str = "f16"
    is_tensor: bool = False


BIAS, RESIDUAL = Operand(), Operand(is_tensor=True)
#: Bodies that add a bias of a type to sums.
BIASES = {
    "f32": """
      %s = arith.addf %a, %v0 : f32
      %h = arith.truncf %s : f32 to f16""",
    "f16": """
      %s = arith.truncf %a : f32 to f16
      %h = arith.addf %s, %v0 : f16""",
}
GELU = """
      %b = arith.extf %v0 : f16 to f32
      %x0 = arith.addf %a, %b : f32{inner}
      %one = arith.constant 1.0 : f32
      %half = arith.constant 0.5 : f32
      %g1 = arith.addf %g, %one : f32
      %x1 = arith.mulf %x0, %half : f32
      %r = arith.mulf %x1, %g1 : f32
      %h = arith.truncf %r : f32 to f16"""
#: Epilogues that compute much: operands beside the sum, and bodies.
FUSED = {
    "gelu_erf": (
        [BIAS],
        GELU.format(
            inner="""
      %c = arith.constant 0.70710678 : f32
      %q = arith.mulf %x0, %c : f32
      %g = math.erf %q : f32"""
        ),
    ),
    "gelu_tanh": (
        [BIAS],
        GELU.format(
            inner="""
      %cubic = arith.constant 0.044715 : f32
      %c = arith.constant 0.79788456 : f32
      %x2 = arith.mulf %x0, %x0 : f32
      %x3 = arith.mulf %x2, %x0 : f32
      %x4 = arith.mulf %x3, %cubic : f32
      %x5 = arith.addf %x4, %x0 : f32
      %q = arith.mulf %x5, %c : f32
      %g = math.tanh %q : f32"""
        ),
    ),
    "silu_gate": (
        [RESIDUAL],
        """
      %gate = arith.extf %v0 : f16 to f32
      %one = arith.constant 1.0 : f32
      %minus = arith.negf %a : f32
      %power = math.exp %minus : f32
      %below = arith.addf %power, %one : f32
      %s = arith.divf %a, %below : f32
      %r = arith.mulf %s, %gate : f32
      %h = arith.truncf %r : f32 to f16""",
    ),
    "bias_residual": (
        [BIAS, RESIDUAL],
        """
      %b = arith.extf %v0 : f16 to f32
      %y0 = arith.extf %v1 : f16 to f32
      %s = arith.addf %a, %b : f32
      %r = arith.addf %s, %y0 : f32
      %h = arith.truncf %r : f32 to f16""",
    ),
}
#: Most bytes of machine code of a kernel with one of them.
MOST_CODE = 40 * 1024


#: Families of 128 x 256 tiles: rows of the output by both warpgroups, one block a tile or one behind the other, and
#: operands swapped.
FUSED_TILES = {
    "whole": f"<#ukernel.wgmma<warpgroups = [2, 1], stages = 3, access = 16, {PRODUCERS}>, axis = 0, tiles = [[128, 256, 64]]>",
    "persistent": f"<#ukernel.wgmma<warpgroups = [2, 1], stages = 3, access = 16, {PRODUCERS}, persistent = 132>, "
    "axis = 0, tiles = [[128, 256, 64]]>",
    "swapped": f"<#ukernel.wgmma<warpgroups = [1, 2], stages = 3, access = 16, swap_operands = true, {PRODUCERS}, "
    "persistent = 132>, axis = 0, tiles = [[128, 256, 64]]>",
}


def measure_fused(tests, name, tile):
    """Bytes of machine code of a kernel with an epilogue of FUSED, and accesses to registers that spill."""
    label = f"{name}_{tile}"
    planned, problems = kernel_families.form(
        tests,
        label,
        module(*FUSED[name]),
        f"<families = [{FUSED_TILES[tile]}, {UNALIGNED['HGMMA']}], choices = [], general = 0, unaligned_general = 1>",
    )
    if problems:
        raise RuntimeError(problems[0])
    text, manifest = tests.translate(planned, "--device=h100")
    entry = manifest["workloads"][0]["families"][0]["kernel"]
    (function,) = [
        function for function in sass.assembled(text, tests.path(label)) if function.name == entry
    ]
    spills = sum(instruction.name in ("LDL", "STL") for instruction in function.instructions)
    return 16 * len(function.instructions), spills


#: Accesses to registers that spill, where there are any: quotients beside 128 accumulators.
SPILLS = {("silu_gate", "persistent"): 38}


def check_fused(tests, name, tile):
    size, spills = measure_fused(tests, name, tile)
    tests.describe(f"{name} {tile}", f"{size} bytes, {spills} spills")
    problems = []
    if spills > SPILLS.get((name, tile), 0):
        problems.append(f"{spills} accesses to registers that spill")
    if size > MOST_CODE:
        problems.append(f"{size} bytes of machine code, expected at most {MOST_CODE}")
    return problems


def measure(tests, tile, bias):
    """The epilogue of a tile, and the registers of its kernel."""
    name = f"{tile.label}_{bias}"
    families = [
        f"<{tile.schedule}, axis = 0, tiles = [{list(tile.tile)}]>",
        UNALIGNED[tile.product],
    ]
    planned, problems = kernel_families.form(
        tests,
        name,
        module([Operand(bias)], BIASES[bias]),
        f"<families = [{', '.join(families)}], choices = [], general = 0, unaligned_general = 1>",
    )
    if problems:
        raise RuntimeError(problems[0])
    text, manifest = tests.translate(planned, f"--device={tile.device}")
    entry = manifest["workloads"][0]["families"][0]["kernel"]
    (kernel,) = [kernel for kernel in manifest["kernels"] if kernel["entry"] == entry]
    (function,) = [
        function for function in sass.assembled(text, tests.path(name)) if function.name == entry
    ]
    return sass.epilogue(function, tile.product, tile.stores), kernel["resources"][
        "registers_per_thread"
    ]


def check(tests, tile, bias):
    epilogue, registers = measure(tests, tile, bias)
    tests.describe(
        f"{tile.label} bias of {bias}",
        f"{epilogue.instructions} instructions, Triton {tile.triton[0]}",
    )
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
    for name in FUSED:
        for tile in FUSED_TILES:
            tests.add(f"{name} {tile}", check_fused, tests, name, tile)
    tests.finish()


if __name__ == "__main__":
    main()
