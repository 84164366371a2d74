#!/usr/bin/env python3
"""Runs families with split-K slices that are given, not searched, in the emulator.

Random products of every element type by both codegen paths: slices that divide k and that do not, empty ones, k of
0 and 1, one and two heights, all layouts, epilogues, roles of the operands, aligned operands and not. Each size must take two kernels, the
one that sums slices and the one that adds them up, and give the numbers of the reference on the module itself, with
bounds and race checks and threads in random order. Batches and sums that start from a tensor come beside them.

`--count=N` is the number of random products; `--seed=S --count=1` runs one again.
"""

import random

import batches
import harness
import kernel_families
import models
import tensor_cores

#: Relative errors (Frobenius) by the type of the result; integers are exact.
TOLERANCES = {"f32": 1e-5, "f16": 1e-3, "bf16": 8e-3, "i32": 0}


class Split(tensor_cores.Product):
    """A product and the families that it runs by."""

    def __init__(self, rng):
        super().__init__(rng)
        self.path = rng.choice(["mma", "simt"])
        # The CUDA cores round no factor.
        if self.path == "simt":
            self.precision = "f32"
        if rng.random() < 0.6:
            self.k = rng.choice([0, 1, 2, 7, 16, 33, 64, 96, 100, 128, 257, 300])
        if rng.random() < 0.25:
            # Factors are aligned, rows of the output and of the sums are not.
            self.n, self.k, self.is_static, self.layout = (
                rng.choice([37, 101, 202]),
                rng.choice([64, 128, 256]),
                True,
                "nt",
            )
        self.is_misaligned = False
        self.split = rng.choice([2, 3, 4, 5, 7, 16, 32])
        parts = rng.choice([1, 2])
        make = self.mma if self.path == "mma" else self.simt
        # For aligned operands, and for any.
        self.families = [make(rng, parts, True), make(rng, rng.choice([1, parts]), False)]

    def properties(self):
        family = self.families[0]
        properties = super().properties() | {
            "split": self.split,
            "heights": family.count("], ["),
            "swaps": "swap" in family,
            "k": "none"
            if self.k == 0
            else "few"
            if self.k < self.split
            else self.k % self.split == 0,
        }
        # What planning would decide is nothing here.
        del properties["is_misaligned"], properties["in_range"]
        return properties

    def family(self, schedule, tiles):
        return f"<{schedule}, axis = 0, tiles = {tiles}, split = {self.split}>"

    def mma(self, rng, parts, is_aligned):
        warps = [rng.choice([1, 2]), rng.choice([1, 2])]
        heights = sorted(rng.sample([1, 2, 3, 4], parts))
        columns, depth = (
            rng.choice([1, 2, 4, 8]),
            rng.choice([32, 64]) // tensor_cores.BYTES[self.wide],
        )
        swaps = rng.random() < 0.3
        granules, swapped = (
            tensor_cores.granules_of(self, swaps),
            ", swap_operands = true" if swaps else "",
        )
        if granules[0] == granules[1]:
            columns = max(1, columns // 2)
        is_staged = not is_aligned or self.device == "t4" or self.lhs != self.rhs
        stages = 2 if is_staged else rng.choice([2, 3, 4])
        tiles = [
            [granules[0] * warps[0] * height, granules[1] * warps[1] * columns, depth]
            for height in heights
        ]
        return self.family(
            f"#ukernel.mma<warps = {warps}, stages = {stages}, access = {16 if is_aligned else 1}{swapped}>",
            tiles,
        )

    def simt(self, rng, parts, is_aligned):
        threads = rng.choice(
            [[4, 16], [8, 8], [2, 32]] if is_aligned else [[1, 32], [2, 16], [4, 16], [8, 8]]
        )
        # Vectors do not reach across the ends of tiles.
        heights = sorted(rng.sample([4, 8, 12] if is_aligned else [1, 2, 5, 7, 8], parts))
        columns, depth = 4 if is_aligned else rng.choice([1, 2, 4]), rng.choice([8, 16, 32])
        tiles = [[threads[0] * height, threads[1] * columns, depth] for height in heights]
        return self.family(
            f"#ukernel.simt<threads = {threads}, stages = 2, vector = {4 if is_aligned else 1}>",
            tiles,
        )

    def __str__(self):
        return f"{super().__str__()}, {self.path}, {self.split} slices: {'; '.join(self.families)}"


def compare(h, planned, source, function, arguments, device, tolerance, seed):
    """Runs a planned module in the emulator, beside its source by the reference."""
    reports, problems = kernel_families.run_planned(
        h, planned, source, function, device, arguments, tolerance, [f"--seed={seed % 2**31}"]
    )
    for report in reports:
        kernels = [launch["kernel"] for launch in report["launches"]]
        has_elements = all(extent for result in report["results"] for extent in result["shape"])
        if has_elements and (len(kernels) != 2 or not kernels[1].endswith("_sum")):
            problems.append(
                f"{report['args']}: expected a kernel and the sum of its slices, but got {kernels}"
            )
    return problems


def plan_of(families):
    return (
        f"#ukernel.plan<families = [{', '.join(families)}], choices = [], general = 0, "
        f"unaligned_general = {len(families) - 1}>"
    )


def run(h, product):
    seed, label = product.seed, f"seed {product.seed}"
    h.describe(label, str(product))
    name = f"s{seed}"
    planned, problems = kernel_families.form(
        h, name, product.module(), plan_of(product.families), product.precision
    )
    if not planned:
        return problems
    tolerance = {**tensor_cores.TOLERANCES, "f32": TOLERANCES[product.output]}[product.precision]
    return compare(
        h,
        planned,
        h.path(name + ".mlir"),
        "f",
        [product.arguments()],
        product.device,
        tolerance,
        seed,
    )


def run_given(h, label, model, families, device, sizes):
    name = label.replace(" ", "_")
    planned, problems = kernel_families.form(h, name, model.text(), plan_of(families))
    return problems or compare(
        h,
        planned,
        h.path(name + ".mlir"),
        model.name,
        [model.args(**size) for size in sizes],
        device,
        TOLERANCES["f32"],
        harness.SEED,
    )


def main():
    h, options = harness.start(__doc__, harness.random_cases(18))
    harness.add_random_cases(h, options, lambda seed: Split(random.Random(seed)), run)
    if options.seed is None:
        pair = kernel_families.PAIRS["2 and 9 of four threads"]
        for split in (2, 5):

            def given(axes=0):
                family = kernel_families.family(pair, batch_axes=axes)
                return [family[:-1] + f", split = {split}>"]

            for label, model, sizes in batches.group():
                h.add(
                    f"{label} in {split}",
                    run_given,
                    h,
                    f"{label} in {split}",
                    model,
                    given(model.batch_axes()),
                    "h200",
                    sizes[:2],
                )
            for epilogue in ("residual", "bias_gelu", "scale"):
                for init in ("fill", "tensor"):
                    model = models.Matmul(
                        n=37, k="K", epilogue=epilogue, init=init, fill_value="0.5"
                    )
                    label = f"{epilogue} from a {init} in {split}"
                    h.add(
                        label,
                        run_given,
                        h,
                        label,
                        model,
                        given(),
                        "t4",
                        [{"T": 41, "K": k} for k in (0, 1, 16, 67, 160)],
                    )
    h.finish()


if __name__ == "__main__":
    main()
