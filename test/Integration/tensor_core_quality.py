#!/usr/bin/env python3
"""Every tensor-core kernel selected for layers of language models is tight.

Dense (768 to 2304, as examples/dense.mlir stores it) and the projections of Llama-2-7B (weights N × K), f16 with
f32 sums, M = 1…4096, and Dense in i8, whose weights lie across k. By ptxas and the PTX: no spill, no local memory; in each main loop one barrier, and, of kernels
for aligned operands on sm_80 and newer, nothing but instructions of tensor cores, ldmatrix, asynchronous copies of
16 bytes and integer arithmetic. By the emulator's counters, for a size that each aligned kernel of Dense serves: no
bank conflicts of ldmatrix and of copies.

The same of families with swapped operands that are given, in all layouts, of pairs along n, and of i8 with factors
that lie across k: few of them are selected.

By the machine code of kernels for an A100: a warp issues an iteration of its main loop in little more time than its
products take in the tensor pipe (benchmarks/tensor_cores/main_loops.py prints all of them).

The suite looks at a part: of the layers one for each type, layout and kind of kernel, and of the families that are
given each with one layout or more, and each layout with one or more. `--all` looks at all, on every built-in device of
sm_75 and newer.
"""

import json
import math
import os
import re
import sys
from dataclasses import dataclass

import harness
import kernel_families
import ptx
import sass

#: Layout, N, K and type of the factors.
LAYERS = {
    "dense": ("nn", 2304, 768, "f16"),
    "qkv": ("nt", 12288, 4096, "f16"),
    "out": ("nt", 4096, 4096, "f16"),
    "up": ("nt", 22016, 4096, "f16"),
    "down": ("nt", 4096, 11008, "f16"),
    "dense_i8": ("nn", 2304, 768, "i8"),
}
#: Both types without asynchronous copies, both layouts with them, and slices of k. Bytes with them: GIVEN.
PART = [("dense_i8", "t4"), ("dense", "t4"), ("dense", "a100"), ("down", "a100")]
#: Warps along m and n, and tiles of one or two parts: of swapped operands, and of operands that are not.
SWAPPED = [
    ((1, 1), [(8, 16, 64)]),
    ((1, 4), [(24, 256, 64)]),
    ((1, 2), [(40, 64, 32), (56, 64, 32)]),
    ((2, 2), [(80, 96, 64), (80, 128, 64)]),
    ((1, 8), [(56, 512, 32)]),
]
ALONG_N = [((2, 2), [(128, 96, 32), (128, 128, 32)]), ((1, 3), [(16, 72, 64), (16, 96, 64)])]
BYTES = [
    ((2, 2), [(128, 128, 64)]),
    ((1, 4), [(48, 256, 128)]),
    ((4, 1), [(128, 80, 64), (192, 80, 64)]),
]
SWAPPED_BYTES = [((1, 4), [(32, 256, 128)]), ((2, 2), [(96, 96, 64), (160, 96, 64)])]
#: Swapped, families, and type of the factors.
GIVEN = [
    (True, SWAPPED, "f16"),
    (False, ALONG_N, "f16"),
    (False, BYTES, "i8"),
    (True, SWAPPED_BYTES, "i8"),
]
GIVEN_DEVICES = ("a100", "h200")
#: Few columns and a long k: slices of k serve few rows.
SLICED = [("down", "a100")]
#: Of other layers the suite plans few kernels.
FEW = ("--max-kernels=8",)
#: The emulator runs these sizes at most: in the suite, and by `--all`.
LARGEST_RUN = 96
LARGEST_RUN_OF_ALL = 512
#: What the main loop of an aligned kernel may have beside arithmetic on integers.
ALLOWED = (
    r"^(mma\.sync|ldmatrix|cp\.async|bar\.|barrier\.|bra|mov|setp|selp|add|sub|mul|mad|shl|shr|and|or|xor|cvt\."
    r"[su](32|64)\.[su](32|64)|min|max|not|prmt)"
)
#: Stall counts over cycles of the tensor pipe, at most, from so many products of a warp and iteration on. Those of the
#: former are of tiles with 128 rows or columns.
MOST_STALLS = {64: 1.05, 32: 1.12}
#: Cycles more for each piece of 16 bytes that a thread copies in an iteration, in blocks of so few warps that it copies
#: many: each has the condition that its row exists. Reading rows that do not exist costs more on a GPU
#: (benchmarks/results/h200-2026-11-26/rows_beyond.md), and other blocks of the SM issue meanwhile.
MOST_STALLS_OF_PIECE, FEW_WARPS = 10.7, 2
STALLS_DEVICE = "a100"
#: Of the factors of layers whose stalls are counted, f16.
ELEMENT_BYTES = 2


@dataclass(frozen=True)
class TileLoop:
    """The main loop of a tile of a kernel."""

    kernel: str
    tile: str
    warps: str
    stages: int
    registers: int
    loop: sass.MainLoop
    pipe_cycles: float

    @property
    def ratio(self):
        return self.loop.stalls / self.pipe_cycles


def main_loops(manifest, functions, facts):
    """The main loops of a layer's aligned kernels of mma. `functions`: of sass.functions; `facts`: the device's file."""
    per_cycle = (
        facts["f16_tflops"]
        * 1e6
        / (facts["sm_count"] * facts["clock_mhz"] * facts["warp_schedulers_per_sm"])
    )
    by_name = {function.name: function for function in functions}
    kernels = {kernel["entry"]: kernel for kernel in manifest["kernels"]}
    rows = []
    for family in manifest["workloads"][0]["families"]:
        kernel = kernels.get(family["kernel"])
        if not kernel or family["path"] != "mma" or kernel["alignment_bytes"] != 16:
            continue
        loops = main_loops_of(by_name[kernel["entry"]], family)
        for tile, loop in loops:
            schedule = family["schedule"]
            rows.append(
                TileLoop(
                    kernel["entry"],
                    "x".join(map(str, tile)),
                    f"{schedule['warps_m']}x{schedule['warps_n']}",
                    schedule["stages"],
                    (kernel["resources"] or {}).get("registers_per_thread", 0),
                    loop,
                    loop.products * 2 * 16 * 8 * 16 / per_cycle,
                )
            )
    return rows


def main_loops_of(function, family):
    """Pairs of a tile and its loop, told by its products: a warp's has 16 by 8 by 16 elements."""
    warps = family["schedule"]["warps_m"] * family["schedule"]["warps_n"]
    left = sass.main_loops(function)
    pairs = []
    for part in family["ukernels"]:
        tile = part["block_tile"]
        products = tile[0] * tile[1] * tile[2] // (16 * 8 * 16 * warps)
        loop = next((loop for loop in left if loop.products == products), None)
        # Loops of few steps may be unrolled.
        if loop:
            left.remove(loop)
            pairs.append((tile, loop))
    return pairs


def module(layout, n, k, kind):
    weight, maps = (f"{n}x{k}", "n, k") if layout[1] == "t" else (f"{k}x{n}", "k, n")
    x, shape, rows, lhs = (
        (f"{k}x?", f'{k}, "T"', 1, "k, m")
        if layout[0] == "t"
        else (f"?x{k}", f'"T", {k}', 0, "m, k")
    )
    total, zero, narrows = {
        "i8": ("i32", "0", "arith.trunci %a : i32 to i8"),
        "f16": ("f32", "0.0", "arith.truncf %a : f32 to f16"),
        "f32": ("f32", "0.0", "arith.maximumf %a, %zero : f32"),
    }[kind]
    return f"""
module attributes {{ukernel.symbols = {{T = #ukernel.range<1 to 4096>}}}} {{
  func.func @layer(%x: tensor<{x}x{kind}> {{ukernel.shape = [{shape}]}}, %w: tensor<{weight}x{kind}>)
      -> tensor<?x{n}x{kind}> {{
    %rows = arith.constant {rows} : index
    %zero = arith.constant {zero} : {total}
    %t = tensor.dim %x, %rows : tensor<{x}x{kind}>
    %e = tensor.empty(%t) : tensor<?x{n}x{total}>
    %init = linalg.fill ins(%zero : {total}) outs(%e : tensor<?x{n}x{total}>) -> tensor<?x{n}x{total}>
    %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> ({lhs})>, affine_map<(m, n, k) -> ({maps})>,
                                        affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<{x}x{kind}>, tensor<{weight}x{kind}>) outs(%init : tensor<?x{n}x{total}>)
        -> tensor<?x{n}x{total}>
    %o = tensor.empty(%t) : tensor<?x{n}x{kind}>
    %r = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}}
        ins(%p : tensor<?x{n}x{total}>) outs(%o : tensor<?x{n}x{kind}>) {{
    ^bb0(%a: {total}, %old: {kind}):
      %h = {narrows}
      linalg.yield %h : {kind}
    }} -> tensor<?x{n}x{kind}>
    return %r : tensor<?x{n}x{kind}>
  }}
}}
"""


def check_loop(loop, is_tight):
    problems = []
    if loop.count(r"^(bar|barrier)\.") != 1:
        problems.append(f"{loop.count(r'^(bar|barrier)[.]')} barriers in a main loop")
    if not is_tight:
        return problems
    others = [line for line in loop.instructions if not re.search(ALLOWED, line)]
    if others:
        problems.append(f"in a main loop: {others[:3]}")
    return problems


def check_resources(kernel):
    used = kernel["resources"]
    is_tight = not (used["spill_store_bytes"] or used["spill_load_bytes"] or used["stack_bytes"])
    return [] if is_tight else [f"spills or stack: {used}"]


def check_entry(entry, kernel, version):
    problems = check_resources(kernel)
    if entry.count(r"\.local"):
        problems.append("local memory")
    loops = [loop for loop in entry.loops() if loop.count(r"^mma\.sync")]
    if not loops:
        problems.append("no main loop on tensor cores")
    is_tight = version >= 80 and kernel["alignment_bytes"] == 16
    for loop in loops:
        problems += check_loop(loop, is_tight)
    copies = entry.count(r"^cp\.async\.c[ag]\.")
    wide = entry.count(r"^cp\.async\.cg\.shared\.global \[[^\]]*\], \[[^\]]*\], 16")
    if is_tight and (copies == 0 or copies != wide):
        problems.append(f"{wide} of {copies} copies are cp.async of 16 bytes")
    return problems


def run_counted(tests, path, device, sizes, layout, n, k, kind, flags=()):
    """The counters of the kernels that compute sizes, in one process; those that add slices up come behind them."""
    weight = f"{n}x{k}" if layout[1] == "t" else f"{k}x{n}"
    arguments = [
        f"--args={f'{k}x{size}' if layout[0] == 't' else f'{size}x{k}'}x{kind},{weight}x{kind}"
        for size in sizes
    ]
    result = tests.tool(
        "ftuner-run",
        path,
        "--function=layer",
        *arguments,
        f"--device={device}",
        "--executor=emulator",
        "--counters",
        "--json",
        *flags,
    )
    reports = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if result.returncode != 0 or len(reports) != len(sizes):
        raise RuntimeError(result.stderr)
    return [report["counters"][0] for report in reports]


def conflicts(counters, size):
    problems = []
    for what in ("matrix_load", "copy_target"):
        requests = counters["requests"].get(what)
        if requests and requests["wavefronts"] != requests["ideal_wavefronts"]:
            problems.append(
                f"{counters['kernel']} at M = {size}: bank conflicts of {what}: {requests}"
            )
    return problems


def check_conflicts(tests, path, device, manifest, layer, largest, flags):
    of_family = {}
    for choice in manifest["workloads"][0]["dispatch"]:
        size = choice["box"][0]["min"]
        if size <= largest:
            of_family.setdefault(choice["family"], size)
    sizes = list(of_family.values())
    return [
        problem
        for size, counters in zip(
            sizes, run_counted(tests, path, device, sizes, *LAYERS[layer], flags)
        )
        for problem in conflicts(counters, size)
    ]


def assembled_loops(text, manifest, facts, path):
    """The main loops of a layer's PTX, which is assembled in files that are named by `path`."""
    return main_loops(manifest, sass.assembled(text, path), facts)


def check_stalls(tests, name, text, manifest, facts):
    """What the machine code of main loops is encoded to wait for."""
    rows = assembled_loops(text, manifest, facts, tests.path(name))
    problems = [] if rows else ["no main loop in the machine code"]
    for row in rows:
        is_wide = max(map(int, row.tile.split("x")[:2])) >= 128
        most = next(
            (
                most
                for products, most in MOST_STALLS.items()
                if row.loop.products >= products and (products < 64 or is_wide)
            ),
            None,
        )
        warps = math.prod(map(int, row.warps.split("x")))
        m, n, k = map(int, row.tile.split("x"))
        pieces = (m + n) * k * ELEMENT_BYTES / 16 / (32 * warps) if warps <= FEW_WARPS else 0
        if most and row.loop.stalls > most * row.pipe_cycles + MOST_STALLS_OF_PIECE * pieces:
            problems.append(
                f"{row.kernel}, tile {row.tile}: stall counts of {row.loop.stalls} cycles for "
                f"{row.pipe_cycles:.0f} of the tensor pipe"
            )
    return problems


def compile_layer(tests, path, device, *flags):
    """The PTX, the manifest, its kernels by name, and those on tensor cores in the PTX; or an error."""
    text, manifest = tests.translate(path, f"--device={device}", *flags)
    kernels = {kernel["entry"]: kernel for kernel in manifest["kernels"]}
    return (
        text,
        manifest,
        kernels,
        [entry for entry in ptx.entries(text) if entry.count(r"^mma\.sync")],
    )


def check_given(tests, device, version, layout, kind, swaps, warps, tiles):
    """A family that is given, with accesses of 16 bytes."""
    n, k = 768, 512
    axis = 0 if len(tiles) == 1 or tiles[0][0] != tiles[1][0] else 1

    swapped = ", swap_operands = true" if swaps else ""
    balanced = ", balanced = 108" if len(tiles) == 2 else ""
    family = (
        f"<#ukernel.mma<warps = {list(warps)}, stages = 3, access = 16{swapped}>, axis = {axis}, "
        f"tiles = {[list(tile) for tile in tiles]}{balanced}>"
    )
    unaligned = f"<#ukernel.mma<warps = [1, 1], stages = 2, access = 1{swapped}>, axis = 0, tiles = [[16, 16, 32]]>"
    plan = f"<families = [{family}, {unaligned}], choices = [], general = 0, unaligned_general = 1>"
    name = f"given_{device}_{layout}_{kind}_{swaps}_{'_'.join(map(str, sum(tiles, warps)))}"
    path, problems = kernel_families.form(tests, name, module(layout, n, k, kind), plan)
    if problems:
        return problems
    _, _, kernels, entries = compile_layer(tests, path, device)
    if len(entries) != 2:
        return [f"expected two kernels on tensor cores, but got {len(entries)}"]
    for entry in entries:
        problems += [
            f"{entry.name}: {problem}"
            for problem in check_entry(entry, kernels[entry.name], version)
        ]
    size = 2 * sum(tile[0] for tile in tiles)
    (counters,) = run_counted(tests, path, device, [size], layout, n, k, kind)
    if not counters["requests"].get("matrix_load"):
        problems.append("expected fragments by ldmatrix")
    return problems + conflicts(counters, size)


def check(tests, layer, device, version, facts, largest, flags):
    label = f"{layer} on {device}"
    path = tests.write(f"{layer}_{device}.mlir", module(*LAYERS[layer]))
    text, manifest, kernels, entries = compile_layer(tests, path, device, *flags)
    registers = [kernels[entry.name]["resources"]["registers_per_thread"] for entry in entries]
    if not entries:
        return ["no kernel for tensor cores"]
    (workload,) = manifest["workloads"]
    sums = {family["sum_kernel"] for family in workload["families"] if family["reduce_split"] > 1}
    slices = sum(family["reduce_split"] > 1 for family in workload["families"])
    tests.describe(
        label,
        f"{len(entries)} of {len(kernels) - len(sums)} kernels on tensor cores, "
        f"{min(registers)} to {max(registers)} registers, {slices} with slices of k",
    )
    problems = [
        f"{entry.name}: {problem}"
        for entry in entries
        for problem in check_entry(entry, kernels[entry.name], version)
    ]
    problems += [
        f"{name}: {problem}" for name in sums for problem in check_resources(kernels[name])
    ]
    if (layer, device) in SLICED and slices == 0:
        problems.append("expected kernels with slices of k")
    if layer in ("dense", "dense_i8") and version >= 80:
        problems += check_conflicts(tests, path, device, manifest, layer, largest, flags)
    if device == STALLS_DEVICE and LAYERS[layer][3] == "f16":
        problems += check_stalls(tests, f"{layer}_{device}", text, manifest, facts)
    return problems


def few(given):
    """Of families that are given: each layout of a kind, and each family, once or more."""
    chosen, seen = [], set()
    for fresh in (2, 1):
        for layout, number, kind, swaps, *family in given:
            found = {(kind, swaps, layout), (kind, swaps, number)}
            if len(found - seen) >= fresh:
                chosen.append((layout, number, kind, swaps, *family))
                seen |= found
    return chosen


def main():
    tests, options = harness.start(
        __doc__,
        {
            "--devices": {"required": True, "help": "folder of the built-in devices' JSON files"},
            "--all": {"action": "store_true", "help": "every layer on every device"},
        },
    )
    versions, facts_of = {}, {}
    for name in sorted(os.listdir(options.devices)):
        with open(os.path.join(options.devices, name), encoding="utf-8") as file:
            facts = json.load(file)
        version = int(facts["compute_capability"].replace(".", ""))
        if version >= 75:
            versions[facts["name"]] = version
            facts_of[facts["name"]] = facts
    for tool in ("ptxas", "nvdisasm"):
        if not ptx.find_tool(tool):
            sys.exit(f"error: no {tool} found: run tools/setup.sh")
    cases = [(layer, device) for layer in LAYERS for device in versions] if options.all else PART
    for layer, device in cases:
        tests.add(
            f"{layer} on {device}",
            check,
            tests,
            layer,
            device,
            versions[device],
            facts_of[device],
            LARGEST_RUN_OF_ALL if options.all else LARGEST_RUN,
            () if options.all or (layer, device) in SLICED else FEW,
        )
    # Bytes that lie along k are as 16 bits do.
    given = [
        (layout, number, kind, swaps, *family)
        for swaps, families, kind in GIVEN
        for layout in ("nn", "nt", "tn", "tt")
        for number, family in enumerate(families)
        if (layout, kind) != ("nt", "i8")
    ]
    if not options.all:
        given = few(given)
    for case, (layout, number, kind, swaps, warps, tiles) in enumerate(given):
        # Each is run on one device but by --all.
        for index, device in enumerate(GIVEN_DEVICES):
            if options.all or case % len(GIVEN_DEVICES) == index:
                tests.add(
                    f"{'swapped' if swaps else 'given'} {number} {kind} {layout} on {device}",
                    check_given,
                    tests,
                    device,
                    versions[device],
                    layout,
                    kind,
                    swaps,
                    warps,
                    tiles,
                )
    tests.finish()


if __name__ == "__main__":
    main()
