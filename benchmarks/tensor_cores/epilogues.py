#!/usr/bin/env python3
"""What the epilogues of given tensor-core tiles execute, beside Triton's.

The products, the tiles and what is counted are those of test/Integration/epilogue_quality.py: of a warp and a whole
tile, all instructions behind the products, and the sum of the stall counts that ptxas encodes for them. Of epilogues
that compute much, bytes of machine code of the kernel, and accesses to registers that spill.

Prints a table. --write FILE writes it with the date, the compiler's commit and the version of ptxas. Needs ptxas and
nvdisasm (tools/setup.sh).
"""

import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "Integration"))
import epilogue_quality
import harness
import ptx
from main_loops import write_table


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    for tool in ("ptxas", "nvdisasm"):
        if not ptx.find_tool(tool):
            sys.exit(f"error: no {tool} found: run tools/setup.sh")
    tests = harness.Harness(options.bin_dir)
    lines = [
        "| tile | bias | registers | instructions | Triton's | ratio | stalls | Triton's | ratio |",
        "|" + " --- |" * 9,
    ]
    for tile in epilogue_quality.TILES:
        for bias in epilogue_quality.MOST:
            found, registers = epilogue_quality.measure(tests, tile, bias)
            instructions, stalls = tile.triton
            lines.append(
                f"| {tile.label} | {bias} | {registers} | {found.instructions} | {instructions} | "
                f"{found.instructions / instructions:.2f} | {found.stalls} | {stalls} | "
                f"{found.stalls / stalls:.2f} |"
            )
    lines += [
        "",
        "| epilogue on 128 x 256 tiles | " + " | ".join(epilogue_quality.FUSED_TILES) + " |",
        "|" + " --- |" * (len(epilogue_quality.FUSED_TILES) + 1),
    ]
    for name in epilogue_quality.FUSED:
        found = [
            epilogue_quality.measure_fused(tests, name, tile)
            for tile in epilogue_quality.FUSED_TILES
        ]
        lines.append(
            f"| {name} | "
            + " | ".join(
                f"{size:,} bytes" + (f", {spills} spills" if spills else "")
                for size, spills in found
            )
            + " |"
        )
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.write:
        write_table(options.write, text, "benchmarks/tensor_cores/epilogues.py")


if __name__ == "__main__":
    main()
