#!/usr/bin/env python3
"""Runs products of the wgmma path by every way to copy their factors, in the emulator, against the reference.

Batches in one dimension or several, before and between the others, of both factors or of one; slices of k with and
without a rest; sizes that are known and that come with the launch, tensors that are larger than their tiles and
smaller. By all threads and by producer warpgroups, through cp.async and by TMA; by clusters of two blocks that
share copies, and by persistent blocks, which take one tile after the other, of one height or two, also in ping-pong, and
whose results are stored by bulk copies. Immediate, and with bounds and race checks, where asynchronous effects are as late as they may be, and threads in random order. Outputs are
filled with NaN before. However factors are copied, products and the order of sums are the same, so results have the
same bits.

Constant weights that are packed, by bulk copies and by threads, and what they allow: clusters without tensor maps.

Products in f16, i8, and of f32 in tf32: of factors that are rounded, the reference multiplies the nearest numbers of tf32,
and of those that are cut off, numbers without the bits that tf32 lacks.
"""

import os
import random

import numpy

import covering
import harness
import kernel_families

TOLERANCE = 1e-5
MAPS = ", producer_warpgroups = 1, tma = true"
#: Options of schedules, and how many times as high and as wide tiles are.
COPIES = {
    "all threads": ("", 1, 1),
    "producers": (", producer_warpgroups = 1", 1, 1),
    "maps": (", tma = true", 1, 1),
    "producers and maps": (MAPS, 1, 1),
    "clusters along m": (MAPS + ", cluster = [2, 1]", 2, 1),
    "clusters along n": (MAPS + ", cluster = [1, 2]", 1, 2),
    "persistent": (MAPS + ", persistent = 2", 1, 1),
    "persistent clusters": (MAPS + ", cluster = [2, 1], persistent = 2", 2, 1),
    "ping-pong": (MAPS + ", persistent = 2, ping_pong = true", 1, 1),
    "ping-pong of one block": (MAPS + ", persistent = 1, ping_pong = true", 1, 1),
    "ping-pong in clusters": (MAPS + ", cluster = [1, 2], persistent = 2, ping_pong = true", 1, 2),
    "bulk stores": (MAPS + ", persistent = 2, bulk_stores = true", 1, 1),
    "bulk stores in clusters": (
        MAPS + ", cluster = [1, 2], persistent = 2, bulk_stores = true",
        1,
        2,
    ),
    "bulk stores in ping-pong": (
        MAPS + ", persistent = 2, ping_pong = true, bulk_stores = true",
        1,
        1,
    ),
    "fitted boxes": (", tma = true, fit_boxes = true", 1, 1),
    "fitted boxes and producers": (MAPS + ", fit_boxes = true", 1, 1),
    "fitted boxes in clusters along n": (MAPS + ", cluster = [1, 2], fit_boxes = true", 1, 2),
    "fitted boxes in persistent clusters": (
        MAPS + ", cluster = [2, 1], persistent = 2, fit_boxes = true",
        2,
        1,
    ),
}
#: Those of packed weights beside.
PACKED_COPIES = {
    "clusters along m without maps": (", producer_warpgroups = 1, cluster = [2, 1]", 2, 1),
}
#: Those that run with a second height, too.
WITH_PAIRS = (
    "producers",
    "persistent",
    "persistent clusters",
    "ping-pong",
    "ping-pong in clusters",
    "fitted boxes and producers",
    "bulk stores",
)
#: Of products, those that ways to copy see.
PROPERTIES = ("type", "split", "packs", "rows")
#: Those that round: by threads when they pass through registers, or by maps.
ROUNDING = [copies for copies, (options, *_) in COPIES.items() if not options or "tma" in options]


class Product:
    """out[…] = Σ lhs[…] · rhs[…] in letters of einsum; m, n and k are the axes of the matrices."""

    def __init__(
        self,
        lhs,
        rhs,
        out,
        sizes,
        dynamic="",
        groups=(2, 1),
        tile=(128, 64),
        stages=4,
        split=1,
        precision=None,
        kind="f16",
        packs=False,
        swaps=False,
    ):
        self.lhs, self.rhs, self.out, self.sizes, self.dynamic = lhs, rhs, out, sizes, dynamic
        self.groups, self.tile, self.stages, self.split = groups, tile, stages, split
        # Of products of f32.
        self.precision, self.kind = precision, "f32" if precision else kind
        # The rhs is a constant, which is packed.
        self.packs, self.swaps = packs, swaps

    def properties(self):
        return {
            "lhs": self.lhs[-1],
            "rhs": self.rhs[-1],
            "batches": len(self.out) - 2,
            "shares": self.lhs[0] != self.rhs[0],
            "split": self.split > 1,
            "rows": "m" in self.dynamic,
            "columns": "n" in self.dynamic,
            "type": self.precision or self.kind,
            "packs": self.packs,
            "swaps": self.swaps,
            "groups": self.groups,
            "tile": self.tile,
            "stages": self.stages,
            "steps": self.sizes["k"] > 0,
        }

    def tensor(self, axes, kind):
        extents = ("?" if axis in self.dynamic else self.sizes[axis] for axis in axes)
        return "tensor<" + "".join(f"{extent}x" for extent in extents) + f"{kind}>"

    def factors(self):
        rng = numpy.random.default_rng(harness.SEED)
        shapes = ([self.sizes[axis] for axis in axes] for axes in (self.lhs, self.rhs))
        if self.kind == "i8":
            return [rng.integers(-128, 128, shape, numpy.int8) for shape in shapes]
        return [
            rng.standard_normal(shape, numpy.float32).astype(NUMPY[self.kind]) for shape in shapes
        ]

    def multiplied(self, factor):
        """What of a factor is multiplied."""
        if not self.precision:
            return factor
        bits = factor.view(numpy.uint32)
        if self.precision == "tf32":  # to the nearest, of two that are as near the even one
            bits = bits + (0xFFF + (bits >> 13 & 1))
        return (bits & 0xFFFFE000).view(numpy.float32)

    def arguments(self, factors, path):
        """Saves them at paths that begin so."""
        arguments = []
        for number, factor in enumerate(factors):
            if number == 1 and self.packs:
                continue
            file = f"{path}_{number}.npy"
            numpy.save(file, factor)
            arguments.append("".join(f"{size}x" for size in factor.shape) + f"{self.kind}@{file}")
        return ",".join(arguments)

    def module(self):
        a, b = self.tensor(self.lhs, self.kind), self.tensor(self.rhs, self.kind)
        kind, letter, cast = ("i32", "i", "extsi") if self.kind == "i8" else ("f32", "f", "extf")
        out = self.tensor(self.out, kind)
        casts = (
            ""
            if self.kind == "f32"
            else f"""
      %xe = arith.{cast} %x : {self.kind} to {kind}
      %ye = arith.{cast} %y : {self.kind} to {kind}"""
        )
        x, y = ("%xe", "%ye") if casts else ("%x", "%y")
        lines = []
        if self.packs:
            weights = self.multiplied(self.factors()[1])
            lines.append(f'%b = arith.constant dense<"0x{weights.tobytes().hex().upper()}"> : {b}')
        for axis in (axis for axis in self.out if axis in self.dynamic):
            name, axes, type_ = ("a", self.lhs, a) if axis in self.lhs else ("b", self.rhs, b)
            lines += [
                f"%at_{axis} = arith.constant {axes.index(axis)} : index",
                f"%size_{axis} = tensor.dim %{name}, %at_{axis} : {type_}",
            ]
        sizes = ", ".join(f"%size_{axis}" for axis in self.out if axis in self.dynamic)
        loops = [*self.out, "k"]
        maps = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(axes)})>"
            for axes in (self.lhs, self.rhs, self.out)
        )
        iterators = ", ".join(['"parallel"'] * len(self.out) + ['"reduction"'])
        arguments = f"%a: {a}" if self.packs else f"%a: {a}, %b: {b}"
        setup = "\n".join(f"    {line}" for line in lines)
        return f"""
func.func @f({arguments}) -> {out} {{
{setup}
    %zero = arith.constant {"0" if kind == "i32" else "0.0"} : {kind}
    %e = tensor.empty({sizes}) : {out}
    %init = linalg.fill ins(%zero : {kind}) outs(%e : {out}) -> {out}
    %p = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
        ins(%a, %b : {a}, {b}) outs(%init : {out}) {{
    ^bb0(%x: {self.kind}, %y: {self.kind}, %s: {kind}):{casts}
      %q = arith.mul{letter} {x}, {y} : {kind}
      %t = arith.add{letter} %s, %q : {kind}
      linalg.yield %t : {kind}
    }} -> {out}
    return %p : {out}
}}
"""

    def plan(self, copies, is_pair):
        options, times_m, times_n = (COPIES | PACKED_COPIES)[copies]
        options += ", swap_operands = true" if self.swaps else ""
        batches = [1] * (len(set(self.lhs + self.rhs)) - 3)
        slices = f", split = {self.split}" if self.split > 1 else ""

        depth = 128 // numpy.dtype(NUMPY[self.kind]).itemsize
        stages = 2 if self.precision == "tf32" and "tma" not in options else self.stages
        if "bulk_stores" in options:  # Results lie in shared memory, too.
            stages = 3

        def family(schedule, *tiles):
            tiles = ", ".join(str([*tile, depth, *batches]) for tile in tiles)
            return f"<#ukernel.wgmma<{schedule}>, axis = 0, tiles = [{tiles}]{slices}>"

        groups, (m, n) = self.groups, self.tile
        if "ping_pong" in options:  # consumer sets of one warpgroup
            groups, m, n = (1, 1), m // groups[0], n // groups[1]
        m, n = m * times_m, n * times_n
        families = [
            family(
                f"warpgroups = {list(groups)}, stages = {stages}, access = 16{options}",
                (m, n),
                *([(2 * m, n)] if is_pair else []),
            ),
            family("warpgroups = [2, 1], stages = 2, access = 1", (128, 16)),
        ]
        return f"<families = [{', '.join(families)}], choices = [], general = 0, unaligned_general = 1>"


PRODUCTS = {
    "batch": Product("bmk", "bkn", "bmn", dict(b=3, m=150, n=72, k=136)),
    "dynamic batch": Product("bmk", "bnk", "bmn", dict(b=3, m=40, n=72, k=136), dynamic="bmnk"),
    "heads": Product(
        "bmhk", "bnhk", "bhmn", dict(b=2, m=70, h=3, n=88, k=64), dynamic="bm", stages=3
    ),
    "one factor": Product("bkm", "kn", "bmn", dict(b=3, m=136, n=72, k=72)),
    "three batches": Product("abcmk", "abckn", "abcmn", dict(a=2, b=1, c=2, m=24, n=64, k=80)),
    "across k": Product(
        "bkm", "bkn", "bmn", dict(b=2, m=136, n=200, k=104), groups=(1, 2), tile=(64, 128)
    ),
    "slices": Product("mk", "nk", "mn", dict(m=136, n=72, k=584), split=3),
    "slices across k": Product("km", "kn", "mn", dict(m=136, n=72, k=584), dynamic="mnk", split=4),
    "small": Product("mk", "kn", "mn", dict(m=1, n=8, k=8), dynamic="mnk"),
    "no steps": Product("mk", "nk", "mn", dict(m=300, n=72, k=0), dynamic="mnk"),
    "tall tiles": Product(
        "mk", "nk", "mn", dict(m=400, n=40, k=80), groups=(3, 1), tile=(384, 32), stages=3
    ),
    **{
        f"{name} in {precision}": Product(*product, precision=precision, **options)
        for precision in ("tf32", "tf32-truncate")
        for name, product, options in (
            ("product", ("mk", "nk", "mn", dict(m=150, n=72, k=100)), {}),
            (
                "heads",
                ("bmhk", "bnhk", "bhmn", dict(b=2, m=70, h=3, n=88, k=44)),
                dict(dynamic="bmk", stages=3),
            ),
            ("slices", ("mk", "nk", "mn", dict(m=136, n=72, k=292)), dict(split=3)),
            (
                "tall tiles",
                ("mk", "nk", "mn", dict(m=400, n=40, k=40)),
                dict(groups=(3, 1), tile=(384, 32), stages=3),
            ),
        )
    },
    **{
        f"weights, {name}": Product(*product, packs=True, **options)
        for name, product, options in (
            ("k first", ("mk", "kn", "mn", dict(m=300, n=72, k=128)), dict(dynamic="m")),
            (
                "k last",
                ("mk", "nk", "mn", dict(m=70, n=200, k=192)),
                dict(groups=(1, 2), tile=(64, 128)),
            ),
            ("batch", ("bkm", "kn", "bmn", dict(b=3, m=136, n=136, k=64)), dict(dynamic="b")),
            ("slices", ("mk", "nk", "mn", dict(m=136, n=72, k=640)), dict(split=3)),
            (
                "swapped",
                ("mk", "kn", "mn", dict(m=50, n=328, k=192)),
                dict(dynamic="m", groups=(1, 2), tile=(32, 128), swaps=True),
            ),
            ("small", ("mk", "kn", "mn", dict(m=1, n=8, k=64)), dict(dynamic="m")),
            ("i8", ("mk", "kn", "mn", dict(m=150, n=72, k=384)), dict(dynamic="m", kind="i8")),
            (
                "tf32-truncate",
                ("mk", "kn", "mn", dict(m=150, n=72, k=96)),
                dict(precision="tf32-truncate"),
            ),
        )
    },
}
#: Types of elements.
NUMPY = {"f16": numpy.float16, "f32": numpy.float32, "i8": numpy.int8}


#: Of each product by the first way that has run.
FIRST = {}


def results_of(h, name, product, runs):
    """Results of modules with flags, the first of which gives what the others are held against; and problems."""
    factors = product.factors()
    given = product.arguments(factors, h.path(f"{name}_given"))
    multiplied = product.arguments(map(product.multiplied, factors), h.path(f"{name}_multiplied"))
    results, problems = [], []
    for number, (module, flags) in enumerate(runs):
        folder = h.path(f"{name}_{number}")
        os.makedirs(folder)
        result = h.tool(
            "ftuner-run",
            module,
            "--function=f",
            "--device=h100",
            f"--save-dir={folder}",
            f"--args={given if number else multiplied}",
            f"--seed={harness.SEED % 2**31}",
            *flags,
        )
        if result.returncode != 0:
            return results, [f"{flags}: {result.stderr[-800:]}"]
        results.append(numpy.load(os.path.join(folder, "result0.npy")).astype(numpy.float64))
        error = numpy.linalg.norm(results[-1] - results[0]) / max(
            numpy.linalg.norm(results[0]), 1e-30
        )
        if results[-1].shape != results[0].shape or not error <= TOLERANCE:
            problems.append(
                f"{flags}: shape {results[-1].shape} of {results[0].shape}, relative error {error}"
            )
    return results, problems


def run(h, label, product, copies, is_pair):
    name = label.replace(" ", "_").replace(",", "")
    path, problems = kernel_families.form(
        h,
        name,
        product.module(),
        product.plan(copies, is_pair),
        product.precision or "f32",
        packs_for="h100" if product.packs else None,
    )
    if not path:
        return problems
    results, problems = results_of(
        h,
        name,
        product,
        [(h.path(name + ".mlir"), ["--executor=reference"]), (path, []), (path, harness.CHECKED)],
    )
    for result, checks in zip(results[1:], ("without checks", "with checks")):
        if not numpy.array_equal(FIRST.setdefault(product, result), result):
            problems.append(f"{checks}: other bits than by another way")
    return problems


def random_weights(rng):
    """A random product whose weights can be packed, and flags to plan it."""
    kind = rng.choice(["f16", "f16", "i8", "tf32-truncate"])
    precision = {"precision": kind} if kind.startswith("tf32") else {"kind": kind}
    lhs = rng.choice(["mk", "bmk", "km"] if kind == "f16" else ["mk", "bmk"])
    sizes = dict(
        m=rng.choice([1, 3, 8, 17, 64, 65, 130, 257, 300]),
        n=8 * rng.choice([1, 2, 3, 7, 9, 16, 17, 31, 40]),
        k={"f16": 64, "i8": 128}.get(kind, 32) * rng.choice([1, 1, 2, 3, 5, 8, 17]),
    )
    if "b" in lhs:
        sizes["b"] = rng.choice([1, 3])
    product = Product(
        lhs,
        rng.choice(["kn", "nk"]),
        "bmn" if "b" in lhs else "mn",
        sizes,
        dynamic=rng.choice(["", "m", "m"]),
        packs=True,
        **precision,
    )
    return product, [
        f"--precision={product.precision or 'f32'}",
        f"--paths={rng.choice(['wgmma', 'simt,mma,wgmma'])}",
        f"--tensor-maps={rng.choice(['true', 'false'])}",
        "--pack-weights",
        "--max-kernels=3",
    ]


def run_planned(h, name, product, flags):
    """Runs what the compiler plans for constant weights."""
    path, checked = h.write(f"{name}.mlir", product.module()), [*flags, *harness.CHECKED]
    odd = f"--misalign={numpy.dtype(NUMPY[product.kind]).itemsize}"
    runs = [(path, more) for more in (["--executor=reference"], flags, checked, [*checked, odd])]
    return results_of(h, name, product, runs)[1]


def ways():
    """(name of a product, product, copies, whether there are two heights) that there are."""
    result = []
    for name, product in PRODUCTS.items():
        for copies in [*COPIES, *(PACKED_COPIES if product.packs else [])]:
            if product.precision == "tf32" and copies not in ROUNDING:
                continue
            if "bulk_stores" in (COPIES | PACKED_COPIES)[copies][0] and (
                product.split > 1 or product.swaps
            ):
                continue
            result.append((name, product, copies, False))
            # Twice as tall, some tiles leave no room for stages.
            if copies in WITH_PAIRS and product.tile[0] < 256:
                result.append((name, product, copies, True))
    return result


def choose(cases):
    """Few of the ways: each with every property that products have, and every product."""
    # Products differ in what their properties are not: layouts and tiles come with their types and batches.
    chosen, _ = covering.choose(
        [
            {name: product.properties()[name] for name in PROPERTIES}
            | {"copies": copies, "pair": is_pair}
            for _, product, copies, is_pair in cases
        ]
    )
    for number, name in enumerate(PRODUCTS):
        own = [index for index, case in enumerate(cases) if case[0] == name]
        if not set(own) & set(chosen):  # other ones for each product
            chosen.append(own[number % len(own)])
    print(
        f"{len(chosen)} of {len(cases)} products and ways, which have every pair of properties",
        flush=True,
    )
    return [cases[index] for index in sorted(chosen)]


def main():
    h, options = harness.start(
        __doc__,
        {
            "--count": {
                "type": int,
                "default": 4,
                "help": "random products of weights that are packed (default 4)",
            }
        },
    )
    cases = ways()
    if harness.SCALE == 1:
        cases = choose(cases)
    for name, product, copies, is_pair in cases:
        label = f"{name}, {copies}{', two heights' if is_pair else ''}"
        h.add(label, run, h, label, product, copies, is_pair)
    for number in range(options.count):
        seed = harness.next_seed()
        product, flags = random_weights(random.Random(str(seed)))
        label = f"random weights {number}"
        h.describe(
            label,
            f"seed {seed}: {product.kind}, {product.lhs} by {product.rhs}, {product.sizes}, {' '.join(flags)}",
        )
        h.add(label, run_planned, h, label.replace(" ", "_"), product, flags)
    h.finish()


if __name__ == "__main__":
    main()
