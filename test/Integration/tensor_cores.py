#!/usr/bin/env python3
"""Runs random products on tensor cores in the emulator, against the reference.

Every case has its own element types (f16, bf16, i8, f32 rounded to tf32 or cut off, each float beside narrower types),
layout of both factors, epilogue, extents (static or not, with alignments of 1 to 16 elements, now and then 0 or beyond the
declared range) and device. It must run in one kernel, with bounds and race checks, threads in random order, and
give the reference's numbers; on aligned sizes that one must be of a path for tensor cores, unless the plan says
that another is faster. A third of the products goes by the path for Hopper, which no plan takes unless it is named.

Every other case is not planned but runs by random families: of any warps or groups of them, fragments, roles of the
operands and width of accesses that the sizes allow, with producer warpgroups and TMA or without, of one height or two along m or n, covered exactly or balanced.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import random
import re

import harness
import kernel_families

#: Devices by what their tensor cores multiply.
OLD = ("t4", "a100", "rtx3090", "l4", "h200", "b200")
NEW = OLD[1:]
DEVICES = {
    "f16": OLD,
    "bf16": NEW,
    "i8": OLD,
    "tf32": NEW,
    "f16i8": NEW,
    "bf16i8": NEW,
    "tf32f16": NEW,
    "tf32bf16": NEW,
    "tf32i8": NEW,
}
#: What the path for Hopper multiplies; f32 rounded to tf32 or cut off is copied in ways that no other type is.
WGMMA = (*DEVICES, "tf32")
#: Of lhs, rhs and the sum.
TYPES = {
    "f16": ("f16", "f16", "f32"),
    "bf16": ("bf16", "bf16", "f32"),
    "i8": ("i8", "i8", "i32"),
    "tf32": ("f32", "f32", "f32"),
    "f16i8": ("f16", "i8", "f32"),
    "bf16i8": ("i8", "bf16", "f32"),
    "tf32f16": ("f32", "f16", "f32"),
    "tf32bf16": ("bf16", "f32", "f32"),
    "tf32i8": ("f32", "i8", "f32"),
}
#: Bytes of an element.
BYTES = {"f16": 2, "bf16": 2, "i8": 1, "f32": 4, "i32": 4}
#: Of results by given families: what sums in another order and their roundings may differ by.
#: Factors are off by up to 2^-11 in tf32, and by twice as much where they are cut off; sums of few products cancel.
TOLERANCES = {"f32": 1e-4, "f16": 1e-3, "bf16": 8e-3, "i32": 0, "tf32": 2e-3, "tf32-truncate": 4e-3}
LAYOUTS = ("nn", "nt", "tn", "tt")
IDENTITY = "affine_map<(m, n) -> (m, n)>"


class Product:
    """f(lhs, rhs, bias, residual): a product, an epilogue, and an output."""

    def __init__(self, rng):
        self.path = rng.choice(["mma", "mma", "wgmma"])
        is_wgmma = self.path == "wgmma"
        self.kind = rng.choice(WGMMA if is_wgmma else list(DEVICES))
        self.lhs, self.rhs, self.sum = TYPES[self.kind]
        self.device = "h200" if is_wgmma else rng.choice(DEVICES[self.kind])
        self.precision = (
            rng.choice(["tf32", "tf32-truncate"]) if self.kind.startswith("tf32") else "f32"
        )
        self.wide = max(self.lhs, self.rhs, key=BYTES.get)
        # The path for Hopper takes all but 16 bits contiguous along k alone.
        self.layout = "nt" if is_wgmma and BYTES[self.wide] != 2 else rng.choice(LAYOUTS)
        self.output = self.sum if self.kind == "i8" else rng.choice(["f32", self.wide])
        self.epilogue = "none" if self.kind == "i8" else rng.choice(["none", "bias", "residual"])
        self.casts = [rng.choice(["extsi", "extui"]) for _ in range(2)]
        self.is_static = rng.random() < 0.5
        alignment = rng.choice([16, 8, 8, 4, 2, 1])

        def extent():
            size = rng.choice(
                [
                    rng.randint(1, 40),
                    rng.randint(1, 300),
                    rng.choice([1, 7, 13, 16, 31, 64, 127, 257]),
                ]
            )
            return max(alignment, size // alignment * alignment)

        self.m, self.n, self.k = extent(), extent(), extent()
        self.is_misaligned = rng.random() < 0.1
        # Sizes beyond the range are right, too.
        self.range = (1, self.m) if rng.random() < 0.7 else (self.m + 1, 2 * self.m + 1)
        if rng.random() < 0.05:
            self.m = 0

    def properties(self):
        properties = {
            name: getattr(self, name)
            for name in (
                "path",
                "kind",
                "device",
                "precision",
                "layout",
                "output",
                "epilogue",
                "is_static",
                "is_misaligned",
            )
        }
        if self.kind == "i8":
            properties["casts"] = self.casts
        return properties | {
            "alignment": self.alignment(),
            "in_range": self.range[0] == 1,
            "empty": self.m == 0,
        }

    def shape(self, axes):
        return [{"m": self.m, "n": self.n, "k": self.k}[axis] for axis in axes]

    def tensor(self, axes, kind):
        extents = {
            "m": "?",
            "n": self.n if self.is_static else "?",
            "k": self.k if self.is_static else "?",
        }
        return "tensor<" + "".join(f"{extents[axis]}x" for axis in axes) + f"{kind}>"

    def factors(self):
        lhs = "km" if self.layout[0] == "t" else "mk"
        rhs = "nk" if self.layout[1] == "t" else "kn"
        return lhs, rhs

    def arguments(self):
        lhs, rhs = self.factors()
        shapes = [
            (self.shape(lhs), self.lhs),
            (self.shape(rhs), self.rhs),
            ([self.n], self.wide),
            ([self.m, self.n], self.output),
        ]
        return ",".join("x".join(map(str, shape)) + f"x{kind}" for shape, kind in shapes)

    def epilogue_lines(self):
        """Of %p: sum, %b: wide, %r: output, to %y: output."""
        lines, value = [], "%p"
        if self.epilogue != "none":
            bias = "%b"
            if self.wide != "f32":
                lines.append(f"%be = arith.extf %b : {self.wide} to f32")
                bias = "%be"
            lines += [f"%pb = arith.addf %p, {bias} : f32", "%pr = arith.maximumf %pb, %zero : f32"]
            value = "%pr"
        if self.epilogue == "residual":
            residual = "%r"
            if self.output != "f32":
                lines.append(f"%re = arith.extf %r : {self.output} to f32")
                residual = "%re"
            lines.append(f"%pe = arith.mulf {value}, {residual} : f32")
            value = "%pe"
        if self.output == self.sum:
            return lines, value
        return lines + [f"%y = arith.truncf {value} : f32 to {self.output}"], "%y"

    def cast(self, number, name, kind):
        """A factor in the sum's type."""
        if kind == self.sum:
            return ""
        if kind == "i8":
            operation = (
                self.casts[number]
                if self.sum == "i32"
                else {"extsi": "sitofp", "extui": "uitofp"}[self.casts[number]]
            )
        else:
            operation = "extf"
        return f"%{name}e = arith.{operation} %{name} : {kind} to {self.sum}"

    def factor(self, name, kind):
        return f"%{name}" if kind == self.sum else f"%{name}e"

    def module(self):
        lhs, rhs = self.factors()
        a, w = self.tensor(lhs, self.lhs), self.tensor(rhs, self.rhs)
        product, out, bias = (
            self.tensor("mn", self.sum),
            self.tensor("mn", self.output),
            self.tensor("n", self.wide),
        )
        suffix = "i" if self.sum == "i32" else "f"
        zero = "0" if self.sum == "i32" else "0.0"
        sizes = "%m" if self.is_static else "%m, %n"
        maps = ", ".join(
            f"affine_map<(m, n, k) -> ({', '.join(axes)})>" for axes in (lhs, rhs, "mn")
        )
        lines, value = self.epilogue_lines()
        epilogue = "\n".join(f"      {line}" for line in lines)
        dims = [
            '"T"'
            if axis == "m"
            else str({"n": self.n, "k": self.k}[axis])
            if self.is_static
            else '"' + axis + '"'
            for axis in lhs
        ]
        return f"""
module attributes {{ukernel.symbols = {{T = #ukernel.range<{self.range[0]} to {self.range[1]}>}}}} {{
  func.func @f(%a: {a} {{ukernel.shape = [{", ".join(dims)}]}}, %w: {w}, %bias: {bias}, %residual: {out}) -> {out} {{
    %cm = arith.constant {lhs.index("m")} : index
    %cn = arith.constant {rhs.index("n")} : index
    %m = tensor.dim %a, %cm : {a}
    %n = tensor.dim %w, %cn : {w}
    %zero = arith.constant {zero} : {self.sum}
    %e = tensor.empty({sizes}) : {product}
    %init = linalg.fill ins(%zero : {self.sum}) outs(%e : {product}) -> {product}
    %product = linalg.generic {{indexing_maps = [{maps}],
        iterator_types = ["parallel", "parallel", "reduction"]}}
        ins(%a, %w : {a}, {w}) outs(%init : {product}) {{
    ^bb0(%x: {self.lhs}, %y: {self.rhs}, %s: {self.sum}):
      {self.cast(0, "x", self.lhs)}
      {self.cast(1, "y", self.rhs)}
      %q = arith.mul{suffix} {self.factor("x", self.lhs)}, {self.factor("y", self.rhs)} : {self.sum}
      %t = arith.add{suffix} %s, %q : {self.sum}
      linalg.yield %t : {self.sum}
    }} -> {product}
    %o = tensor.empty({sizes}) : {out}
    %result = linalg.generic {{indexing_maps = [{IDENTITY}, affine_map<(m, n) -> (n)>, {IDENTITY}, {IDENTITY}],
        iterator_types = ["parallel", "parallel"]}}
        ins(%product, %bias, %residual : {product}, {bias}, {out}) outs(%o : {out}) {{
    ^bb0(%p: {self.sum}, %b: {self.wide}, %r: {self.output}, %old: {self.output}):
{epilogue}
      linalg.yield {value} : {self.output}
    }} -> {out}
    return %result : {out}
  }}
}}
"""

    def alignment(self):
        """Bytes to which all rows that vectors access are aligned, 16 at most."""
        lhs, rhs = self.factors()
        rows = [("n", self.output)]
        if self.epilogue != "none":
            rows.append(("n", self.wide))
        # Epilogues whose rows are known not to be words go by single elements.
        if self.is_static and any(self.n * BYTES[kind] % 4 for _, kind in rows):
            rows = []
        rows += [(lhs, self.lhs), (rhs, self.rhs)]
        bits = 16
        for axes, kind in rows:
            bits |= self.shape(axes)[-1] * BYTES[kind]
        return bits & -bits

    def __str__(self):
        extents = "static" if self.is_static else "dynamic"
        truncates = ", truncated" if self.precision == "tf32-truncate" else ""
        return (
            f"{self.device}, {self.path}, {self.kind}{truncates} to {self.output}, {self.layout}, {self.epilogue}, "
            f"{self.m}x{self.n}x{self.k} {extents}, range {self.range[0]} to {self.range[1]}"
            f"{', misaligned' if self.is_misaligned else ''}"
        )


def granules_of(product, swaps):
    """Elements along m and n of the least tile of a warp of `mma`, with swapped operands or not."""
    columns = 0 if swaps else 1
    # Instructions have 16 rows and 8 columns; bytes that are transposed go by 16.
    is_transposed = product.kind == "i8" and product.factors()[columns][1] != "k"
    return [16 if axis != columns or is_transposed else 8 for axis in range(2)]


def mma_tiles(rng, product):
    """Warps along m and n of a schedule of `mma`, whether operands are swapped, stages that asynchronous copies may
    have, the combined axis, tiles."""
    element = max(BYTES[product.lhs], BYTES[product.rhs])
    swaps = rng.random() < 0.6
    warps = rng.choice([(1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (4, 1), (3, 1), (1, 3), (2, 3)])
    granules = [granule * of_axis for granule, of_axis in zip(granules_of(product, swaps), warps)]
    axis = rng.randrange(2)
    low = [rng.randint(1, 3) for _ in range(2)]
    heights = [low]
    if rng.random() < 0.6:
        high = list(low)
        high[axis] += rng.randint(1, 2)
        heights.append(high)
    # The deepest steps in four stages fit in shared memory for no more elements of m and n.
    fits = sum(granule * height for granule, height in zip(granules, heights[-1])) <= 192
    depth = rng.choice([1, 2, 4] if fits else [1, 2]) * 32 // element
    tiles = [
        [granule * height for granule, height in zip(granules, of_part)] + [depth]
        for of_part in heights
    ]
    return list(warps), swaps, [2, 3, 4], axis, tiles


def wgmma_tiles(rng, product):
    """The same of `wgmma`, with warpgroups in place of warps."""
    element = max(BYTES[product.lhs], BYTES[product.rhs])
    swaps = rng.random() < 0.5
    row_axis = 1 if swaps else 0
    along_rows, along_columns = rng.choice([(1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (2, 2), (1, 3)])
    # Several groups of columns that are contiguous begin with rows of the swizzle.
    is_whole = along_columns > 1 and product.factors()[1 - row_axis][1] != "k"
    most = 64 if along_rows * along_columns == 4 else 128  # accumulators of a thread
    depth = 128 // element

    def columns():
        count = rng.choice([rng.randint(1, 8), rng.randint(1, 32)]) * 8
        if is_whole:
            return max(count // 64, 1) * 64
        return count if element > 1 or count <= 32 else count // 16 * 16

    rows, width = rng.choice([64, 64, 128]), columns()
    while rows * width > 128 * most:
        rows, width = 64, columns()
    heights = [(rows, width)]
    if rng.random() < 0.6:
        if rng.random() < 0.3 and width <= most:
            heights, axis = [(64, width), (128, width)], row_axis
        else:
            wider, axis = columns(), 1 - row_axis
            if wider != width and rows * wider <= 128 * most:
                heights = sorted([(rows, width), (rows, wider)])
    else:
        axis = rng.randrange(2)
    tiles = []
    for of_rows, of_columns in heights:
        tile = [of_rows * along_rows, of_columns * along_columns]
        tiles.append((tile[::-1] if swaps else tile) + [depth])
    # Of the steps' shared memory, and what the device has.
    stages = [count for count in (3, 4, 5) if count * sum(tiles[-1][:2]) * 128 <= 224 << 10]
    if not stages:
        return wgmma_tiles(rng, product)
    groups = [along_columns, along_rows] if swaps else [along_rows, along_columns]
    return groups, swaps, stages, axis, tiles


def wgmma_copies(rng, product, tiles, groups):
    """Who copies 16 bytes at once, and how: options of a schedule."""
    options = ""
    # Three groups with more accumulators leave too few registers to threads that copy.
    fits = groups < 3 or all(tile[0] * tile[1] <= 128 * groups * 64 for tile in tiles)
    if groups < 4 and fits and rng.random() < 0.6:
        options += ", producer_warpgroups = 1"
    # Boxes of up to 256 rows are equal, and begin with patterns of eight.
    lhs, rhs = product.factors()
    rows = [
        tile[axis] for tile in tiles for axis, factor in enumerate((lhs, rhs)) if factor[1] == "k"
    ]
    if all(extent % (8 * -(-extent // 256)) == 0 for extent in rows) and rng.random() < 0.6:
        options += ", tma = true"
    return options


def wgmma_blocks(rng, product, tiles, stages, groups):
    """What blocks with producers and TMA may do beside: options of a schedule, tiles and numbers of stages."""
    options, cluster = "", [1, 1]
    if rng.random() < 0.5:
        axis = rng.randrange(2)
        # Each block of a cluster copies half of the other factor, in patterns of eight rows.
        halves = [tile[1 - axis] / 2 for tile in tiles]
        if product.factors()[1 - axis][1] != "k" or all(
            half % (8 * -(-half // 256)) == 0 for half in halves
        ):
            cluster[axis] = 2
            tiles = [
                [size * (2 if place == axis else 1) for place, size in enumerate(tile)]
                for tile in tiles
            ]
            options += f", cluster = {cluster}"
    # Slabs of their own take up to 48 KB.
    rows = sum(tiles[-1][:2]) - sum(tiles[-1][axis] // 2 for axis in range(2) if cluster[axis] > 1)
    fewer = [count for count in stages if count * rows * 128 <= 176 << 10]
    if fewer and rng.random() < 0.6:
        options += f", persistent = {rng.choice([1, 2, 5]) * max(cluster)}"
        stages = fewer
        if groups == 1 and rng.random() < 0.6:
            options += ", ping_pong = true"
    return options, tiles, stages


def random_families(rng, product):
    """A family of one height or two, and the same for operands of any alignment."""
    is_wgmma = product.path == "wgmma"
    workers, swaps, stages, axis, tiles = (wgmma_tiles if is_wgmma else mma_tiles)(rng, product)
    is_old, is_cast = product.device == "t4", BYTES[product.lhs] != BYTES[product.rhs]
    balanced = rng.choice([0, 1, 7, 108]) if len(tiles) == 2 else 0

    access = rng.choice([width for width in (1, 4, 8, 16) if width <= product.alignment()] + [16])
    copies = ""
    if is_wgmma and access == 16 and not is_cast:
        copies = wgmma_copies(rng, product, tiles, workers[0] * workers[1])
    # Instructions of four warps do not round: maps do, or threads when copies pass through registers.
    rounds = is_wgmma and product.precision == "tf32"
    if rounds and "tma" not in copies:
        copies = ""
    blocks = tiles[-1:]
    if "producer_warpgroups" in copies and "tma" in copies:
        more, tiles, stages = wgmma_blocks(rng, product, tiles, stages, workers[0] * workers[1])
        copies += more
    fields = f"{'warpgroups' if is_wgmma else 'warps'} = {workers}"

    def family(access, tiles, balanced, copies=""):
        is_staged = is_old or is_cast or access == 1 or (rounds and not copies)
        count = 2 if is_staged else rng.choice(stages)
        return (
            f"<#ukernel.{product.path}<{fields}, stages = {count}, access = {access}"
            + (", swap_operands = true" if swaps else "")
            + f"{copies}>, axis = {axis}, tiles = {tiles}"
            + (f", balanced = {balanced}" if balanced else "")
            + ">"
        )

    return [family(access, tiles, balanced, copies), family(1, blocks, 0)]


def checks(product, seed):
    """Flags of a run: its data."""
    flags = [f"--seed={seed % 2**31}"]
    if product.is_misaligned:
        flags.append(f"--misalign={BYTES[product.lhs]}")
    return flags


def report_of(result, product):
    """What a run printed, or None; and its problems."""
    report, problems = harness.report_of(result)
    launches = harness.launched(report) if report else []
    if report and product.m > 0 and len(launches) != 1:
        problems.append(f"expected one kernel, but got {launches}")
    return report, problems


def run_given(tests, product):
    """Runs random families in place of a plan, beside the reference on the module itself."""
    seed, families = product.seed, product.families
    label = f"seed {seed}"
    tests.describe(label, f"{product}, by {families[0]}")
    plan = f"<families = [{', '.join(families)}], choices = [], general = 0, unaligned_general = 1>"
    planned, problems = kernel_families.form(
        tests, f"{seed}", product.module(), plan, product.precision
    )
    if problems:
        return problems
    tolerance = TOLERANCES[product.output if product.precision == "f32" else product.precision]
    reports, problems = kernel_families.run_planned(
        tests,
        planned,
        tests.path(f"{seed}.mlir"),
        "f",
        product.device,
        [product.arguments()],
        tolerance,
        checks(product, seed),
    )
    launches = harness.launched(reports[0]) if reports else []
    if reports and product.m > 0 and len(launches) != 1:
        problems.append(f"expected one kernel, but got {launches}")
    return problems


def run_planned(tests, product):
    """Runs what the compiler plans."""
    seed = product.seed
    label = f"seed {seed}"
    path = tests.write(f"{seed}.mlir", product.module())
    flags = [f"--precision={product.precision}", f"--paths={product.path}"]
    instruction = "wgmma.mma_async" if product.path == "wgmma" else "mma.sync"
    compile_flags = [*flags, f"--device={product.device}"]
    if product.precision != "f32":
        flags.append(f"--tolerance={TOLERANCES[product.precision]}")
    result = tests.tool(
        "ftuner-run",
        path,
        "--function=f",
        f"--args={product.arguments()}",
        f"--device={product.device}",
        "--check",
        *harness.CHECKED,
        *checks(product, seed),
        *flags,
    )
    tests.describe(label, str(product))
    report, problems = report_of(result, product)
    if not report:
        return problems
    if not all(checked["ok"] for checked in report["results"]):
        problems.append(
            f"relative errors {[checked['relative_error'] for checked in report['results']]}"
        )
    if product.m == 0 or problems:
        return problems
    listing = tests.tool("ftuner-translate", path, "--ftuner-to-ptx", *compile_flags)
    if listing.returncode != 0:
        return [listing.stderr[:400]]
    kernel = report["launches"][0]["kernel"]
    entry = listing.stdout[listing.stdout.index(f".entry {kernel}(") :]
    body = entry[: entry.find(".entry", 1)] if ".entry" in entry[1:] else entry
    if instruction not in body:
        problems.append(f"expected {instruction} in {kernel}")
    return problems


class Case(Product):
    """A product, and families that it runs by if they are not planned."""

    def __init__(self, seed):
        rng = random.Random(seed)
        super().__init__(rng)
        self.families = random_families(rng, self) if seed % 2 else []

    def properties(self):
        properties = super().properties() | {"is_given": bool(self.families)}
        if self.families:
            family = self.families[0]
            # What a schedule has: `cluster = [2, 1]` is a property, the number of a balanced partition's SMs is none.
            for name in (
                "stages",
                "access",
                "swap_operands",
                "producer_warpgroups",
                "tma",
                "cluster",
                "ping_pong",
            ):
                found = re.search(rf"\b{name} = (\[[^\]]*\]|\w+)", family)
                properties[name] = found and found.group(1)
            properties |= {name: name in family for name in ("persistent", "balanced")}
            properties["heights"] = family.partition("tiles = ")[2].count("], [")
        return properties


def run(tests, product):
    return run_given(tests, product) if product.families else run_planned(tests, product)


def main():
    tests, options = harness.start(__doc__, harness.random_cases(34))
    harness.add_random_cases(tests, options, Case, run)
    tests.finish()


if __name__ == "__main__":
    main()
