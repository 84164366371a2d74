#!/usr/bin/env python3
"""Runs epilogues that compute much on tensor cores, in the emulator.

GELU by erf and tanh, SiLU with a gate, and a bias with a residual (epilogue_quality.FUSED), by given families whose
warps fill their staging tiles once, again and again in a loop, and with a rest: rows of the output or, with swapped
operands, columns along the instructions' rows, in 8 or 16 rows; one tile of a block, one behind the other, in
ping-pong, and stored by bulk copies; two heights; and the mma path. Results are compared with the reference's, with bounds and race checks and
shuffled threads. The suite runs cases that have all pairs of properties; with FTUNER_TEST_SCALE above 1 all.
"""

import harness
from epilogue_quality import FUSED, PRODUCERS, UNALIGNED, module
from kernel_families import form, run_planned

N, K = 264, 72
SIZES = (1, 63, 129, 200)
TOLERANCE = 2e-3


def wgmma(tiles, warpgroups=(2, 1), **fields):
    fields = {
        "swap_operands": None,
        "producers": PRODUCERS,
        "persistent": None,
        "ping_pong": None,
        "bulk_stores": None,
    } | fields
    text = ", ".join(
        [f"warpgroups = {list(warpgroups)}", "stages = 3", "access = 16"]
        + [
            value if name == "producers" else f"{name} = {value}"
            for name, value in fields.items()
            if value
        ]
    )
    return f"<#ukernel.wgmma<{text}>, axis = 0, tiles = {[[m, n, 64] for m, n in tiles]}>"


FAMILIES = {
    "whole": wgmma([(128, 256)]),
    "a rest of columns": wgmma([(64, 88)], (1, 1), persistent=132),
    "persistent": wgmma([(128, 192)], persistent=132),
    "bulk stores": wgmma([(128, 96)], persistent=132, bulk_stores="true"),
    "bulk stores, two heights": wgmma(
        [(64, 88), (128, 88)], (1, 1), persistent=132, bulk_stores="true"
    ),
    "swapped": wgmma([(104, 128)], (1, 2), swap_operands="true"),
    "swapped, eights": wgmma([(24, 128), (72, 128)], (1, 2), swap_operands="true", persistent=132),
    "ping-pong": wgmma([(64, 128)], (1, 1), persistent=132, ping_pong="true"),
    "two heights": wgmma([(64, 96), (128, 96)], (1, 1)),
    "mma": "<#ukernel.mma<warps = [2, 2], stages = 3, access = 16>, axis = 0, tiles = [[128, 128, 32]]>",
    "mma, swapped": "<#ukernel.mma<warps = [1, 2], stages = 3, access = 16, swap_operands = true>, axis = 0, "
    "tiles = [[40, 128, 32]]>",
}


def check(h, epilogue, family):
    label = f"{epilogue}_{family}".replace(" ", "_").replace(",", "")
    operands, body = FUSED[epilogue]
    text = module(operands, body, N, K)
    given = [FAMILIES[family], UNALIGNED["HMMA" if "mma<warps" in FAMILIES[family] else "HGMMA"]]
    planned, problems = form(
        h,
        label,
        text,
        f"<families = [{', '.join(given)}], choices = [], general = 0, unaligned_general = 1>",
    )
    if not planned:
        return problems

    def arguments(size):
        extras = "".join(
            f",{f'{size}x' * operand.is_tensor}{N}x{operand.type}" for operand in operands
        )
        return f"{size}x{K}xf16,{N}x{K}xf16{extras}"

    return run_planned(
        h,
        planned,
        h.path(label + ".mlir"),
        "layer",
        "h200",
        [arguments(size) for size in SIZES],
        TOLERANCE,
    )[1]


def main():
    h, _ = harness.start(__doc__)
    harness.add_covering(
        h,
        [
            (
                {"epilogue": epilogue, "family": family},
                f"{epilogue} {family}",
                check,
                h,
                epilogue,
                family,
            )
            for epilogue in FUSED
            for family in FAMILIES
        ],
    )
    h.finish()


if __name__ == "__main__":
    main()
