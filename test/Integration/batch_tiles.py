#!/usr/bin/env python3
"""Runs kernels whose blocks compute several elements of batch axes, in the emulator.

Given families of the SIMT path: one and several threads along the batch, less
and more than a warp for each element, several batch axes, factors that lack one,
dynamic batches that tiles pad, slices of k, pairs of two heights along a batch
axis; and threads with strips of any width (virtual threads). The same of the mma
path, whose groups of warps have an element each, with every type. Results are
compared with the reference's, with bounds and race checks and shuffled threads.
The suite runs cases that have all pairs of properties (a kind, a property of the tile, of
an operand's layout, a type), each on one of the devices; with FTUNER_TEST_SCALE above 1
all cases on all devices.
"""

import json
import math

import harness
from batches import Batched, grid
from kernel_families import family, form, run
from models import Matmul

LENGTHS = (1, 5, 12, 21)


def products(b="B", n=20, k=24, **options):
    """Batches of A · B in both layouts of attention's products."""
    extents = {"b": b, "m": "S", "n": n, "k": k}
    return [
        ("nn", Batched("bmk", "bkn", "bmn", extents, named=True, **options)),
        ("nt", Batched("bmk", "bnk", "bmn", extents, **options)),
        ("tn", Batched("bkm", "bkn", "bmn", extents, **options)),
    ]


def of_layout(layout):
    """Properties of a case: the layout of each factor."""
    return {"a": layout[0], "b": layout[1]}


# Block tile along m, n, k and the batch axis, register tile along m and n, and fields of the schedule.
TILES = {
    # Of the published plans for batches (docs/search.md): 8 × 8 × 2 with one element a thread, 4 × 7 × 32.
    "8 x 8 x 2": ((8, 2, 16, 8), (1, 1), {"threads_batch": 8}),
    "4 x 7 x 32": ((7, 32, 16, 4), (7, 1), {"threads_batch": 4, "virtual_threads_m": 7}),
    "2 x 66 x 64": ((66, 64, 16, 2), (33, 2), {"threads_batch": 2, "virtual_threads_n": 2}),
    "8 x 1 x 16": ((1, 16, 16, 8), (1, 1), {"threads_batch": 8}),
    "4 x 24 x 8 in fours of a thread": ((24, 8, 8, 4), (3, 1), {"threads_batch": 1}),
    "6 x 8 x 8 by three": ((8, 8, 12, 6), (2, 2), {"threads_batch": 2}),
    "32 x 1 x 1": ((1, 1, 8, 32), (1, 1), {"threads_batch": 32}),
    "4 x 8 x 32, k in fives": ((8, 32, 5, 4), (2, 4), {"threads_batch": 4, "virtual_threads_n": 4}),
}


def shared_loads(h, label, model, families, size, precision="f32"):
    """Wavefronts of loads from shared memory by families[0], and the least that they could take; (counts, problems).
    The last family takes operands of any alignment."""
    plan = (
        f"<families = [{', '.join(families)}], choices = [], general = 0, "
        f"unaligned_general = {len(families) - 1}>"
    )
    planned, problems = form(h, label.replace(" ", "_"), model.text(), plan, precision)
    if not planned:
        return None, problems
    result = h.tool(
        "ftuner-run",
        planned,
        f"--function={model.name}",
        "--device=h200",
        "--executor=emulator",
        "--counters",
        "--json",
        f"--args={model.args(**size)}",
    )
    if result.returncode != 0:
        return None, [result.stderr]
    loads = json.loads(result.stdout)["counters"][0]["requests"]["shared_load"]
    return (loads["wavefronts"], loads["ideal_wavefronts"]), []


def without_conflicts(h, label, model, given, size):
    counts, problems = shared_loads(h, label, model, [given], size)
    if counts and counts[0] != counts[1]:
        problems.append(
            f"expected loads without bank conflicts, but got {counts[0]} wavefronts for {counts[1]}"
        )
    return problems


def strip_conflicts(h):
    """Gensor's formula 3 (docs/search.md): of 8 lanes with 8 columns each, 64 words, one strip meets each of 32 banks
    twice, and two strips meet none."""
    model = Matmul(n=128, k=32)
    ratios = {}
    for strips in (1, 2):
        given = family([((32, 128, 16), (4, 8, 1))], virtual_threads_n=strips)
        counts, problems = shared_loads(h, f"strips {strips}", model, [given], {"T": 32})
        if not counts:
            return problems
        ratios[strips] = counts[0] / counts[1]
    return (
        []
        if ratios[2] == 1 and ratios[1] > 1.3
        else [f"expected conflicts of one strip alone, but got {ratios}"]
    )


def strips(h, devices):
    """Threads with strips of any width, of one product."""
    chosen = []
    cases = [
        ((12, 48, 16), (3, 6), {"virtual_threads_m": 1, "virtual_threads_n": 2}),
        ((24, 80, 8), (6, 5), {"virtual_threads_m": 2, "virtual_threads_n": 1}),
        ((28, 56, 12), (7, 7), {"virtual_threads_m": 7, "virtual_threads_n": 1}),
        ((32, 64, 16), (8, 8), {"virtual_threads_m": 1, "virtual_threads_n": 1}),
        ((16, 144, 24), (2, 9), {"virtual_threads_m": 2, "virtual_threads_n": 9}),
        ((26, 48, 16), (13, 3), {}),
        ((16, 24, 8), (1, 3), {"virtual_threads_n": 3}),
        ((20, 8, 16), (5, 1), {}),
    ]
    for number, (tile, register, fields) in enumerate(cases):
        for transposed in range(4):
            model = Matmul(
                n=52,
                k=44,
                transpose_a=transposed % 2 == 1,
                transpose_b=transposed > 1,
                epilogue="chain",
            )
            label = f"strips {tile} {register} {fields} {transposed}".translate(
                str.maketrans("", "", "{}()',:")
            )
            threads = tile[0] // register[0] * (tile[1] // register[1])
            assert threads % 32 == 0, (tile, register)
            part = [(tile, (*register, 1))]
            for device in harness.share(devices, number + transposed + transposed // 2):
                wide = all(size % 4 == 0 for size in tile)
                given = [family(part, vector=4 if wide else 1, **fields), family(part, **fields)]
                properties = {"tile": number, "a": transposed % 2, "b": transposed // 2}
                chosen.append(
                    (
                        properties,
                        f"{label} {device}",
                        run,
                        h,
                        f"{label} {device}",
                        model,
                        given,
                        device,
                        [{"T": t} for t in (1, 28, 53)],
                        (),
                    )
                )
    harness.add_covering(h, chosen)


def mma(batch_axes, warps, warp_tile, batch, depth, stages=2, access=16, swaps=False, split=1):
    """A family of the mma path: elements of a warp along m and n, and of a block along batch axes."""
    groups = math.prod(batch)
    tile = [*(count * size for count, size in zip(warps, warp_tile)), depth, *batch]
    tile += [1] * (3 + batch_axes - len(tile))
    return (
        f"<#ukernel.mma<warps = {list(warps)}, stages = {stages}, access = {access}"
        + (", swap_operands = true" if swaps else "")
        + (f", warps_batch = {groups}" if groups > 1 else "")
        + f">, axis = 0, tiles = [{tile}]"
        + (f", split = {split}" if split != 1 else "")
        + ">"
    )


# Type of factors: bytes, its devices, and what results may be off by.
MMA_TYPES = {
    "f16": (2, ("h200", "a100", "t4"), 1e-5),
    "bf16": (2, ("h200", "a100"), 1e-5),
    "i8": (1, ("t4", "h200", "a100"), 0),
    "f32": (4, ("a100", "h200"), 2e-3),
}
# Warps along m and n of an element, fragments of 16 and 8 of a warp, elements, swapped operands.
MMA_TILES = [
    ((1, 1), (1, 2), 4, False),
    ((1, 2), (1, 2), 2, False),
    ((2, 1), (2, 4), 2, True),
    ((1, 1), (2, 2), 8, True),
    ((1, 1), (1, 2), 3, False),
    ((3, 1), (1, 2), 2, False),
]


def precision_of(factors):
    """To what the compiler may round f32."""
    return "tf32" if factors == "f32" else "f32"


def same_wavefronts(h, label, model, plans, size, precision):
    """Loads from shared memory take the same wavefronts by the families of each plan."""
    counts = []
    for number, families in enumerate(plans):
        found, problems = shared_loads(h, f"{label} {number}", model, families, size, precision)
        if not found:
            return problems
        counts.append(found)
    return (
        [] if len(set(counts)) == 1 else [f"expected equal wavefronts of loads, but got {counts}"]
    )


def tensor_cores(h):
    """Groups of warps of the mma path."""
    cases = []

    def properties_of(kind, tile, factors, **others):
        warps, fragments, batch, swaps = tile
        return {
            "kind": kind,
            "warps": math.prod(warps) > 1,
            "fragments": math.prod(fragments) > 2,
            "elements": batch,
            "swapped": swaps,
            "factors": factors,
            **others,
        }

    def add(
        kind,
        label,
        model,
        sizes,
        batch_axes,
        tile,
        factors="f16",
        flags=(),
        properties=None,
        **options,
    ):
        label = f"{kind} {label}"
        element, devices, tolerance = MMA_TYPES[factors]
        warps, fragments, batch, swaps = tile
        warp_tile = [count * size for count, size in zip(fragments, (8, 16) if swaps else (16, 8))]
        depth = options.pop("steps", 1) * 32 // element
        split = options.pop("split", 1)
        for device in harness.share(devices, len(cases)):
            is_old = device == "t4" or options.get("access", 16) == 1 or model.scales
            stages = 2 if is_old else options.get("stages", 3)
            common = (batch_axes, warps, warp_tile, batch, depth)
            access = options.get("access", 16)
            given = [mma(*common, stages, access, swaps, split)]
            if access > 1:
                given.append(mma(*common, 2, 1, swaps))
            has = properties_of(kind, tile, factors, **properties)
            cases.append(
                (
                    has,
                    f"mma {label} {device}",
                    run,
                    h,
                    f"mma {label} {device}",
                    model,
                    given,
                    device,
                    sizes,
                    flags,
                    precision_of(factors),
                    tolerance,
                )
            )

    sizes = grid(B=(1, 3, 9), S=(1, 5, 24, 37))
    for number, (warps, fragments, batch, swaps) in enumerate(MMA_TILES):
        for turn, factors in enumerate(MMA_TYPES):
            models = products(n=32, k=64 if number % 2 else 96, factors=factors)
            for layout, model in harness.share(models, number + turn):
                add(
                    "groups",
                    f"{factors} {layout} {batch} of {warps[0]} by {warps[1]} {'swapped' if swaps else ''}",
                    model,
                    sizes,
                    1,
                    (warps, fragments, (batch,), swaps),
                    factors,
                    properties=of_layout(layout),
                    steps=1 + number % 2,
                )
    # Whole tiles: warps read their matrices as if each had a block of its own.
    for number, (warps, fragments, batch, swaps) in enumerate(MMA_TILES):
        warp_tile = [count * size for count, size in zip(fragments, (8, 16) if swaps else (16, 8))]
        m, n = (count * size for count, size in zip(warps, warp_tile))
        for turn, factors in enumerate(MMA_TYPES):
            depth = (1 + number % 2) * 32 // MMA_TYPES[factors][0]
            layout, model = products(b=2 * batch, n=2 * n, k=2 * depth, factors=factors)[
                (number + turn) % 3
            ]
            plans = [
                [
                    mma(1, warps, warp_tile, (elements,), depth, 2, access, swaps)
                    for access in (16, 1)
                ]
                for elements in (1, batch)
            ]
            label = f"mma wavefronts {factors} {layout} tile {number}"
            properties = properties_of(
                "wavefronts", (warps, fragments, (batch,), swaps), factors, **of_layout(layout)
            )
            cases.append(
                (
                    properties,
                    label,
                    same_wavefronts,
                    h,
                    label,
                    model,
                    plans,
                    {"S": 2 * m},
                    precision_of(factors),
                )
            )
    # Extents that change the alignment from element to element, epilogues with batch axes, an init, slices, a prologue.
    odd = {"b": "B", "m": "S", "n": 21, "k": 19}
    for number, (warps, fragments, batch, swaps) in enumerate(MMA_TILES):
        tile = (warps, fragments, (batch,), swaps)
        for lhs, rhs in (("bmk", "bkn"), ("bkm", "bnk")):
            label, operands = f"{lhs} {rhs} tile {number}", {"a": lhs, "b": rhs}
            add(
                "odd",
                label,
                Batched(
                    lhs, rhs, "bmn", odd, extras=("bmn", "n", "bm", "bn"), relu=True, factors="f16"
                ),
                sizes,
                1,
                tile,
                properties=operands,
                access=1,
            )
            add(
                "init",
                label,
                Batched(
                    lhs,
                    rhs,
                    "bmn",
                    {**odd, "n": 24, "k": 40},
                    init="tensor",
                    scale=True,
                    extras=("bn",),
                    factors="f16",
                ),
                sizes,
                1,
                tile,
                properties=operands,
            )
            add(
                "slices",
                label,
                Batched(lhs, rhs, "bmn", {**odd, "n": 24, "k": 136}, extras=("bn",), factors="f16"),
                sizes,
                1,
                tile,
                properties=operands,
                split=3,
            )
            for scales in ("bm", "bk", "mk", "b"):
                add(
                    f"prologue {scales}",
                    label,
                    Batched(
                        lhs, rhs, "bmn", {**odd, "n": 24, "k": 40}, factors="f16", scales=scales
                    ),
                    sizes,
                    1,
                    tile,
                    properties=operands,
                )
    # Fixed batches that tiles divide and that they pad.
    for b in (8, 5):
        for layout, model in products(b=b, n=40, k=64, factors="f16", extras=("bmn",)):
            add(
                f"batch of {b}",
                layout,
                model,
                grid(S=(1, 16, 33)),
                1,
                ((1, 1), (1, 3), (4,), False),
                properties=of_layout(layout),
            )
    harness.add_covering(h, cases)
    # Two batch axes, and factors that lack one.
    cases = []
    heads = {"b": "B", "h": 3, "m": "S", "n": "T", "k": 16}
    two = grid(B=(1, 3), S=(1, 13, 24), T=(2, 9, 40))
    for batch in ((1, 3), (2, 3), (4, 1), (2, 2)):
        for lhs, rhs in (("bmhk", "bnhk"), ("bhmk", "hkn"), ("bhkm", "bnhk"), ("bmk", "bhnk")):
            add(
                "two batch axes",
                f"{batch[0]} by {batch[1]} {lhs} {rhs}",
                Batched(lhs, rhs, "bhmn", heads, batch=2, extras=("bmn",), factors="f16"),
                two,
                2,
                ((1, 1), (1, 2), batch, False),
                properties={"b": batch[0], "h": batch[1], "operands": f"{lhs} {rhs}"},
            )
    harness.add_covering(h, cases)


def main():
    h, options = harness.start(__doc__, {"--devices": {"default": "h200,t4"}})
    devices = options.devices.split(",")

    cases = []

    def add(properties, label, model, sizes, batch_axes, parts, vector=1, flags=(), **fields):
        for device in harness.share(devices, len(cases)):
            given = [family(parts, 2, vector, batch_axes, **fields)]
            if vector > 1:
                given.append(family(parts[-1:], 2, 1, batch_axes, **{**fields, "split": 1}))
            cases.append(
                (
                    properties,
                    f"{label} {device}",
                    run,
                    h,
                    f"{label} {device}",
                    model,
                    given,
                    device,
                    sizes,
                    flags,
                )
            )

    sizes = grid(B=(1, 2, 9, 17), S=LENGTHS)
    for number, (label, (tile, register, fields)) in enumerate(TILES.items()):
        for layout, model in products():
            wide = 4 if all(size % 4 == 0 for size in tile[:3]) else 1
            add(
                {"kind": "product", "tile": label, **of_layout(layout)},
                f"{label} {layout}",
                model,
                sizes,
                1,
                [(tile, (*register, 1))],
                vector=wide,
                **fields,
            )
    for label, (tile, register, fields) in TILES.items():
        if tile[3] == 32:  # A warp that reads 32 matrices.
            continue
        for layout, model in products(b=16, n=64, k=48):
            given = family([(tile, (*register, 1))], batch_axes=1, **fields)
            cases.append(
                (
                    {"kind": "conflicts", "tile": label, **of_layout(layout)},
                    f"conflicts {label} {layout}",
                    without_conflicts,
                    h,
                    f"conflicts {label} {layout}",
                    model,
                    given,
                    {"S": 66},
                )
            )
    h.add("conflicts of strips", strip_conflicts, h)
    # Rows of lengths that change the alignment from element to element, and an epilogue with a batch axis.
    odd = {"b": "B", "m": "S", "n": 21, "k": 19}
    for label in ("8 x 8 x 2", "6 x 8 x 8 by three"):
        tile, register, fields = TILES[label]
        add(
            {"kind": "odd", "tile": label},
            f"odd {label}",
            Batched("bmk", "bkn", "bmn", odd, extras=("bmn", "n", "bm"), relu=True),
            sizes,
            1,
            [(tile, (*register, 1))],
            **fields,
        )
        add(
            {"kind": "init", "tile": label},
            f"init {label}",
            Batched("bmk", "bnk", "bmn", odd, init="tensor", scale=True),
            sizes,
            1,
            [(tile, (*register, 1))],
            **fields,
        )
        add(
            {"kind": "slices", "tile": label},
            f"slices {label}",
            Batched("bmk", "bkn", "bmn", {**odd, "k": 90}),
            sizes,
            1,
            [(tile, (*register, 1))],
            split=3,
            **fields,
        )
    # Heads inside: strided batch axes, two of them, and factors that lack one.
    heads = {"b": "B", "h": 3, "m": "S", "n": "T", "k": 16}
    two = grid(B=(1, 3), S=(1, 13), T=(2, 9))
    for axes, tile, batch in (
        ("heads", (8, 8, 8, 1, 3), 3),
        ("both", (8, 8, 8, 2, 3), 6),
        ("batch", (8, 8, 8, 4, 1), 4),
    ):
        part = [(tile, (2, 1, 1))]
        for number, (lhs, rhs) in enumerate((("bmhk", "bnhk"), ("bhmk", "hkn"), ("bhkm", "bnhk"))):
            add(
                {"kind": axes, "operands": number},
                f"{axes} {lhs} {rhs}",
                Batched(lhs, rhs, "bhmn", heads, batch=2, extras=("bmn",)),
                two,
                2,
                part,
                threads_batch=batch,
            )
    # Two heights along a batch axis, the batch between them and m.
    for layout, model in products():
        parts = [((8, 16, 8, 2), (2, 2, 1)), ((8, 16, 8, 3), (2, 2, 1))]
        add(
            {"kind": "pairs of batches", **of_layout(layout)},
            f"pairs of batches {layout}",
            model,
            grid(B=(1, 2, 4, 5, 6, 7, 13), S=(3, 9)),
            1,
            parts,
            axis=3,
        )
    # Two widths along n, of one product and of a batch.
    for parts, fields in (
        ([((16, 24, 8), (2, 3, 1)), ((16, 32, 8), (2, 4, 1))], {}),
        ([((16, 20, 12), (2, 5, 1)), ((16, 36, 12), (2, 9, 1))], {}),
        ([((24, 16, 16), (3, 4, 1)), ((24, 32, 16), (3, 8, 1))], {"virtual_threads_n": 4}),
    ):
        for layout in range(4):
            model = Matmul(
                n="N", k=44, transpose_a=layout % 2 == 1, transpose_b=layout > 1, epilogue="chain"
            )
            add(
                {
                    "kind": "pairs of columns",
                    "parts": str(parts),
                    "a": layout % 2,
                    "b": layout // 2,
                },
                f"pairs of columns {parts[0][0]} {layout}".translate(str.maketrans("", "", "(),")),
                model,
                grid(T=(1, 13, 40), N=(1, 24, 56, 88, 100)),
                0,
                parts,
                axis=1,
                **fields,
            )
    harness.add_covering(h, cases)
    strips(h, devices)
    tensor_cores(h)
    h.finish()


if __name__ == "__main__":
    main()
